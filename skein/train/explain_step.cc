#include "skein/train/explain_step.h"

#include <algorithm>
#include <thread>

#include "skein/base/log.h"
#include "skein/checkpoint/checkpoint_search.h"
#include "skein/config/run_identity.h"
#include "skein/config/run_skips.h"
#include "skein/data/corpus_origins.h"
#include "skein/record/event_fields.h"
#include "skein/record/jsonl.h"
#include "skein/train/replica.h"

namespace skein {
namespace {

// The checkpoint elsewhere from which the run began; "": it began from initial weights.
std::string origin_of(const Lineage& lineage) {
  std::vector<Timeline> timelines = lineage.ancestors;
  timelines.insert(timelines.begin(), lineage.timeline);
  for (const Timeline& timeline : timelines) {
    if (timeline.parent && fs::path(timeline.parent->path).is_absolute()) {
      return timeline.parent->path;
    }
  }
  return "";
}

// The newest good checkpoint of the run after at most `step` steps; null: there is none, and the
// run began from initial weights.
std::unique_ptr<CheckpointReader> checkpoint_before(const Config& config, int64_t step) {
  Lineage lineage = lineage_patiently(checkpoint_dir(config));
  const std::string origin = origin_of(lineage);
  std::erase_if(lineage.checkpoints, [&](const CheckpointInfo& info) { return info.step > step; });
  const auto found = find_newest_good(lineage, [](const CheckpointInfo& info, const Error& why) {
    log::warn("passing over the checkpoint {}: {}", info.path.string(), why.what());
  });
  if (found) return std::make_unique<CheckpointReader>(found->path);
  if (origin.empty()) return nullptr;
  auto reader = std::make_unique<CheckpointReader>(origin);
  if (reader->state().step <= step) return reader;
  fail(ErrorCode::kUsage, "step {} came before this run, which began from step {} of {}", step + 1,
       reader->state().step, origin);
}

void check_is_of_run(const Config& config, const RunInputs& inputs,
                     const CheckpointReader& checkpoint) {
  const Json now = run_configuration(config, inputs.model(), inputs.content());
  accept_checkpoint(checkpoint, now, needed_tensors(inputs.model(), config.precision), config.run);
}

int num_readers(const Config& config) {
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  return static_cast<int>(std::min(cores, config.batch.global_sequences));
}

// The newest step that the run wrote down, also where it went back since; nothing: it wrote none.
std::optional<int64_t> newest_step(const fs::path& run) {
  constexpr size_t kEndBytes = 1 << 20;
  std::optional<int64_t> newest;
  for_each_json_line(
      run / "metrics.jsonl",
      [&](const Json& json) { newest = std::max(newest.value_or(0), integer_or(json, "step", 0)); },
      kEndBytes);
  return newest;
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

class Explainer {
 public:
  Explainer(const Config& config, const StepQuestion& question)
      : config_(config), skipped_(skipped_by_run(config)), inputs_(config_, false) {
    config_.data.validation.clear();
    config_.data.validation_set.clear();
    inputs_.open_corpora({.end_lane = config_.batch.global_sequences});
    answer_.batch = question.batch > 0 ? question.batch : skipped_.batch_of(question.step);
    answer_.step = skipped_.steps_before(answer_.batch) + 1;
    answer_.is_skipped = skipped_.contains(answer_.batch);
    if (!answer_.is_skipped) check_was_trained(config_, answer_.step);
    checkpoint_ = checkpoint_before(config_, answer_.step - 1);
    if (checkpoint_) {
      check_is_of_run(config_, inputs_, *checkpoint_);
      answer_.weights_from = checkpoint_->path().string();
      answer_.weights_step = checkpoint_->state().step;
      states_ =
          lanes_from_json(checkpoint_->state().lanes, inputs_.training(), answer_.weights_from);
      states_batch_ = skipped_.batch_of(answer_.weights_step);
    }
    device_ = training_device(config_of_one_row(config_));
    const bool replays = question.exact && answer_.weights_step < answer_.step - 1;
    Replica::State state;
    if (replays) state = replay();
    explain(replays ? &state : nullptr);
  }

  StepAnswer take() { return std::move(answer_); }

 private:
  // The state with which the step began.
  Replica::State replay() {
    const int64_t width =
        checkpoint_ ? checkpoint_->state().reduction_width : config_.parallel.reduction_width;
    const Config config = config_of_replica(config_, width);
    Replica replica(config, inputs_.model(), *device_, checkpoint_.get());
    replica.load(checkpoint_.get());
    const LearningRateSchedule schedule = learning_rate_schedule(config_.optimizer);
    const int64_t first = answer_.weights_step + 1;
    Loader loader(inputs_.training(),
                  {.end_lane = config_.batch.global_sequences,
                   .first_step = first,
                   .skipped = skipped_,
                   .num_threads = num_readers(config_)},
                  states_);
    for (int64_t step = first; step < answer_.step; ++step) {
      replica.runner().train(loader.next(), step, schedule.at(step));
    }
    answer_.weights_step = answer_.step - 1;
    return replica.take();
  }

  void tell_origins() {
    std::vector<CorpusOrigins> origins;
    for (size_t i = 0; i < inputs_.training().parts().size(); ++i) {
      origins.emplace_back(inputs_.training_corpus(i));
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
    const Batch batch = batch_of_step(inputs_.training(), answer_.batch, states_batch_, states_,
                                      num_readers(config_), &segments);
    const Config config = config_of_one_row(config_);
    Replica replica(config, inputs_.model(), *device_, checkpoint_.get());
    const auto restore = [&] {
      replayed != nullptr ? replica.put(*replayed) : replica.load(checkpoint_.get());
    };
    restore();
    answer_.is_exact = answer_.weights_step == answer_.step - 1;
    answer_.documents =
        document_effects(replica.runner(), batch, segments, inputs_.tokenizer(), restore);
    tell_origins();
    double loss = 0;
    for (const DocumentEffect& document : answer_.documents) {
      loss += document.loss * static_cast<double>(document.num_labels);
    }
    answer_.loss = loss / static_cast<double>(batch.num_label_tokens);
  }

  Config config_;
  SkippedBatches skipped_;
  RunInputs inputs_;
  StepAnswer answer_;
  std::unique_ptr<CheckpointReader> checkpoint_;
  std::vector<MixtureState> states_;
  int64_t states_batch_ = 0;
  std::unique_ptr<Device> device_;
};

}  // namespace

StepAnswer explain_step(const Config& config, const StepQuestion& question) {
  return Explainer(config, question).take();
}

}  // namespace skein
