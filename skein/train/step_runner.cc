#include "skein/train/step_runner.h"

#include <array>
#include <cmath>

#include "skein/base/exact_sum.h"
#include "skein/model/llama/llama.h"
#include "skein/ops/zigzag/zigzag.h"

namespace skein {
namespace {

using Bins = std::array<double, exact_sum::kBins>;

}  // namespace

StepRunner::StepRunner(Device& device, const ProgramSet& programs, const StepSpec& spec,
                       const Communicators* communicators)
    : spec_(spec),
      executor_(device, programs, communicators),
      tasks_(stage_tasks(pipeline_shape(spec), spec.layout.stage())),
      several_chunks_(spec.layout.virtual_stages > 1) {
  const std::vector<float> table = rope_table(spec.model, spec.sequence_length);
  executor_.upload("rope_table", table.data(), static_cast<int64_t>(table.size() * sizeof(float)));
  const int64_t context = spec.layout.mesh.size("cp");
  if (context > 1) {
    rows_ = zigzag_rows(spec.micro_sequences, spec.sequence_length, context,
                        spec.layout.coordinate("cp"));
    picked_.resize(rows_.size());
  }
}

void StepRunner::check_batch(const Batch& batch) const {
  if (batch.sequences != spec_.micro_batches * spec_.micro_sequences ||
      batch.sequence_length != spec_.sequence_length) {
    fail(ErrorCode::kInternal, "a batch of {} x {} is not {} micro-batches of {} x {}",
         batch.sequences, batch.sequence_length, spec_.micro_batches, spec_.micro_sequences,
         spec_.sequence_length);
  }
}

void StepRunner::upload_micro_batch(const Batch& batch, int64_t index) {
  if (uploaded_ == index) return;
  uploaded_ = index;
  const int64_t count = spec_.micro_sequences * spec_.sequence_length;
  const auto upload = [&](const char* name, const std::vector<int32_t>& values, bool whole) {
    if (!executor_.has(name)) return;  // another stage's
    const int32_t* from = values.data() + index * count;
    if (whole || rows_.empty()) return executor_.upload(name, from, count * 4);
    for (size_t i = 0; i < rows_.size(); ++i) picked_[i] = from[rows_[i]];
    executor_.upload(name, picked_.data(), static_cast<int64_t>(picked_.size()) * 4);
  };
  upload("tokens", batch.tokens, false);
  upload("labels", batch.labels, false);
  upload("positions", batch.positions, false);
  upload("attention_start", batch.attention_starts, true);
}

double StepRunner::download_sum(const char* name) const {
  return exact_sum::total(executor_.download_scalar<Bins>(name).data());
}

double StepRunner::take_loss_sum() {
  const double sum = download_sum("loss_sum");
  executor_.upload_scalar("loss_sum", Bins{});
  return sum;
}

int64_t StepRunner::global_label_tokens(const Batch& batch) const {
  return executor_.has("global_label_tokens")
             ? executor_.download_scalar<int32_t>("global_label_tokens")
             : batch.num_label_tokens;
}

void StepRunner::run_task(const Batch& batch, const Task& task) {
  upload_micro_batch(batch, task.micro_batch);
  const bool is_last = task.micro_batch + 1 == spec_.micro_batches;
  const char* kind = task.kind == TaskKind::kForward ? "forward" : "backward";
  const std::string last = chunk_program(fmt::format("{}.last", kind), task.chunk, several_chunks_);
  executor_.run(is_last && executor_.has_program(last)
                    ? last
                    : chunk_program(kind, task.chunk, several_chunks_),
                task.slot);
}

// The tree of gradient sums, like a binary counter: a level holds the sum of 2^level virtual ranks
// that waits for its right neighbour. After the last one all levels join.
void StepRunner::fold_virtual_rank(int64_t chunk, int64_t virtual_rank) {
  const auto run = [&](const char* mode, int64_t level) {
    executor_.run(chunk_program(fmt::format("{}.{}", mode, level), chunk, several_chunks_));
  };
  const bool last = virtual_rank + 1 == spec_.layout.hosted_virtual_ranks();
  int64_t level = 0;
  for (; (virtual_rank >> level & 1) != 0; ++level) run("merge", level);
  if (!last) return run("push", level);
  for (; virtual_rank >> level != 0; ++level) {
    if ((virtual_rank >> level & 1) != 0) run("merge", level);
  }
}

void StepRunner::accumulate(const Batch& batch) {
  check_batch(batch);
  uploaded_ = -1;
  const int64_t hosted = spec_.layout.hosted_virtual_ranks();
  const int64_t micro_batches = spec_.micro_batches / hosted;  // of a virtual rank
  for (const Task& task : tasks_) {
    run_task(batch, task);
    const bool ends_virtual_rank = (task.micro_batch + 1) % micro_batches == 0;
    if (hosted > 1 && task.kind == TaskKind::kBackward && ends_virtual_rank) {
      fold_virtual_rank(task.chunk, task.micro_batch / micro_batches);
    }
  }
}

StepResult StepRunner::train(const Batch& batch, int64_t step, float learning_rate) {
  executor_.upload_scalar<float>("learning_rate", learning_rate);
  executor_.upload_scalar<int32_t>("step", static_cast<int32_t>(step));
  executor_.upload_scalar<int32_t>("num_label_tokens",
                                   static_cast<int32_t>(batch.num_label_tokens));
  accumulate(batch);
  executor_.run("update");
  StepResult result;
  result.num_label_tokens = global_label_tokens(batch);
  result.loss = take_loss_sum() / static_cast<double>(result.num_label_tokens);
  result.grad_norm = executor_.download_scalar<float>("grad_norm");
  result.param_norm = static_cast<float>(std::sqrt(download_sum("param_norm_squared")));
  return result;
}

void StepRunner::evaluate(const Batch& batch, LossSum& sum) {
  check_batch(batch);
  uploaded_ = -1;
  executor_.upload_scalar<int32_t>("num_label_tokens",
                                   static_cast<int32_t>(batch.num_label_tokens));
  for (const Task& task : tasks_) {
    if (task.kind != TaskKind::kForward) continue;
    upload_micro_batch(batch, task.micro_batch);
    executor_.run(chunk_program("evaluate", task.chunk, several_chunks_));
  }
  if (executor_.has_program("evaluate_total"))
    executor_.run("evaluate_total");  // over several ranks
  sum.loss += take_loss_sum();
  sum.num_tokens += global_label_tokens(batch);
}

}  // namespace skein
