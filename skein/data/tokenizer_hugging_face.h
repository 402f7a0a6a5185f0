// A SentencePiece model as Hugging Face `tokenizers` and transformers read it: the same ids.
//
// transformers converts a lone tokenizer.model by rules of its own, which lose BOS and the space
// before a text; so an export holds the files made here. They give the ids of libsentencepiece for
// every BPE model without rules of normalization; why_no_hugging_face_tokenizer() tells the others.
//
//   normalizer      remove_extra_whitespaces by patterns; the space before the text; U+2581 for " "
//   pre_tokenizer   user-defined symbols, cut out of the text
//   model           BPE, a merge for every way in which two pieces make a third, by score
//   post_processor  BOS, where there is one
//
// Text that spells a control token ("<s>") is ordinary text, as in training: transformers is told
// so by `split_special_tokens`.
//
// Source  https://huggingface.co/docs/tokenizers/api/models; sentencepiece/src/bpe_model.cc
#pragma once

#include <map>
#include <string>

#include "skein/data/tokenizer_model.h"

namespace skein {

// What of `model` Hugging Face `tokenizers` cannot do exactly, for people; empty where it can.
std::string why_no_hugging_face_tokenizer(const SentencePieceModel& model);

// tokenizer.json, tokenizer_config.json and special_tokens_map.json, by name. `chat_template`,
// where there is one, is written into the configuration; templates spell control tokens, which are
// then not split. Throws Error{kUnsupported} that begins with `where` for models that cannot be
// written.
std::map<std::string, std::string> hugging_face_tokenizer_files(
    const SentencePieceModel& model, const std::string& where,
    const std::string& chat_template = "");

// The tokenizer.json alone.
std::string hugging_face_tokenizer_json(const SentencePieceModel& model);

// Merges a piece of text as libsentencepiece does, from characters on: what it ends in.
class PieceMerger {
 public:
  explicit PieceMerger(const SentencePieceModel& model);
  std::vector<std::string> merge(std::string_view text) const;

 private:
  std::map<std::string, float, std::less<>> scores_;
};

}  // namespace skein
