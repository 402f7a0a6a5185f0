#include "skein/train/step_runner.h"

#include <array>
#include <cmath>
#include <vector>

#include "skein/base/exact_sum.h"
#include "skein/model/llama/llama.h"

namespace skein {
namespace {

using Bins = std::array<double, exact_sum::kBins>;

}  // namespace

StepRunner::StepRunner(Device& device, const ProgramSet& programs, const StepSpec& spec)
    : spec_(spec), executor_(device, programs) {
  const std::vector<float> table = rope_table(spec.model, spec.sequence_length);
  executor_.upload("rope_table", table.data(), static_cast<int64_t>(table.size() * sizeof(float)));
}

int64_t StepRunner::num_micro_batches(const Batch& batch) const {
  if (batch.sequences % spec_.micro_sequences != 0 ||
      batch.sequence_length != spec_.sequence_length) {
    fail(ErrorCode::kInternal, "a batch of {} x {} does not divide into micro-batches of {} x {}",
         batch.sequences, batch.sequence_length, spec_.micro_sequences, spec_.sequence_length);
  }
  return batch.sequences / spec_.micro_sequences;
}

void StepRunner::upload_micro_batch(const Batch& batch, int64_t index) {
  const int64_t count = spec_.micro_sequences * spec_.sequence_length;
  const auto upload = [&](const char* name, const std::vector<int32_t>& values) {
    executor_.upload(name, values.data() + index * count, count * 4);
  };
  upload("tokens", batch.tokens);
  upload("labels", batch.labels);
  upload("positions", batch.positions);
  upload("attention_start", batch.attention_starts);
}

double StepRunner::download_sum(const char* name) const {
  return exact_sum::total(executor_.download_scalar<Bins>(name).data());
}

double StepRunner::take_loss_sum() {
  const double sum = download_sum("loss_sum");
  executor_.upload_scalar("loss_sum", Bins{});
  return sum;
}

void StepRunner::accumulate(const Batch& batch) {
  for (int64_t micro = 0; micro < num_micro_batches(batch); ++micro) {
    upload_micro_batch(batch, micro);
    executor_.run("forward");
    executor_.run("backward");
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
  result.loss = take_loss_sum() / static_cast<double>(batch.num_label_tokens);
  result.grad_norm = executor_.download_scalar<float>("grad_norm");
  result.param_norm = static_cast<float>(std::sqrt(download_sum("param_norm_squared")));
  return result;
}

void StepRunner::evaluate(const Batch& batch, LossSum& sum) {
  for (int64_t micro = 0; micro < num_micro_batches(batch); ++micro) {
    upload_micro_batch(batch, micro);
    executor_.run("evaluate");
    sum.loss += take_loss_sum();
  }
  sum.num_tokens += batch.num_label_tokens;
}

}  // namespace skein
