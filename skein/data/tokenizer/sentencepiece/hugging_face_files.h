// A SentencePiece model in the form that Hugging Face `tokenizers` and transformers read, with the
// same ids.
//
// transformers converts a lone tokenizer.model by rules of its own, which lose BOS and the space
// before a text; so an export contains the files made here. They give libsentencepiece's ids for
// every BPE model without normalization rules; why_no_hugging_face_tokenizer() says what rules out
// the others.
//
//   normalizer      remove_extra_whitespaces by patterns; the space before the text; U+2581 for " "
//   pre_tokenizer   user-defined symbols, cut out of the text
//   model           BPE, a merge for every way in which two pieces make a third, by score
//   post_processor  BOS, if there is one
//
// Text that spells a control token ("<s>") is ordinary text, as in training: `split_special_tokens`
// tells transformers so.
//
// Source  https://huggingface.co/docs/tokenizers/api/models; sentencepiece/src/bpe_model.cc
#pragma once

#include <map>
#include <optional>
#include <string>

#include "skein/base/text/json.h"
#include "skein/data/tokenizer/sentencepiece/additions.h"
#include "skein/data/tokenizer/sentencepiece/sentencepiece_model.h"

namespace skein {

// What Hugging Face `tokenizers` cannot do exactly for `model`, for people; empty if it can.
std::string why_no_hugging_face_tokenizer(const SentencePieceModel& model);

// What a folder says beside its model. Keys of its files that the ids leave alone are kept.
struct HuggingFaceExtras {
  // Written into the configuration, if not empty. Templates spell control tokens, which are then
  // not split.
  std::string chat_template;
  Json config = Json::object();       // tokenizer_config.json
  Json special_map = Json::object();  // special_tokens_map.json
  std::string class_name;             // TokenizerFolder::class_name()
  const AddedSentencePieces* added = nullptr;
  std::optional<int32_t> bos_id, eos_id;  // -1: none; not set: the model's own
};

// tokenizer.json, tokenizer_config.json and special_tokens_map.json, by name. Throws
// Error{kUnsupported} that begins with `where` for models that cannot be written.
std::map<std::string, std::string> hugging_face_tokenizer_files(
    const SentencePieceModel& model, const std::string& where,
    const HuggingFaceExtras& extras = {});

// The tokenizer.json alone.
std::string hugging_face_tokenizer_json(const SentencePieceModel& model,
                                        const HuggingFaceExtras& extras = {});

// The text of a piece or an added token.
std::string token_text(const SentencePieceModel& model, const HuggingFaceExtras& extras,
                       int32_t id);

// Merges a text from characters on, as libsentencepiece does, and returns the resulting pieces.
class PieceMerger {
 public:
  explicit PieceMerger(const SentencePieceModel& model);
  std::vector<std::string> merge(std::string_view text) const;

 private:
  std::map<std::string, float, std::less<>> scores_;
};

}  // namespace skein
