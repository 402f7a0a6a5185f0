// A description of a cluster in a few numbers, on which all predicted times are based. Read from a
// TOML file (docs/hardware.md, configs/hardware/*.toml), or measured on this machine.
//
// Units    bytes and flops per second, seconds; for one device and one direction. Rates are
//          achieved ones; only the peaks of matrix products are as advertised.
// Errors   Error{kUsage} naming file, line and key for unknown or missing keys (with a suggestion),
//          wrong types, numbers out of range and rates above their peak
// Threads  plain values
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "skein/tensor/dtype.h"

namespace skein {

struct MatmulRate {
  double flops_per_s = 0;       // achieved by large products
  double peak_flops_per_s = 0;  // as advertised for dense products; the denominator of utilization

  bool operator==(const MatmulRate&) const = default;
};

struct Link {
  double bytes_per_s = 0;  // sent by one device while it receives as much; 0: no link
  double latency_s = 0;    // of a small message, software included

  bool operator==(const Link&) const = default;
};

struct Hardware {
  std::string name;
  std::string note;  // where the numbers come from, for people; "": not said
  int64_t devices_per_node = 1;
  // Devices of a node that compute at full rate at once; the others take turns, like more workers
  // than cores. 0: all of them.
  int64_t concurrent_devices = 0;

  // As on a CPU: the devices of a node share the host's memory, which also holds snapshots and
  // data; memory_bytes is each device's share of it.
  bool unified_memory = false;
  int64_t host_memory_bytes = 0;  // of a node, without its devices' own; 0: not known

  std::string device_kind;        // of the backend: device.kind of a run there; "": not said
  int64_t memory_bytes = 0;       // of a device
  double memory_bytes_per_s = 0;  // read plus written
  double launch_s = 0;            // fixed cost of each op
  MatmulRate bf16, f32;
  double fp8_flops_per_s = 0;  // achieved by products of 8-bit operands; 0: as of bf16

  Link intra_node, inter_node;
  double overlap = 1;  // share of communication that computation can hide

  // By op name: the time of an op divided by the roofline's; 1 where an op is absent.
  std::map<std::string, double, std::less<>> op_factors;

  // The rate for `dtype`: f32 for everything but bf16.
  const MatmulRate& matmul(DType dtype) const { return dtype == DType::kBF16 ? bf16 : f32; }
  bool operator==(const Hardware&) const = default;
};

// `name` stands for the file in errors.
Hardware parse_hardware(std::string_view text, const std::string& name);
Hardware load_hardware(const std::filesystem::path& path);

// The description as TOML; parse_hardware reads back the same bits.
std::string hardware_text(const Hardware& hardware);

}  // namespace skein
