// What a cluster can do, in a few numbers: the ground of every predicted time. Read from a TOML
// file (docs/hardware.md, configs/hardware/*.toml), or measured on this machine.
//
// Units    bytes and flops per second, seconds; of one device, one direction. Rates are what is
//          reached, not what is advertised; only the peaks of matrix products are advertised ones.
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
  double flops_per_s = 0;       // of large products, as reached
  double peak_flops_per_s = 0;  // as advertised, dense: what a utilization is measured against

  bool operator==(const MatmulRate&) const = default;
};

struct Link {
  double bytes_per_s = 0;  // that one device sends while it receives as much; 0: there is no link
  double latency_s = 0;    // of a small message, software included

  bool operator==(const Link&) const = default;
};

struct Hardware {
  std::string name;
  int64_t devices_per_node = 1;
  // Of a node, that compute at full rate at once; the others wait for their turn, as do more
  // workers than there are cores. 0: all of them.
  int64_t concurrent_devices = 0;

  // As on a CPU: devices hold what they hold in the host's memory, beside what is kept there for
  // saving and for data, and memory_bytes is a device's share of it.
  bool unified_memory = false;
  int64_t host_memory_bytes = 0;  // of a node, beside its devices' own; 0: not known

  int64_t memory_bytes = 0;       // of a device
  double memory_bytes_per_s = 0;  // read plus written
  double launch_s = 0;            // what each op costs beside its work
  MatmulRate bf16, f32;

  Link intra_node, inter_node;
  double overlap = 1;  // share of communication that can hide behind computation

  // Seconds of an op over what its work takes at the rates above, by op name; 1 where it is absent.
  std::map<std::string, double, std::less<>> op_factors;

  // f32 for all but bf16.
  const MatmulRate& matmul(DType dtype) const { return dtype == DType::kBF16 ? bf16 : f32; }
  bool operator==(const Hardware&) const = default;
};

// `name` stands in errors.
Hardware parse_hardware(std::string_view text, const std::string& name);
Hardware load_hardware(const std::filesystem::path& path);

// The description as TOML; parse_hardware reads back the same bits.
std::string hardware_text(const Hardware& hardware);

}  // namespace skein
