// How an op runs on a device: the one interface between the step program and its kernels.
//
// Lifetime  `prepare` and `scratch_bytes` run once, before the first step; `run` every step. `run`
//           allocates nothing and does not wait for the device.
// Threads   one call at a time per device; a CPU kernel uses OpenMP inside. Results must not depend
//           on the number of threads: split what is independent, never a sum.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "skein/ir/attrs.h"
#include "skein/tensor/view.h"

namespace skein {

class Communicator;

// One bound node. While planning, the addresses are made up: they tell which operands are adjacent,
// and must not be read or written.
struct KernelCall {
  std::vector<View> inputs;  // an absent optional input has shape rank 0 and no data
  std::vector<View> outputs;
  Attrs attrs;
  void* scratch = nullptr;            // scratch_bytes() bytes, 64-byte aligned, undefined on entry
  std::shared_ptr<const void> state;  // what `prepare` returned
  void* stream = nullptr;             // the device's queue; unused on the CPU
  // Of the mesh axis that the op names in its attr `axis`, where it has one; null while planning.
  Communicator* communicator = nullptr;
  // Of the channel that the op names in its attr `channel`: `depth` (1 where it has no such attr)
  // tickets of what it started and nobody has waited for, and one number more; -1 at first. Kept
  // between calls.
  int64_t* ticket = nullptr;

  bool has_input(int index) const {
    return index < static_cast<int>(inputs.size()) && inputs[index].shape.rank() > 0;
  }
};

struct Kernel {
  void (*run)(const KernelCall&) = nullptr;
  int64_t (*scratch_bytes)(const KernelCall&) = nullptr;                // null: none
  std::shared_ptr<const void> (*prepare)(const KernelCall&) = nullptr;  // null: no state
  // Settles by measuring which algorithm `run` takes. May write to scratch and to outputs that are
  // not sums. Null: there is nothing to choose.
  void (*choose)(const KernelCall&) = nullptr;
};

// Kernels of one device, by op name.
using KernelTable = std::map<std::string_view, Kernel>;

}  // namespace skein
