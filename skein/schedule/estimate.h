// Predicts the time of programs on described hardware by a roofline: each step takes the longer of
// its arithmetic and its memory traffic, plus the cost of starting an op. Collectives are priced by
// skein/schedule/collective_seconds.h instead, since the bytes of their ops are no memory traffic.
//
// Formula  seconds = sum over steps of launch_s + factor max(flops / flops_per_s, bytes /
//          bytes_per_s), with the factor of the step's op; steps without cost (views) take none
// Source   Williams, Waterman, Patterson, "Roofline", CACM 2009
#pragma once

#include "skein/ir/program.h"
#include "skein/schedule/hardware.h"

namespace skein {

struct HardwareRates {
  double flops_per_s = 0;      // measured large matrix product, in the compute dtype
  double fp8_flops_per_s = 0;  // the same of 8-bit operands; as above where that is not known
  double bytes_per_s = 0;      // measured copy: bytes read and written
  double launch_s = 0;
  std::map<std::string, double, std::less<>> op_factors;  // 1 where an op is absent
};

// The rates of one device, with products in `dtype`.
HardwareRates rates_of(const Hardware& hardware, DType dtype);

double estimate_seconds(const Instruction& instruction, const HardwareRates& rates);
double estimate_seconds(const Program& program, const HardwareRates& rates);
double estimate_seconds(const Program& program, const Hardware& hardware, DType dtype);

}  // namespace skein
