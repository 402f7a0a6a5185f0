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

// What the host knows of the data that a program is about to run on, for which a kernel may have a
// faster way. It changes from run to run; scratch memory is enough for either way.
struct DataFacts {
  bool one_document_each = false;  // of every sequence: attention_start is 0 everywhere
  bool operator==(const DataFacts&) const = default;
};

// One bound node. During planning the addresses are made up: they only tell which operands are
// adjacent, and must not be read or written.
struct KernelCall {
  std::vector<View> inputs;  // an absent optional input has shape rank 0 and no data
  std::vector<View> outputs;
  Attrs attrs;
  void* scratch = nullptr;            // scratch_bytes() bytes, 64-byte aligned, undefined on entry
  std::shared_ptr<const void> state;  // what `prepare` returned
  void* stream = nullptr;             // the device's queue; unused on the CPU
  // The communicator of the mesh axis in the op's attr `axis`, if it has one; null during planning.
  Communicator* communicator = nullptr;
  // State of the channel in the op's attr `channel`, kept between calls: `depth` tickets of
  // operations that were started and not yet waited for (`depth` is the attr, or 1 without it),
  // then one number for the op's own use. All are -1 at first.
  int64_t* ticket = nullptr;
  const DataFacts* facts = nullptr;  // of this run; null during planning

  bool has_input(int index) const {
    return index < static_cast<int>(inputs.size()) && inputs[index].shape.rank() > 0;
  }
};

struct Kernel {
  void (*run)(const KernelCall&) = nullptr;
  int64_t (*scratch_bytes)(const KernelCall&) = nullptr;                // null: none
  std::shared_ptr<const void> (*prepare)(const KernelCall&) = nullptr;  // null: no state
  // Measures which algorithm `run` should use, and keeps the choice. May write to scratch and to
  // outputs that are not sums. Null: there is nothing to choose.
  void (*choose)(const KernelCall&) = nullptr;
  // Runs calls that follow each other in a program, with the results of `run` for each. None
  // writes what another one reads or writes. Null: they run one by one.
  void (*run_together)(const std::vector<const KernelCall*>&) = nullptr;
};

// Kernels of one device, by op name.
using KernelTable = std::map<std::string_view, Kernel>;

}  // namespace skein
