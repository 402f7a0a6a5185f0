// How long programs take on described hardware: each step of a program takes the longer of its
// arithmetic and its memory traffic, and what starting an op costs. Collectives are priced by
// skein/schedule/collective_seconds.h instead: their ops move bytes that are no memory traffic.
//
// Formula  seconds = sum over steps of launch_s + factor max(flops / flops_per_s, bytes /
//          bytes_per_s), with the factor of the step's op; steps without cost (views) take none
// Source   Williams, Waterman, Patterson, "Roofline", CACM 2009
#pragma once

#include "skein/ir/program.h"
#include "skein/schedule/hardware.h"

namespace skein {

struct HardwareRates {
  double flops_per_s = 0;  // measured large matrix product, in the compute dtype
  double bytes_per_s = 0;  // measured copy: bytes read and written
  double launch_s = 0;
  std::map<std::string, double, std::less<>> op_factors;  // 1 where an op is absent
};

// Those of one device, with products in `dtype`.
HardwareRates rates_of(const Hardware& hardware, DType dtype);

double estimate_seconds(const Instruction& instruction, const HardwareRates& rates);
double estimate_seconds(const Program& program, const HardwareRates& rates);
double estimate_seconds(const Program& program, const Hardware& hardware, DType dtype);

}  // namespace skein
