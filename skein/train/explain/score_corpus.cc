#include "skein/train/explain/score_corpus.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

#include "skein/base/machine/clock.h"
#include "skein/base/text/log.h"
#include "skein/checkpoint/format/stored_file.h"
#include "skein/comm/local/local_communicator.h"
#include "skein/compile/inference_programs.h"
#include "skein/config/data_feed.h"
#include "skein/data/lanes/loader.h"
#include "skein/model/decoder.h"
#include "skein/train/explain/recall_step.h"
#include "skein/train/explain/replica.h"
#include "skein/train/start/memory_check.h"
#include "skein/train/start/run_algorithms.h"
#include "skein/weights/init_source.h"

namespace skein {
namespace {

constexpr int64_t kUsualLength = 2048;
constexpr double kTellSeconds = 10;

// The configuration of the run that saved the checkpoint.
Config config_of_checkpoint(const fs::path& checkpoint) {
  const Json configuration = CheckpointReader(checkpoint).state().configuration;
  const auto found = configuration.find("config");
  if (found == configuration.end() || !found->is_string()) {
    fail(ErrorCode::kInvalid,
         "{} does not say how its run was configured (configuration.config), and so not how its "
         "rows are made: export it, and score the Hugging Face folder",
         (checkpoint / "manifest.json").string());
  }
  return parse_config(found->get_ref<const std::string&>(), "the checkpoint's configuration");
}

Config config_of_model(const ModelSource& source) {
  Config config;
  config.batch = {.global_sequences = 1, .micro_sequences = 1};
  config.data.sequence_length = std::min(kUsualLength, text_limit(source.config()).tokens);
  config.precision.mode = source.dtype() == DType::kBF16 ? "bf16" : "fp32";
  return config;
}

Config config_to_score(const ModelSource& source, const ScoreQuestion& question) {
  const bool is_checkpoint = is_stored(source.path() / "manifest.json");
  Config config = is_checkpoint ? config_of_checkpoint(source.path()) : config_of_model(source);
  config = config_of_replica(std::move(config), 1);
  config.data.train.clear();
  config.data.source.clear();
  config.device.threads = question.threads;
  const bool is_asked = question.device != "auto";
  if (is_asked || config.device.kind != "cpu") config.device.kind = question.device;
  if (question.sequence_length > 0) config.data.sequence_length = question.sequence_length;
  const TextLimit limit = text_limit(source.config());
  if (config.data.sequence_length <= limit.tokens) return config;
  fail(ErrorCode::kUsage,
       "--sequence-length is {}, and the model is meant for {} tokens at most ({}): expected at "
       "most that",
       config.data.sequence_length, limit.tokens, limit.key);
}

std::unique_ptr<Tokenizer> tokenizer_for_text(const ModelSource& source) {
  if (source.tokenizer().empty()) {
    fail(ErrorCode::kUsage,
         "{} has no tokenizer, and a corpus holds text: expected a tokenizer.model or "
         "tokenizer.json in it",
         source.path().string());
  }
  auto tokenizer = Tokenizer::load(source.tokenizer());
  if (tokenizer->vocab_size() <= source.config().vocab_size) return tokenizer;
  fail(ErrorCode::kUsage, "the tokenizer {} has {} tokens, and the model {} a vocab_size of {}",
       source.tokenizer().string(), tokenizer->vocab_size(), source.path().string(),
       source.config().vocab_size);
}

// Lanes of a few bytes each are no use, and are refused: of a text that small there is one.
void suit_lanes(Config& config, int64_t num_bytes) {
  if (num_bytes / config.batch.global_sequences >= CorpusBlocks::kMinBytesPerLane) return;
  config.batch = {.global_sequences = 1, .micro_sequences = 1};
}

// The model on one device, with programs that only evaluate.
class Evaluator {
 public:
  Evaluator(const Config& config, const ModelSource& source)
      : device_(training_device(config)),
        spec_(step_spec(config, source.config(), parallel_layout(config, source.config(), 1, 0))),
        programs_(evaluation_programs(spec_, device_->kernels())) {
    LocalCommunicator alone("score");
    check_tensors(source, source.config());
    check_memory(alone, *device_, config, spec_, programs_, 0);
    runner_ = std::make_unique<StepRunner>(*device_, programs_, spec_);
    agree_on_algorithms(alone, spec_.layout.mesh, algorithm_kernels(runner_->executor()), {});
    source.load_parameters(source.config(), runner_->executor());
  }

  void evaluate(const Batch& batch, StepRunner::LossSum& sum) { runner_->evaluate(batch, sum); }

 private:
  std::unique_ptr<Device> device_;
  StepSpec spec_;
  ProgramSet programs_;
  std::unique_ptr<StepRunner> runner_;
};

}  // namespace

double CorpusScore::perplexity() const { return std::exp(loss); }

double CorpusScore::bits_per_byte() const {
  return loss * static_cast<double>(num_labels) / std::numbers::ln2 /
         static_cast<double>(num_bytes);
}

CorpusScore score_corpus(const ScoreQuestion& question) {
  const auto start = Clock::now();
  const ModelSource source(question.model);
  Config config = config_to_score(source, question);
  const auto tokenizer = tokenizer_for_text(source);
  suit_lanes(config, open_corpus(question.corpus, "--corpus").num_bytes());
  const int64_t sequences = config.batch.global_sequences;
  const DataFeed feed(question.corpus, *tokenizer, config, source.config().vocab_size, "--corpus",
                      nullptr, sequences);
  ValidationBatches batches(feed.mixture(), {}, sequences, 0);
  const Packer::Holding holding = batches.count(num_readers(config));
  batches.set_rows_of_lane(holding.most_rows);

  Evaluator evaluator(config, source);
  StepRunner::LossSum sum;
  auto told = Clock::now();
  while (const Batch* batch = batches.next()) {
    evaluator.evaluate(*batch, sum);
    if (seconds_since(told) < kTellSeconds) continue;
    log::info("{} of {} batches scored", batch->step, holding.most_rows);
    told = Clock::now();
  }
  const DType dtype = compute_dtype(parse_precision(config.precision.mode));
  return {.model = source.path().string(),
          .loss = sum.mean(),
          .num_labels = sum.num_tokens,
          .num_tokens = holding.tokens,
          .num_bytes = feed.corpus(0).num_bytes(),
          .num_documents = feed.corpus(0).num_documents(),
          .num_batches = holding.most_rows,
          .sequence_length = config.data.sequence_length,
          .document_mask = config.data.document_mask,
          .precision = dtype == DType::kF32 ? "fp32" : "bf16",
          .seconds = seconds_since(start)};
}

}  // namespace skein
