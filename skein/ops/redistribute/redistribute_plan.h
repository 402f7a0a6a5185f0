// What a bound redistribute does, on every device alike: without a collective, each value is moved
// by itself; else rows are packed, the collective runs, rows are unpacked, and the padding behind a
// share is cleared. Addresses are those of the call.
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
  Collective collective;  // a barrier where there is none
  std::vector<RowCopy> after;
  std::vector<Padding> padding;
  int64_t scratch_bytes = 0;

  bool communicates() const { return collective.kind != CollectiveKind::kBarrier; }
};

// For `scratch_bytes` and `collective_of`: looks at nothing but the call.
RedistributePlan plan_redistribute(const KernelCall& call);

// For `prepare`: they tell the communicator what will come.
// Errors  kInternal: no communicator; the rank's place is not known; a start whose operands have
//         gaps
RedistributePlan prepare_redistribute(const KernelCall& call);
RedistributePlan prepare_redistribute_start(const KernelCall& call);  // staging: the last output
RedistributePlan prepare_redistribute_wait(const KernelCall& call);   // its padding alone

// Value `i` of a redistribute without a collective.
struct LocalMove {
  RowCopy copy;
  Padding padding;
};
LocalMove local_move(const KernelCall& call, size_t i);

}  // namespace skein
