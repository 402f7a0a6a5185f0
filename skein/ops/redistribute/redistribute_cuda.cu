#include <utility>

#include "skein/ops/cuda/copy_rows_cuda.h"
#include "skein/ops/redistribute/redistribute_plan.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

struct CopyLists {
  RedistributePlan plan;
  std::vector<RowCopyList> before, after;
};

template <RedistributePlan (*make_plan)(const KernelCall&)>
std::shared_ptr<const void> prepare(const KernelCall& call) {
  auto state = std::make_shared<CopyLists>();
  state->plan = make_plan(call);
  state->before = list_row_copies(state->plan.before);
  state->after = list_row_copies(state->plan.after);
  return state;
}

const CopyLists& state_of(const KernelCall& call) {
  return *static_cast<const CopyLists*>(call.state.get());
}

void clear(const KernelCall& call, const Padding& padding) {
  if (padding.bytes == 0) return;
  check(cudaMemsetAsync(padding.at, 0, static_cast<size_t>(padding.bytes), stream_of(call)),
        "clearing padding");
}

void run_local(const KernelCall& call) {
  RowCopyList list = {};
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (list.size == RowCopyList::kCapacity) {
      copy_rows(call, list);
      list.size = 0;
    }
    const LocalMove move = local_move(call, i);
    add_row_copy(move.copy, list);
    clear(call, move.padding);
  }
  copy_rows(call, list);
}

void run(const KernelCall& call) {
  const CopyLists& state = state_of(call);
  if (!state.plan.communicates()) return run_local(call);
  for (const RowCopyList& list : state.before) copy_rows(call, list);
  call.communicator->run(state.plan.collective);
  for (const RowCopyList& list : state.after) copy_rows(call, list);
  for (const Padding& padding : state.plan.padding) clear(call, padding);
}

void run_start(const KernelCall& call) {
  const CopyLists& state = state_of(call);
  for (const RowCopyList& list : state.before) copy_rows(call, list);
  *call.ticket = call.communicator->start(state.plan.collective);
}

void run_wait(const KernelCall& call) {
  call.communicator->wait(std::exchange(*call.ticket, -1));
  for (const RowCopyList& list : state_of(call).after) copy_rows(call, list);
  for (const Padding& padding : state_of(call).plan.padding) clear(call, padding);
}

}  // namespace

void add_redistribute_cuda_kernels(KernelTable& table) {
  table["redistribute"] = {.run = run, .prepare = prepare<prepare_redistribute>};
  table["redistribute_start"] = {.run = run_start, .prepare = prepare<prepare_redistribute_start>};
  table["redistribute_wait"] = {.run = run_wait, .prepare = prepare<prepare_redistribute_wait>};
}

}  // namespace skein
