#include "skein/weights/init_source.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "skein/base/log.h"
#include "skein/config/run_identity.h"
#include "skein/model/decoder.h"
#include "skein/weights/initialize.h"

namespace skein {
namespace {

using decoder_names::kEmbeddingWeight;
using decoder_names::kHeadWeight;

// Buffers in older exports; they can be recomputed from the configuration.
bool is_buffer(std::string_view name) { return name.ends_with(".rotary_emb.inv_freq"); }

std::string describe(const Tokenizer& tokenizer) {
  return fmt::format("{} tokens, xxh3 {}", tokenizer.vocab_size(),
                     tokenizer.content_hash().substr(0, 8));
}

// Skips a source whose tokenizer is missing or cannot be read.
void compare_tokenizers(const ModelSource& source, const Tokenizer& now,
                        std::vector<Change>& changes) {
  if (source.tokenizer().empty()) return;
  try {
    const auto theirs = Tokenizer::load(source.tokenizer());
    if (theirs->content_hash() == now.content_hash()) return;
    changes.push_back({"data.tokenizer", describe(*theirs), describe(now), ChangeKind::kMeaning});
  } catch (const Error& error) {
    log::info("the tokenizer of {} is not compared: {}", source.path().string(), error.what());
  }
}

// Text for an error, such as ": attention_bias is false, mlp_bias is false".
std::string biases_text(const DecoderConfig& model) {
  const Json json = to_hugging_face_json(model, DType::kF32);
  std::string text;
  for (const auto& [key, value] : json.items()) {
    if (key.find("bias") == key.npos) continue;
    text += fmt::format("{}{} is {}", text.empty() ? ": " : ", ", key, value.dump());
  }
  return text;
}

// Some exports store a tied head beside the embedding. Both must then be the same matrix.
void check_tied_head(const ModelSource& source, const Shape& shape) {
  source.check_shape(kHeadWeight, shape);
  for_each_piece(Box{{0, 0}, shape}, [&](const Box& piece, int64_t) {
    std::vector<float> embedding(static_cast<size_t>(piece.shape.num_elements()));
    std::vector<float> head(embedding.size());
    source.read(kEmbeddingWeight, piece, DType::kF32, std::as_writable_bytes(std::span(embedding)));
    source.read(kHeadWeight, piece, DType::kF32, std::as_writable_bytes(std::span(head)));
    if (std::memcmp(embedding.data(), head.data(), head.size() * sizeof(float)) == 0) return;
    fail(ErrorCode::kInvalid,
         "{}: tie_word_embeddings is true, but {} differs from {}: expected the same matrix in "
         "both, or tie_word_embeddings = false",
         source.path().string(), kHeadWeight, kEmbeddingWeight);
  });
}

}  // namespace

std::string take_source_tokenizer(Config& config) {
  const std::string& source = config.model.init_from;
  if (!config.data.tokenizer.empty() || source.empty()) return "";
  require_init_from(source);
  config.data.tokenizer = source_tokenizer(source);
  if (config.data.tokenizer.empty()) {
    fail(ErrorCode::kUsage,
         "data.tokenizer is not set, and model.init_from '{}' has none: expected a tokenizer.model "
         "or tokenizer.json in it, or data.tokenizer = the folder of its tokenizer",
         source);
  }
  return fmt::format("data.tokenizer is not set: taking that of model.init_from, {}",
                     config.data.tokenizer);
}

void check_tensors(const ModelSource& source, const DecoderConfig& model) {
  std::set<std::string, std::less<>> needed;
  for (const ParameterSpec& spec : parameter_specs(model)) {
    source.check_shape(spec.name, spec.shape);
    needed.insert(spec.name);
  }
  std::vector<std::string> unknown;
  for (const std::string& name : source.tensor_names()) {
    if (needed.contains(name) || is_buffer(name)) continue;
    if (name == kHeadWeight && model.tie_word_embeddings) {
      check_tied_head(source, Shape{model.vocab_size, model.hidden_size});
    } else {
      unknown.push_back(name);
    }
  }
  if (unknown.empty()) return;
  fail(ErrorCode::kInvalid,
       "{} has a tensor '{}'{} that the model has no place for; without it the weights compute "
       "something else. Expected a {} as its config.json describes it{}",
       source.path().string(), unknown.front(),
       unknown.size() == 1 ? "" : fmt::format(" and {} more", unknown.size() - 1),
       model.family->architecture, unknown.front().ends_with(".bias") ? biases_text(model) : "");
}

void check_source(const ModelSource& source, const DecoderConfig& model, const Tokenizer& tokenizer,
                  const std::string& accepted) {
  std::vector<Change> changes = compare_models(source.config(), model, false);
  compare_tokenizers(source, tokenizer, changes);
  refuse_changes(changes, accepted, source.path().string(),
                 "Give [model] and data.tokenizer what its weights were trained with (without "
                 "hf_config the model is the source's own)");
  check_tensors(source, model);
}

}  // namespace skein
