#include <algorithm>
#include <cstring>
#include <utility>

#include "skein/ops/redistribute/redistribute_plan.h"

namespace skein {
namespace {

void copy_rows(const RowCopy& copy) {
  if (copy.to == copy.from) return;
  if (!copy.has_gaps()) {
    constexpr int64_t kPiece = int64_t{1} << 18;
    const int64_t bytes = copy.rows * copy.row_bytes;
#pragma omp parallel for schedule(static)
    for (int64_t at = 0; at < bytes; at += kPiece) {
      std::memcpy(copy.to + at, copy.from + at, static_cast<size_t>(std::min(kPiece, bytes - at)));
    }
    return;
  }
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < copy.rows; ++row) {
    std::memcpy(copy.to + row * copy.to_stride, copy.from + row * copy.from_stride,
                static_cast<size_t>(copy.row_bytes));
  }
}

void clear(const Padding& padding) {
  if (padding.bytes > 0) std::memset(padding.at, 0, static_cast<size_t>(padding.bytes));
}

template <RedistributePlan (*make_plan)(const KernelCall&)>
std::shared_ptr<const void> prepare(const KernelCall& call) {
  return std::make_shared<RedistributePlan>(make_plan(call));
}

const RedistributePlan& plan_of(const KernelCall& call) {
  return *static_cast<const RedistributePlan*>(call.state.get());
}

int64_t scratch_bytes(const KernelCall& call) { return plan_redistribute(call).scratch_bytes; }

void run_local(const KernelCall& call) {
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const LocalMove move = local_move(call, i);
    copy_rows(move.copy);
    clear(move.padding);
  }
}

void run(const KernelCall& call) {
  const RedistributePlan& plan = plan_of(call);
  if (!plan.communicates()) return run_local(call);
  for (const RowCopy& copy : plan.before) copy_rows(copy);
  call.communicator->run(plan.collective);
  for (const RowCopy& copy : plan.after) copy_rows(copy);
  for (const Padding& padding : plan.padding) clear(padding);
}

void run_start(const KernelCall& call) {
  const RedistributePlan& plan = plan_of(call);
  for (const RowCopy& copy : plan.before) copy_rows(copy);
  *call.ticket = call.communicator->start(plan.collective);
  if (call.attrs.has("advances")) call.communicator->advance_before(*call.ticket);
}

void run_wait(const KernelCall& call) {
  call.communicator->wait(std::exchange(*call.ticket, -1));
  for (const RowCopy& copy : plan_of(call).after) copy_rows(copy);
  for (const Padding& padding : plan_of(call).padding) clear(padding);
}

}  // namespace

void add_redistribute_cpu_kernels(KernelTable& table) {
  table["redistribute"] = {
      .run = run, .scratch_bytes = scratch_bytes, .prepare = prepare<prepare_redistribute>};
  table["redistribute_start"] = {.run = run_start, .prepare = prepare<prepare_redistribute_start>};
  table["redistribute_wait"] = {.run = run_wait, .prepare = prepare<prepare_redistribute_wait>};
}

}  // namespace skein
