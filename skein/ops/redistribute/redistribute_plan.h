// What a bound redistribute does, the same on every device. Without a collective each value is
// moved by itself; otherwise rows are packed, the collective runs, rows are unpacked, and the
// padding after a share is cleared. Addresses are those of the call.
#pragma once

#include <cstdint>
#include <vector>

#include "skein/comm/communicator.h"
#include "skein/ir/kernel.h"
#include "skein/ops/row_copy.h"

namespace skein {

struct Padding {
  char* at = nullptr;
  int64_t bytes = 0;
};

struct RedistributePlan {
  std::vector<RowCopy> before;
  Collective collective;  // a barrier if there is none
  std::vector<RowCopy> after;
  std::vector<Padding> padding;
  int64_t scratch_bytes = 0;

  bool communicates() const { return collective.kind != CollectiveKind::kBarrier; }
};

// For `scratch_bytes` and `collective_of`: depends only on the call.
RedistributePlan plan_redistribute(const KernelCall& call);

// For `prepare`: they also announce the collective to the communicator.
// Errors  kInternal: no communicator; the rank's place is not known; a start whose results, or
//         terms, have gaps
RedistributePlan prepare_redistribute(const KernelCall& call);
RedistributePlan prepare_redistribute_start(const KernelCall& call);  // staging: the last output
RedistributePlan prepare_redistribute_wait(const KernelCall& call);   // only what follows

// Value `i` of a redistribute without a collective.
struct LocalMove {
  RowCopy copy;
  Padding padding;
};
LocalMove local_move(const KernelCall& call, size_t i);

}  // namespace skein
