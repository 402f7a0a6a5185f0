// A kind of device that programs run on, as one row: what the rest of the program asks of it before
// and beside a Device. The parts lie where their kind is at home: the device in runtime/<kind>/,
// kernels in <op>_<kind>.* of the ops' folders, a transport, if it needs one, in comm/.
//
// To add one: those parts, `const Backend <kind>_backend` in backend_<kind>.cc, a line of
// backends.def.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "skein/comm/communicator.h"
#include "skein/ops/algorithms.h"
#include "skein/runtime/device.h"

namespace skein {

struct Backend {
  std::string_view kind;  // "cpu"
  // Devices that this process could use; 0 where there is no driver.
  int (*num_devices)() = nullptr;
  bool has_own_memory = false;  // beside the host's
  // Of all ops.
  KernelTable (*kernels)() = nullptr;
  // Throws Error{kUnsupported} for a device that is not there or that the build has no kernels for.
  std::unique_ptr<Device> (*make)(const DeviceOptions&, KernelTable) = nullptr;
  // Rate of a large product in FLOP/s by the best library at hand, measured for so many seconds.
  // Null: the product of our own kernels is the yardstick.
  double (*measure_ceiling)(DType, double seconds) = nullptr;
  // The ranks of `host` once more, for collectives in memory of their devices. Null: those of
  // `host` reach it.
  std::unique_ptr<Communicator> (*make_world)(Communicator& host,
                                              const DeviceWorldOptions&) = nullptr;
  // Called before anything else of the backend where a run has several ranks. Null: no need.
  void (*expect_several_ranks)() = nullptr;
  // The algorithms that its kernels choose by measuring (ops/algorithms.h). Null: they choose none.
  AlgorithmChoices (*chosen_algorithms)() = nullptr;
  void (*adopt_algorithms)(const AlgorithmChoices&) = nullptr;
};

// Those of this program, what `auto` prefers first.
std::vector<const Backend*> all_backends();

// Throws Error{kUsage} for a kind that this program was built without.
const Backend& find_backend(std::string_view kind);
// The first that has a device.
const Backend& best_backend();

// A device of options.kind with the kernels of its backend.
std::unique_ptr<Device> make_device(const DeviceOptions& options);

}  // namespace skein
