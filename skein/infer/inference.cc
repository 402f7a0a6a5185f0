#include "skein/infer/inference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "skein/base/numbers/philox.h"
#include "skein/base/text/units.h"
#include "skein/compile/inference_programs.h"
#include "skein/data/lanes/batch.h"
#include "skein/model/decoder.h"
#include "skein/weights/init_source.h"
#include "skein/weights/initialize.h"

namespace skein {
namespace {

// The programs for one padded length, with the weights loaded.
class InferenceModel {
 public:
  InferenceModel(const ModelSource& source, Device& device, DecoderPurpose purpose, int64_t length)
      : config_(source.config()),
        length_(length),
        programs_(
            purpose == DecoderPurpose::kScore
                ? scoring_programs(source.config(), DType::kF32, length, device.kernels())
                : generation_programs(source.config(), source.dtype(), length, device.kernels())),
        executor_(device, programs_) {
    check_tensors(source, source.config());
    source.load_parameters(source.config(), executor_);
    for (const DecoderTable& table : decoder_tables(config_, length)) {
      if (table.changes_beyond > 0) changes_beyond_ = table.changes_beyond;
    }
  }

  Executor& executor() { return executor_; }

  // Padding comes after the tokens, so with causal attention no token attends to it.
  void run(std::span<const int32_t> tokens) {
    const auto num_tokens = static_cast<int64_t>(tokens.size());
    const bool is_long = changes_beyond_ > 0 && num_tokens > changes_beyond_;
    if (is_long != has_tables_of_long_) {
      upload_tables(executor_, config_, length_, num_tokens);
      has_tables_of_long_ = is_long;
    }
    std::vector<int32_t> padded(tokens.begin(), tokens.end());
    padded.resize(static_cast<size_t>(length_), tokens.back());
    std::vector<int32_t> positions(padded.size());
    std::iota(positions.begin(), positions.end(), 0);
    const std::vector<int32_t> starts(padded.size(), 0);
    upload("tokens", padded);
    upload("positions", positions);
    upload("attention_start", starts);
    if (executor_.has("labels")) {
      std::vector<int32_t> labels(padded.size(), kNoLabel);
      std::copy(tokens.begin() + 1, tokens.end(), labels.begin());
      upload("labels", labels);
    }
    executor_.run("forward");
  }

 private:
  void upload(const char* name, const std::vector<int32_t>& values) {
    executor_.upload(name, values.data(), static_cast<int64_t>(values.size() * 4));
  }

