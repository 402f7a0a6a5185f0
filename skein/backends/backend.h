// A kind of device that programs run on: a table of functions that the rest of the program needs
// before or besides a Device. The implementation is in runtime/<kind>/ (the device), <op>_<kind>.*
// in the ops' folders (kernels) and, if it needs a transport, comm/.
//
// To add a backend: these parts, `const Backend <kind>_backend` in backend_<kind>.cc, and a line of
// backends.def.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "skein/comm/communicator.h"
#include "skein/ops/algorithms.h"
#include "skein/runtime/aot_compiler.h"
#include "skein/runtime/device.h"
#include "skein/stablehlo/hlo_proto.h"

namespace skein {

struct Backend {
  std::string_view kind;  // "cpu"
  // Why this build can plan for such devices, but not use one; "": it can.
  std::string_view only_plans = "";
  // The number of devices that this process can use; 0 where there is no driver.
  int (*num_devices)() = nullptr;
  bool has_own_memory = false;  // separate from the host's
  bool compiles = false;        // whole programs (Device::compile), instead of running kernels
  // The kernels of all ops; of a backend that only plans, what they take of scratch.
  KernelTable (*kernels)() = nullptr;
  // Throws Error{kUnsupported} for a device that does not exist or for which the build has no
  // kernels.
  std::unique_ptr<Device> (*make)(const DeviceOptions&, KernelTable) = nullptr;
  // A compiler for machines that are not here. Null: there is none.
  std::unique_ptr<AotCompiler> (*make_aot_compiler)(const AotTarget&) = nullptr;
  // The rate of a large product in FLOP/s by the best available library, measured for `seconds`.
  // Null: the backend's own kernel is measured instead.
  double (*measure_ceiling)(DType, double seconds) = nullptr;
  // A second communicator over the ranks of `host`, for collectives in device memory. Null: `host`
  // can access device memory itself.
  std::unique_ptr<Communicator> (*make_world)(Communicator& host,
                                              const DeviceWorldOptions&) = nullptr;
  // A StableHLO text in XLA's own form, made by this plugin of XLA for CPUs. Null: not built in.
  stablehlo::HloModule (*hlo_module)(const std::string& plugin, const std::string& text,
                                     int64_t num_replicas) = nullptr;
  // Called before any other function of the backend if a run has several ranks. Null: not needed.
  void (*expect_several_ranks)() = nullptr;
  // The algorithms that kernels chose by measuring (ops/algorithms.h). Null: they choose none.
  AlgorithmChoices (*chosen_algorithms)() = nullptr;
  void (*adopt_algorithms)(const AlgorithmChoices&) = nullptr;
};

// The backends of this program, in the order in which `auto` prefers them.
std::vector<const Backend*> all_backends();

// Throws Error{kUsage} for a kind that this program was built without.
const Backend& find_backend(std::string_view kind);
// The same to plan with, which needs nothing but the rules of its kernels.
const Backend& find_backend_to_plan(std::string_view kind);
// The first backend that has a device.
const Backend& best_backend();

// Makes a device of options.kind with the kernels of its backend, of a CPU those that SKEIN_CPU
// allows.
std::unique_ptr<Device> make_device(const DeviceOptions& options);

}  // namespace skein
