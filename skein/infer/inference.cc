#include "skein/infer/inference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "skein/base/text/units.h"
#include "skein/compile/inference_programs.h"
#include "skein/data/lanes/batch.h"
#include "skein/infer/engine.h"
#include "skein/infer/sampling.h"
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

// Whether the model's tables depend on the length of such a text (dynamic RoPE): keys in a cache
// would have been rotated by those of a shorter one.
bool has_tables_of_its_own(const DecoderConfig& config, int64_t length) {
  const std::vector<DecoderTable> tables = decoder_tables(config, length);
  return std::any_of(tables.begin(), tables.end(), [&](const DecoderTable& table) {
    return table.changes_beyond > 0 && length > table.changes_beyond;
  });
}

std::vector<int32_t> ids_without_token(const DecoderConfig& config,
                                       const GenerateOptions& options) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; options.has_token && id < config.vocab_size; ++id) {
    if (!options.has_token(id)) ids.push_back(id);
  }
  return ids;
}

SamplingOptions sampling_of(const GenerateOptions& options, std::span<const int32_t> never) {
  return {.temperature = options.temperature,
          .top_p = options.top_p,
          .top_k = options.top_k,
          .seed = options.seed,
          .never = never};
}

bool ends_text(const GenerateOptions& options, int32_t token) {
  const auto& ends = options.eos_ids;
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

// Those of `sequences` that `which` lists.
void score_without_cache(const ModelSource& source, Device& device,
                         const std::vector<std::vector<int32_t>>& sequences,
                         const std::vector<size_t>& which,
                         std::vector<std::vector<float>>& result) {
  // Grouped by length, so that only one set of programs exists at a time.
  std::map<int64_t, std::vector<size_t>> by_length;
  for (const size_t i : which) {
    by_length[padded_length(source.config(), std::ssize(sequences[i]))].push_back(i);
  }
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
}

void generate_without_cache(const ModelSource& source, Device& device, std::vector<int32_t> prompt,
                            const GenerateOptions& options,
                            const std::function<void(int32_t)>& emit) {
  const DecoderConfig& config = source.config();
  const int64_t limit =
      std::min(static_cast<int64_t>(prompt.size()) + options.max_tokens, text_limit(config).tokens);
  InferenceModel model(source, device, DecoderPurpose::kGenerate, padded_length(config, limit));
  std::vector<float> logits(static_cast<size_t>(config.vocab_size));
  const std::vector<int32_t> never = ids_without_token(config, options);
  const auto num_given = std::ssize(prompt);
  while (static_cast<int64_t>(prompt.size()) < limit) {
    model.executor().upload_scalar<int32_t>("last_row", static_cast<int32_t>(prompt.size()) - 1);
    model.run(prompt);
    model.executor().download("logits", logits.data(), config.vocab_size * 4);
    const int32_t token = next_token(logits, sampling_of(options, never), {prompt, num_given});
    if (ends_text(options, token)) return;
    prompt.push_back(token);
    emit(token);
  }
}

}  // namespace

std::vector<std::vector<float>> score_tokens(const ModelSource& source, Device& device,
                                             const std::vector<std::vector<int32_t>>& sequences) {
  const DecoderConfig& config = source.config();
  std::vector<size_t> short_ones, long_ones;  // by whether they share the model's tables
  int64_t longest = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    check_tokens(config, sequences[i], i);
    const auto length = std::ssize(sequences[i]);
    const bool is_long = has_tables_of_its_own(config, length);
    (is_long ? long_ones : short_ones).push_back(i);
    if (!is_long) longest = std::max(longest, length);
  }
  std::vector<std::vector<float>> result(sequences.size());
  if (!long_ones.empty()) score_without_cache(source, device, sequences, long_ones, result);
  if (short_ones.empty()) return result;
  TextEngine engine(source, device,
                    {.compute_dtype = DType::kF32,
                     .max_positions = longest,
                     .max_sequences = std::clamp<int64_t>(std::ssize(short_ones), 1, 64),
                     .cache_bytes = kUsualCacheBytes});
  for (const size_t i : short_ones) {
    result[i].push_back(std::numeric_limits<float>::quiet_NaN());
    if (sequences[i].size() < 2) continue;
    engine.add({.tokens = sequences[i],
                .score_from = 1,
                .on_scores = [&result, i](std::span<const TokenScore> scores) {
                  for (const TokenScore& score : scores) result[i].push_back(score.logprob);
                }});
  }
  engine.run_all();
  return result;
}

void generate_tokens(const ModelSource& source, Device& device, std::vector<int32_t> prompt,
                     const GenerateOptions& options, const std::function<void(int32_t)>& emit) {
  const DecoderConfig& config = source.config();
  check_tokens(config, prompt, 0);
  const int64_t limit =
      std::min(std::ssize(prompt) + options.max_tokens, text_limit(config).tokens);
  if (has_tables_of_its_own(config, limit)) {
    return generate_without_cache(source, device, std::move(prompt), options, emit);
  }
  const int64_t max_new_tokens = limit - std::ssize(prompt);
  if (max_new_tokens <= 0) return;
  TextEngine engine(source, device,
                    {.compute_dtype = source.dtype(),
                     .max_positions = limit,
                     .max_sequences = 1,
                     .max_head_rows = 1});
  const std::vector<int32_t> never = ids_without_token(config, options);
  engine.add({.tokens = std::move(prompt),
              .max_new_tokens = max_new_tokens,
              .sampling = sampling_of(options, never),
              .on_token = [&](int32_t token, const TokenScore&) {
                if (ends_text(options, token)) return false;
                emit(token);
                return true;
              }});
  engine.run_all();
}

}  // namespace skein
