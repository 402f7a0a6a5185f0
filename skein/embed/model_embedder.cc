#include "skein/embed/model_embedder.h"

#include <algorithm>
#include <numeric>

#include "skein/base/error.h"
#include "skein/tensor/dtype.h"
#include "skein/weights/init_source.h"
#include "skein/weights/initialize.h"

namespace skein {

ModelEmbedder::ModelEmbedder(const ModelSource& source, Device& device,
                             const EmbedderOptions& options)
    : options_(options),
      layout_{options.max_tokens, options.max_positions},
      lengths_(layout_.lengths()),
      vocab_size_(source.config().vocab_size),
      hidden_(source.config().hidden_size),
      dim_(options.dim > 0 ? options.dim : hidden_),
      programs_(
          embedding_programs(source.config(), options.compute_dtype, layout_, device.kernels())),
      executor_(device, programs_) {
  if (dim_ > hidden_) {
    fail(ErrorCode::kUsage, "an embedding of {} elements is asked for: the model has {}", dim_,
         hidden_);
  }
  check_tensors(source, source.config());
  source.load_parameters(source.config(), executor_);
  upload_tables(executor_, source.config(), options.max_positions);
}

void ModelEmbedder::check(std::span<const int32_t> text) const {
  if (text.empty()) fail(ErrorCode::kInvalid, "a text is empty: expected at least one token");
  if (std::ssize(text) > options_.max_positions) {
    fail(ErrorCode::kInvalid, "a text has {} tokens: expected at most {}", text.size(),
         options_.max_positions);
  }
  for (const int32_t token : text) {
    if (token < 0 || token >= vocab_size_) {
      fail(ErrorCode::kInvalid, "a text has the token id {}: expected 0 to {}", token,
           vocab_size_ - 1);
    }
  }
}

void ModelEmbedder::run(std::span<const std::span<const int32_t>> texts, int64_t length) {
  const auto count = static_cast<size_t>(layout_.rows(length) * length);
  std::vector<int32_t> tokens(count), positions(count), starts(count);
  for (size_t row = 0; row * static_cast<size_t>(length) < count; ++row) {
    const auto begin = static_cast<int64_t>(row) * length;
    const std::span<const int32_t> text =
        row < texts.size() ? texts[row] : std::span<const int32_t>();
    const auto size = std::ssize(text);
    for (int64_t i = 0; i < length; ++i) {
      const auto at = static_cast<size_t>(begin + i);
      tokens[at] = i < size ? text[static_cast<size_t>(i)] : 0;
      positions[at] = static_cast<int32_t>(i);
      starts[at] = static_cast<int32_t>(i < size ? 0 : size);
    }
  }
  const auto upload = [&](const char* name, const std::vector<int32_t>& values) {
    const View view = executor_.view(name);
    executor_.device().upload(view.data, values.data(), std::ssize(values) * 4);
  };
  upload(decoder_names::kTokens, tokens);
  upload(decoder_names::kPositions, positions);
  upload(decoder_names::kAttentionStart, starts);
  executor_.run(embed_program(length));
  const auto used = static_cast<int64_t>(texts.size()) * length * hidden_;
  states_.resize(static_cast<size_t>(used));
  const View view = executor_.view(decoder_names::kHeadInput);
  if (view.dtype == DType::kF32) {
    executor_.device().download(states_.data(), view.data, used * 4);
    return;
  }
  std::vector<bfloat16> narrow(states_.size());
  executor_.device().download(narrow.data(), view.data, used * 2);
  std::ranges::transform(narrow, states_.begin(),
                         [](bfloat16 value) { return static_cast<float>(value); });
}

void ModelEmbedder::take(std::span<const int32_t> text, int64_t row, int64_t length,
                         std::span<float> out) const {
  const auto states = std::span(states_).subspan(static_cast<size_t>(row * length * hidden_),
                                                 text.size() * static_cast<size_t>(hidden_));
  pool(options_.pooling, states, hidden_, out);
  if (options_.normalize) normalize(out);
}

std::vector<float> ModelEmbedder::embed(std::span<const std::vector<int32_t>> texts,
                                        const std::function<void(int64_t)>& on_tokens) {
  for (const std::vector<int32_t>& text : texts) check(text);
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return texts[a].size() > texts[b].size(); });
  std::vector<float> result(texts.size() * static_cast<size_t>(dim_));
  for (size_t begin = 0; begin < order.size();) {
    const auto longest = std::ssize(texts[order[begin]]);
    const int64_t length = *std::lower_bound(lengths_.begin(), lengths_.end(), longest);
    std::vector<std::span<const int32_t>> batch;
    for (size_t i = begin; i < order.size() && std::ssize(batch) < layout_.rows(length); ++i) {
      batch.emplace_back(texts[order[i]]);
    }
    run(batch, length);
    int64_t tokens = 0;
    for (size_t row = 0; row < batch.size(); ++row) {
      const auto at = order[begin + row] * static_cast<size_t>(dim_);
      take(batch[row], static_cast<int64_t>(row), length,
           std::span(result).subspan(at, static_cast<size_t>(dim_)));
      tokens += std::ssize(batch[row]);
    }
    if (on_tokens) on_tokens(tokens);
    begin += batch.size();
  }
  return result;
}

}  // namespace skein