  const DecoderConfig& config_;
  int64_t length_;
  int64_t changes_beyond_ = 0;              // DecoderTable
  std::optional<bool> has_tables_of_long_;  // none: no tables yet
  ProgramSet programs_;
  Executor executor_;
};

void check_tokens(const DecoderConfig& config, std::span<const int32_t> tokens, size_t index) {
  if (tokens.empty()) fail(ErrorCode::kInvalid, "sequence {} is empty", index);
  const auto length = static_cast<int64_t>(tokens.size());
  if (length > config.max_position_embeddings) {
    fail(ErrorCode::kInvalid, "sequence {} has {} tokens: the model has {} positions", index,
         length, config.max_position_embeddings);
  }
  if (const TextLimit limit = text_limit(config); length > limit.tokens) {
    fail(ErrorCode::kInvalid,
         "sequence {} has {} tokens: expected at most {}, the model's {}: Skein has no attention "
         "over a shorter window",
         index, length, limit.tokens, limit.key);
  }
  for (const int32_t token : tokens) {
    if (token < 0 || token >= config.vocab_size) {
      fail(ErrorCode::kInvalid, "sequence {} has the token id {}: expected 0 to {}", index, token,
           config.vocab_size - 1);
    }
  }
}

int64_t padded_length(const DecoderConfig& config, int64_t length) {
  return std::min(round_up(length, 64), config.max_position_embeddings);
}

}  // namespace

std::vector<std::vector<float>> score_tokens(const ModelSource& source, Device& device,
                                             const std::vector<std::vector<int32_t>>& sequences) {
  for (size_t i = 0; i < sequences.size(); ++i) check_tokens(source.config(), sequences[i], i);
  // Grouped by length, so that only one set of programs exists at a time.
  std::map<int64_t, std::vector<size_t>> by_length;
  for (size_t i = 0; i < sequences.size(); ++i) {
    by_length[padded_length(source.config(), static_cast<int64_t>(sequences[i].size()))].push_back(
        i);
  }
  std::vector<std::vector<float>> result(sequences.size());
  for (const auto& [length, indices] : by_length) {
    InferenceModel model(source, device, DecoderPurpose::kScore, length);
    std::vector<float> loss(static_cast<size_t>(length));
    for (const size_t index : indices) {
      model.run(sequences[index]);
      model.executor().download("token_loss", loss.data(), length * 4);
      std::vector<float>& logprobs = result[index];
      logprobs.push_back(std::numeric_limits<float>::quiet_NaN());
      for (size_t t = 0; t + 1 < sequences[index].size(); ++t) logprobs.push_back(-loss[t]);
    }
  }
  return result;
}

int32_t sample_token(std::span<const float> logits, double temperature, double top_p, float uniform,
                     int64_t top_k) {
  const auto likeliest = std::max_element(logits.begin(), logits.end());
  if (temperature <= 0) return static_cast<int32_t>(likeliest - logits.begin());
  std::vector<std::pair<double, int32_t>> weights;
  double total = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double weight = std::exp((static_cast<double>(logits[i]) - *likeliest) / temperature);
    weights.emplace_back(weight, static_cast<int32_t>(i));
    total += weight;
  }
  // A stable sort keeps equal probabilities in the order of ids, so that sampling is deterministic.
  std::stable_sort(weights.begin(), weights.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (top_k > 0 && top_k < static_cast<int64_t>(weights.size())) {
    weights.resize(static_cast<size_t>(top_k));
    total = 0;
    for (const auto& [weight, id] : weights) total += weight;
  }
  double kept = 0;
  size_t count = 0;
  while (count < weights.size() && (count == 0 || kept < top_p * total)) {
    kept += weights[count++].first;
  }
  double left = static_cast<double>(uniform) * kept;
  for (size_t i = 0; i < count; ++i) {
    left -= weights[i].first;
    if (left <= 0) return weights[i].second;
  }
  return weights[count - 1].second;
}

void generate_tokens(const ModelSource& source, Device& device, std::vector<int32_t> prompt,
                     const GenerateOptions& options, const std::function<void(int32_t)>& emit) {
  const DecoderConfig& config = source.config();
  check_tokens(config, prompt, 0);
  const int64_t limit =
      std::min(static_cast<int64_t>(prompt.size()) + options.max_tokens, text_limit(config).tokens);
  InferenceModel model(source, device, DecoderPurpose::kGenerate, padded_length(config, limit));
  const Philox philox(options.seed, RandomPurpose::kSampling, 0, 0);
  std::vector<float> logits(static_cast<size_t>(config.vocab_size));
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  std::vector<int32_t> padding;
  for (int32_t id = 0; options.has_token && id < config.vocab_size; ++id) {
    if (!options.has_token(id)) padding.push_back(id);
  }
  while (static_cast<int64_t>(prompt.size()) < limit) {
    model.executor().upload_scalar<int32_t>("last_row", static_cast<int32_t>(prompt.size()) - 1);
    model.run(prompt);
    model.executor().download("logits", logits.data(), config.vocab_size * 4);
    for (const int32_t id : padding) logits[static_cast<size_t>(id)] = kNever;
    const int32_t token =
        sample_token(logits, options.temperature, options.top_p,
                     Philox::to_uniform(philox.word(prompt.size())), options.top_k);
    const auto& ends = options.eos_ids;
    if (std::find(ends.begin(), ends.end(), token) != ends.end()) return;
    prompt.push_back(token);
    emit(token);
  }
}

}  // namespace skein
