#include "skein/weights/init_source.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "skein/base/text/log.h"
#include "skein/config/run/identity.h"
#include "skein/model/decoder.h"
#include "skein/objects/url.h"
#include "skein/weights/initialize.h"
#include "skein/weights/source_names.h"

namespace skein {
namespace {

using decoder_names::kEmbeddingWeight;
using decoder_names::kHeadWeight;

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
         "both, or `--set model.tie_word_embeddings=false`, if the head is a matrix of its own",
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
  for (const ParameterSpec& spec : parameter_specs(model)) needed.insert(spec.name);
  std::vector<std::string> unknown, missing;
  for (const std::string& name : source.tensor_names()) {
    if (needed.contains(name) || is_buffer(name, source.stored_dtype(name))) continue;
    if (name != kHeadWeight || !model.tie_word_embeddings) unknown.push_back(name);
  }
  for (const ParameterSpec& spec : parameter_specs(model)) {
    if (!source.has(spec.name)) missing.push_back(spec.name);
  }
  if (!missing.empty() || !unknown.empty()) {
    refuse_tensors(source.path().string(), model, missing, unknown, source.is_hugging_face());
  }
  for (const ParameterSpec& spec : parameter_specs(model)) {
    source.check_shape(spec.name, spec.shape);
  }
  if (model.tie_word_embeddings && source.has(kHeadWeight)) {
    check_tied_head(source, Shape{model.vocab_size, model.hidden_size});
  }
}

void check_names_of_source(const Config& config, const DecoderConfig& model) {
  const fs::path folder = config.model.init_from;
  if (folder.empty() || is_object_url(folder)) return;
  if (!fs::exists(folder / "config.json") || fs::exists(folder / "manifest.json")) return;
  check_tensors(ModelSource::opened_elsewhere(folder), model);
}

void check_source(const ModelSource& source, const DecoderConfig& model, const Tokenizer& tokenizer,
                  const std::string& accepted) {
  // Whether the head is tied is what the tensors say, where config.json does not know better.
  DecoderConfig theirs = source.config();
  if (source.is_hugging_face() && source.has(kHeadWeight) != model.tie_word_embeddings) {
    theirs.tie_word_embeddings = model.tie_word_embeddings;
  }
  std::vector<Change> changes = compare_models(theirs, model, false);
  compare_tokenizers(source, tokenizer, changes);
  refuse_changes(changes, accepted, source.path().string(),
                 "Give [model] and data.tokenizer what its weights were trained with (without "
                 "hf_config the model is the source's own)");
  check_tensors(source, model);
}

}  // namespace skein
