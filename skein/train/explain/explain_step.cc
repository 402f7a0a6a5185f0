#include "skein/train/explain/explain_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "skein/config/batches.h"
#include "skein/config/run/identity.h"
#include "skein/config/run/skips.h"
#include "skein/data/corpus/origins.h"
#include "skein/record/files/event_fields.h"
#include "skein/record/files/jsonl.h"
#include "skein/train/explain/recall_step.h"
#include "skein/train/explain/replica.h"

namespace skein {
namespace {

// Changes are undone by then: what is left is another run.
void check_is_of_run(const OpenedRun& opened, const CheckpointReader& checkpoint) {
  RunConfig run = opened.config.run;
  run.accept_changes = fmt::format("{}", fmt::join(acceptable_changes(), " "));
  accept_checkpoint(checkpoint, opened.identity,
                    needed_tensors(opened.inputs.model(), opened.config), run);
}

// The step after the newest one may have been what ended the run.
void check_was_trained(const Config& config, int64_t step) {
  const std::optional<int64_t> newest = newest_step(config.run.dir);
  const int64_t planned = config.run.steps;
  const int64_t most = newest ? std::min(planned, *newest + 1) : planned;
  if (planned <= 0 || step <= most) return;
  fail(ErrorCode::kUsage, "the run in {} has {} steps{}: expected a step up to {}, found {}",
       config.run.dir, newest.value_or(planned), most == planned ? "" : " so far", most, step);
}

// Whether the newest start ended in this step, by numbers that were not finite
// (train/loop/divergence.cc).
bool ended_by_numbers(const fs::path& run, int64_t step) {
  const std::string beginning = fmt::format("step {}: the loss is ", step);
  bool ended = false;
  for_each_json_line(run / "events.jsonl", [&](const Json& json) {
    const std::string event = text_or(json, "event", "");
    if (event == "start") ended = false;
    if (event == "failure" && bool_or(json, "fatal", false)) {
      ended = text_or(json, "reason", "").find(beginning) != std::string::npos;
    }
  });
  return ended;
}

std::vector<std::string> corpora_of(const Config& config) {
  if (config.data.source.empty()) return {absolute_path(config.data.train)};
  std::vector<std::string> paths;
  for (const DataSource& source : config.data.source) paths.push_back(absolute_path(source.path));
  return paths;
}

class Explainer {
 public:
  Explainer(const Config& now, const StepQuestion& question)
      : past_(now), skipped_(skipped_by_run(now)) {
    answer_.batch = question.batch > 0 ? question.batch : skipped_.batch_of(question.step);
    answer_.step = skipped_.steps_before(answer_.batch) + 1;
    answer_.is_skipped = skipped_.contains(answer_.batch);
    if (!answer_.is_skipped) check_was_trained(now, answer_.step);
    answer_.ended_run = ended_by_numbers(now.run.dir, answer_.step);
    checkpoint_ = past_.checkpoint_before(answer_.step - 1, true);
    answer_.weights_step = checkpoint_ ? checkpoint_->state().step : 0;
    answer_.is_replayed = question.exact && answer_.weights_step < answer_.step - 1;
    if (answer_.is_replayed) check_can_replay();
    step_ = recall_step(past_, skipped_, answer_.step,
                        answer_.is_replayed ? Asked::kReplay : Asked::kEffects, checkpoint_.get());
    if (checkpoint_) {
      check_is_of_run(*step_.opened, *checkpoint_);
      answer_.weights_from = checkpoint_->path().string();
    }
    answer_.corpora = corpora_of(config());
    device_ = training_device(config_of_one_row(config()));
    Replica::State state;
    if (answer_.is_replayed) state = replay();
    explain(answer_.is_replayed ? &state : nullptr);
  }

  StepAnswer take() { return std::move(answer_); }

 private:
  const Config& config() const { return step_.opened->config; }
  const RunInputs& inputs() const { return step_.opened->inputs; }

  void check_can_replay() const {
    const int64_t first = answer_.weights_step + 1;
    const size_t last = past_.start_of(answer_.step);
    for (size_t start = past_.start_of(first) + 1; start <= last; ++start) {
      const RecordedChange* change = past_.change_within(start, start, Asked::kReplay);
      if (change == nullptr) continue;
      fail(ErrorCode::kUsage,
           "--exact would train steps {} to {} again, and after step {} {} changed from {} to {}: "
           "expected a step up to that one, or no --exact",
           first, answer_.step - 1, past_.last_step(start - 1), change->key, change->before,
           change->after);
    }
  }

  // The state with which the step began.
  Replica::State replay() {
    const int64_t width =
        checkpoint_ ? checkpoint_->state().reduction_width : config().parallel.reduction_width;
    const Config alone = config_of_replica(config(), width);
    Replica replica(alone, inputs().model(), *device_, checkpoint_.get());
    replica.load(checkpoint_.get());
    const LearningRateSchedule schedule = learning_rate_schedule(config().optimizer);
    const int64_t first = answer_.weights_step + 1;
    Loader loader(inputs().training(),
                  {.ramp = batch_ramp(config()),
                   .first_step = first,
                   .rows_taken = step_.states_rows,
                   .skipped = skipped_,
                   .num_threads = num_readers(config())},
                  step_.states);
    for (int64_t step = first; step < answer_.step; ++step) {
      replica.runner().train(loader.next(), step, schedule.at(step));
    }
    answer_.weights_step = answer_.step - 1;
    return replica.take();
  }

  void tell_origins() {
    std::vector<CorpusOrigins> origins;
    for (size_t i = 0; i < inputs().training().parts().size(); ++i) {
      origins.emplace_back(inputs().training_corpus(i));
    }
    for (DocumentEffect& document : answer_.documents) {
      const auto origin = origins[document.place.corpus].find(document.place.document);
      if (!origin) continue;
      document.source = origin->path;
      document.record = origin->record;
    }
  }

  // `replayed`: null, or the state to begin with in place of the checkpoint's.
  void explain(const Replica::State* replayed) {
    std::vector<RowSegment> segments;
    const Batch batch = batch_of_rows(inputs().training(), step_.rows_before(answer_.batch),
                                      batch_ramp(config()).size(answer_.batch), step_.states_rows,
                                      step_.states, num_readers(config()), &segments);
    const Config alone = config_of_one_row(config());
    Replica replica(alone, inputs().model(), *device_, checkpoint_.get());
    const auto restore = [&] {
      replayed != nullptr ? replica.put(*replayed) : replica.load(checkpoint_.get());
    };
    restore();
    answer_.is_exact = answer_.weights_step == answer_.step - 1;
    answer_.documents =
        document_effects(replica.runner(), batch, segments, inputs().tokenizer(), restore);
    tell_origins();
    double loss = 0;
    for (const DocumentEffect& document : answer_.documents) {
      loss += document.loss * static_cast<double>(document.num_labels);
    }
    answer_.loss = loss / static_cast<double>(std::max<int64_t>(batch.num_label_tokens, 1));
  }

  RunPast past_;
  SkippedBatches skipped_;
  RecalledStep step_;
  StepAnswer answer_;
  std::unique_ptr<CheckpointReader> checkpoint_;
  std::unique_ptr<Device> device_;
};

}  // namespace

StepAnswer explain_step(const Config& config, const StepQuestion& question) {
  return Explainer(config, question).take();
}

}  // namespace skein
