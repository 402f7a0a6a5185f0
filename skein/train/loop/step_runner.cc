#include "skein/train/loop/step_runner.h"

#include <algorithm>
#include <cmath>

#include "skein/compile/whole_step.h"
#include "skein/model/placement.h"
#include "skein/ops/zigzag/zigzag.h"
#include "skein/passes/overlap/pair_programs.h"
#include "skein/weights/initialize.h"

namespace skein {

StepRunner::StepRunner(Device& device, const ProgramSet& programs, const StepSpec& spec,
                       const Communicators* communicators)
    : spec_(spec),
      executor_(device, programs, communicators),
      programs_(programs),
      is_one_program_(executor_.has_program(kStepProgram)),
      order_(is_one_program_ ? std::vector<ProgramRun>() : step_order(spec, programs)),
      tasks_(stage_tasks(spec.pipeline(), spec.layout.stage())),
      evaluated_micro_batches_(spec.micro_batches) {
  upload_tables(executor_, spec.model, spec.sequence_length);
  uploaded_.resize(spec.in_pairs ? kPairSlots : 1);
  const int64_t context = spec.layout.mesh.size("cp");
  if (context > 1) {
    rows_ = zigzag_rows(spec.micro_sequences, spec.sequence_length, context,
                        spec.layout.coordinate("cp"));
    picked_.resize(rows_.size());
  }
  if (spec.empty_micro_batches > 0) {
    empty_ = Batch(0, spec.micro_sequences, spec.sequence_length);
    std::fill(empty_.labels.begin(), empty_.labels.end(), kNoLabel);
  }
  outcomes_ =
      static_cast<Outcome*>(device.allocate_on_host(outcome_bytes(device), "what steps give"));
}

StepRunner::~StepRunner() {
  Device& device = executor_.device();
  device.release_on_host(outcomes_, outcome_bytes(device));
}

int64_t StepRunner::outcome_bytes(const Device& device) {
  return device.depth() * static_cast<int64_t>(sizeof(Outcome));
}

int64_t StepRunner::micro_batches_of(const Batch& batch) const {
  const int64_t micro_batches = batch.sequences / spec_.micro_sequences;
  if (batch.sequences % (spec_.micro_sequences * spec_.layout.hosted_virtual_ranks()) != 0 ||
      micro_batches == 0 || batch.sequence_length != spec_.sequence_length) {
    fail(ErrorCode::kInternal, "a batch of {} x {} is no micro-batches of {} x {} for {} ranks",
         batch.sequences, batch.sequence_length, spec_.micro_sequences, spec_.sequence_length,
         spec_.layout.hosted_virtual_ranks());
  }
  return micro_batches;
}

namespace {

StepSpec with_micro_batches(StepSpec spec, int64_t micro_batches) {
  const int64_t hosted = spec.layout.hosted_virtual_ranks();
  spec.micro_batches = micro_batches;
  if (spec.layout.zero >= 3) {
    spec.empty_micro_batches = (spec.layout.shares().most() - hosted) * (micro_batches / hosted);
  }
  return spec;
}

}  // namespace

void StepRunner::suit_step_to(const Batch& batch) {
  const int64_t micro_batches = micro_batches_of(batch);
  if (micro_batches == spec_.micro_batches) return;
  if (is_one_program_) {
    fail(ErrorCode::kInternal, "a batch of {} micro-batches for a program of one", micro_batches);
  }
  spec_ = with_micro_batches(std::move(spec_), micro_batches);
  order_ = step_order(spec_, programs_);
}

void StepRunner::suit_evaluation_to(const Batch& batch) {
  const int64_t micro_batches = micro_batches_of(batch);
  if (micro_batches == evaluated_micro_batches_) return;
  evaluated_micro_batches_ = micro_batches;
  tasks_ = stage_tasks(with_micro_batches(spec_, micro_batches).pipeline(), spec_.layout.stage());
}

void StepRunner::give_micro_batch(const Batch& batch, int64_t index, int64_t slot) {
  const int64_t of_inputs = uploaded_.size() > 1 ? slot : 0;
  Uploaded& uploaded = uploaded_[static_cast<size_t>(of_inputs)];
  if (uploaded.micro_batch != index) {
    const bool is_empty = index >= batch.sequences / spec_.micro_sequences;
    uploaded = {index, is_empty ? upload_rows(empty_, 0, of_inputs)
                                : upload_rows(batch, index * spec_.micro_sequences, of_inputs)};
  }
  executor_.set_facts(uploaded.facts, slot);
}

void StepRunner::forget_uploads() { std::fill(uploaded_.begin(), uploaded_.end(), Uploaded{}); }

DataFacts StepRunner::upload_rows(const Batch& batch, int64_t first_row, int64_t slot) {
  const int64_t begin = first_row * spec_.sequence_length;
  const int64_t count = spec_.micro_sequences * spec_.sequence_length;
  const auto upload = [&](const char* name, const std::vector<int32_t>& values, bool whole) {
    if (!executor_.has(name)) return;  // an input of another stage
    if (spec_.in_pairs && !executor_.has_slots(name)) {
      fail(ErrorCode::kInternal, "the input '{}' has no slots for pairs of micro-batches", name);
    }
    const int32_t* from = values.data() + begin;
    if (whole || rows_.empty()) return executor_.upload(name, from, count * 4, slot);
    for (size_t i = 0; i < rows_.size(); ++i) picked_[i] = from[rows_[i]];
    executor_.upload(name, picked_.data(), static_cast<int64_t>(picked_.size()) * 4, slot);
  };
  upload(decoder_names::kTokens, batch.tokens, false);
  upload(decoder_names::kLabels, batch.labels, false);
  upload(decoder_names::kPositions, batch.positions, false);
  upload(decoder_names::kAttentionStart, batch.attention_starts, true);
  const auto starts = std::span(batch.attention_starts).subspan(begin, count);
  return {.one_document_each = std::ranges::all_of(starts, [](int32_t s) { return s == 0; })};
}

double StepRunner::take_loss_sum() {
  const auto bins = executor_.download_scalar<decltype(Outcome::loss_sum)>("loss_sum");
  executor_.fill_zero("loss_sum");
  return exact_sum::total(bins.data());
}

int64_t StepRunner::global_label_tokens(const Batch& batch) const {
  return executor_.has("global_label_tokens")
             ? executor_.download_scalar<int32_t>("global_label_tokens")
             : batch.num_label_tokens;
}

void StepRunner::accumulate(const Batch& batch) {
  suit_step_to(batch);
  forget_uploads();
  if (is_one_program_) give_micro_batch(batch, 0, 0);
  for (const ProgramRun& run : order_) {
    if (run.micro_batch >= 0) give_micro_batch(batch, run.micro_batch, run.slot);
    if (run.ahead >= 0) give_micro_batch(batch, run.ahead, run.slot_ahead);
    executor_.run(run.program, run.slot);
  }
  executor_.forget_facts();
}

// Ranks with the same data coordinate read the same lanes, so only the first of them adds its
// progress to the sum.
void StepRunner::report(const Reports& reports) {
  if (!executor_.has("rank_reports")) return;
  Reports own = reports;
  if (!spec_.layout.is_first_of_replica()) {
    std::fill(own.begin() + kReportProgress, own.end(), 0.0);
  }
  executor_.upload("rank_reports", own.data(), report_bytes());
}

int64_t StepRunner::report_bytes() const {
  return (kNumReports - 1 + spec_.update.num_corpora) * static_cast<int64_t>(sizeof(double));
}

namespace {

// They are summed over ranks, of which there are fewer than a million.
double report_of(Stop stop) { return stop == Stop::kYes ? 1e6 : stop == Stop::kRegroup ? 1 : 0; }

}  // namespace

void StepRunner::start(const Batch& batch, int64_t step, float learning_rate, const Tells& tells) {
  Device& device = executor_.device();
  if (num_under_way() >= device.depth()) {
    fail(ErrorCode::kInternal, "{} steps are under way already", num_under_way());
  }
  device.pass_step(step);
  executor_.upload_scalar<float>("learning_rate", learning_rate);
  executor_.upload_scalar<int32_t>("step", static_cast<int32_t>(step));
  executor_.upload_scalar<int32_t>("num_label_tokens",
                                   static_cast<int32_t>(batch.num_label_tokens));
  accumulate(batch);
  Reports reports = {};
  const StepReport told = tells();
  reports[kReportStop] = report_of(told.stop);
  reports[kReportCopied] = told.copy.is_whole ? 1 : 0;
  reports[kReportCopyMicros] = told.copy.copy_us;
  reports[kReportStepMicros] = told.copy.step_us;
  std::copy(batch.progress.begin(), batch.progress.end(), reports.begin() + kReportProgress);
  report(reports);
  executor_.run(is_one_program_ ? kStepProgram : "update");
  collect(batch, reports, outcomes_[started_ % device.depth()]);
  ++started_;
}

void StepRunner::collect(const Batch& batch, const Reports& reports, Outcome& outcome) {
  outcome.reports = reports;
  if (executor_.has("all_reports")) {
    executor_.download_later("all_reports", outcome.reports.data(), report_bytes());
  }
  outcome.num_label_tokens = static_cast<int32_t>(batch.num_label_tokens);
  if (executor_.has("global_label_tokens")) {
    executor_.download_later("global_label_tokens", outcome.num_label_tokens);
  }
  executor_.download_later("loss_sum", outcome.loss_sum);
  executor_.fill_zero("loss_sum");
  executor_.download_later("grad_norm", outcome.grad_norm);
  executor_.download_later("param_norm_squared", outcome.param_norm_squared);
  outcome.event = executor_.device().record_event();
}

StepResult StepRunner::finish() {
  const Outcome& outcome = outcomes_[finished_ % executor_.device().depth()];
  StepResult result;
  result.ended_at = executor_.device().wait(outcome.event);
  ++finished_;
  result.num_label_tokens = outcome.num_label_tokens;
  // A batch may be without labels (data.loss_on): its loss is 0, and so is its gradient.
  result.loss = exact_sum::total(outcome.loss_sum.data()) /
                static_cast<double>(std::max<int64_t>(result.num_label_tokens, 1));
  result.grad_norm = outcome.grad_norm;
  const double stop = outcome.reports[kReportStop];
  result.stop = stop >= report_of(Stop::kYes) ? Stop::kYes : stop > 0 ? Stop::kRegroup : Stop::kNo;
  const double* progress = outcome.reports.data() + kReportProgress;
  result.progress.assign(progress, progress + spec_.update.num_corpora);
  result.copied =
      outcome.reports[kReportCopied] == static_cast<double>(spec_.layout.mesh.num_ranks());
  result.copy_us = outcome.reports[kReportCopyMicros];
  result.step_us = outcome.reports[kReportStepMicros];
  result.param_norm =
      static_cast<float>(std::sqrt(exact_sum::total(outcome.param_norm_squared.data())));
  return result;
}

// All tensor ranks have the same losses.
bool StepRunner::answers_for_token_losses() const {
  const std::vector<std::string> axes = tensor_axes(spec_.layout.mesh);
  return executor_.has(decoder_names::kTokenLoss) &&
         std::ranges::all_of(
             axes, [&](const std::string& axis) { return spec_.layout.coordinate(axis) == 0; });
}

void StepRunner::take_token_losses(const Batch& batch, int64_t micro_batch,
                                   const TakeTokenLoss& take) {
  const int64_t count = spec_.micro_sequences * spec_.sequence_length;
  std::vector<float> losses(rows_.empty() ? static_cast<size_t>(count) : rows_.size());
  executor_.download(decoder_names::kTokenLoss, losses.data(), std::ssize(losses) * 4);
  for (size_t i = 0; i < losses.size(); ++i) {
    const int64_t at = micro_batch * count + (rows_.empty() ? static_cast<int64_t>(i) : rows_[i]);
    if (batch.labels[at] != kNoLabel) take(at, losses[i]);
  }
}

void StepRunner::evaluate(const Batch& batch, LossSum& sum, const TakeTokenLoss& take) {
  suit_evaluation_to(batch);
  forget_uploads();
  if (executor_.has("num_label_tokens")) {  // programs that only evaluate may not have it
    executor_.upload_scalar<int32_t>("num_label_tokens",
                                     static_cast<int32_t>(batch.num_label_tokens));
  }
  const bool takes = take && answers_for_token_losses();
  const int64_t micro_batches = micro_batches_of(batch);
  const int64_t last_chunk = spec_.pipeline().num_chunks() - 1;
  for (const Task& task : tasks_) {
    if (task.kind != TaskKind::kForward) continue;
    give_micro_batch(batch, task.micro_batch, 0);
    executor_.run(chunk_program("evaluate", task.chunk, spec_.layout.virtual_stages > 1));
    const bool is_empty = task.micro_batch >= micro_batches;
    if (takes && task.chunk == last_chunk && !is_empty) {
      take_token_losses(batch, task.micro_batch, take);
    }
  }
  if (executor_.has_program("evaluate_total"))
    executor_.run("evaluate_total");  // sums the loss over ranks
  sum.loss += take_loss_sum();
  sum.num_tokens += global_label_tokens(batch);
}

}  // namespace skein
