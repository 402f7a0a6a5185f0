#include "skein/evaluate/encode/text_encoder.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/jinja/values/text.h"

namespace skein {

TextEncoder::TextEncoder(const Tokenizer& tokenizer, int64_t max_length)
    : tokenizer_(tokenizer), max_length_(max_length) {
  const int id = tokenizer.bos_id() >= 0 ? tokenizer.bos_id() : tokenizer.eos_id();
  if (id < 0) {
    fail(ErrorCode::kUnsupported,
         "the tokenizer has neither a token for the beginning of a text nor one for its end: "
         "expected one of them, which stands for an empty context");
  }
  prefix_ = id;
}

EncodedText TextEncoder::pair(std::string_view context, std::string_view continuation) {
  EncodedText encoded;
  if (context.empty()) {
    tokenizer_.parse(continuation, encoded.tokens);
    if (encoded.tokens.empty() || encoded.tokens.front() != prefix_) {
      encoded.tokens.insert(encoded.tokens.begin(), prefix_);
    }
    encoded.score_from = 1;
  } else {
    const std::string_view stripped = jinja::strip(context, jinja::Side::kRight, nullptr);
    encoded.tokens = tokens_with_bos(tokenizer_, stripped);
    encoded.score_from = std::ssize(encoded.tokens);
    const std::vector<int32_t> whole =
        tokens_with_bos(tokenizer_, std::string(context).append(continuation));
    for (size_t i = encoded.tokens.size(); i < whole.size(); ++i) {
      encoded.tokens.push_back(whole[i]);
    }
  }
  const int64_t num_scored = std::ssize(encoded.tokens) - encoded.score_from;
  if (num_scored <= 0) {
    fail(ErrorCode::kInvalid, "the continuation \"{}\" adds no token to its context: expected one",
         continuation);
  }
  if (num_scored > max_length_) {
    fail(ErrorCode::kInvalid, "a continuation has {} tokens, and the model is meant for {}",
         num_scored, max_length_);
  }
  const int64_t cut = std::ssize(encoded.tokens) - (max_length_ + 1);
  if (cut > 0) {
    ++num_cut_;
    encoded.tokens.erase(encoded.tokens.begin(), encoded.tokens.begin() + cut);
    encoded.score_from -= cut;
  }
  if (encoded.score_from < 1) {
    fail(ErrorCode::kInvalid, "the context of \"{}\" has no token: expected one", continuation);
  }
  return encoded;
}

std::vector<EncodedText> TextEncoder::rolling(std::string_view text) const {
  const std::vector<int32_t> tokens = tokens_with_bos(tokenizer_, text);
  const auto size = std::ssize(tokens);
  std::vector<EncodedText> pieces;
  for (int64_t begin = 0; begin < size;) {
    const int64_t end = std::min(begin + max_length_, size);
    // What goes before the scored tokens: the prefix of the first piece, else as many tokens as
    // there is room for, at least one.
    EncodedText& piece = pieces.emplace_back();
    const int64_t first = std::max<int64_t>(end - max_length_ - 1, 0);
    if (begin == 0) {
      piece.tokens = {prefix_};
      piece.tokens.insert(piece.tokens.end(), tokens.begin(), tokens.begin() + end);
      piece.score_from = 1;
    } else {
      piece.tokens.assign(tokens.begin() + first, tokens.begin() + end);
      piece.score_from = begin - first;
    }
    begin = end;
  }
  return pieces;
}

std::vector<int32_t> TextEncoder::prompt(std::string_view context, int64_t max_new_tokens) {
  std::vector<int32_t> tokens = tokens_with_bos(tokenizer_, context);
  if (tokens.empty()) tokens.push_back(prefix_);
  const int64_t room = max_length_ - max_new_tokens;
  if (room < 1) {
    fail(ErrorCode::kInvalid,
         "a task generates up to {} tokens, and the model is meant for {}: there is no room for a "
         "context",
         max_new_tokens, max_length_);
  }
  if (std::ssize(tokens) > room) {
    ++num_cut_;
    tokens.erase(tokens.begin(), tokens.end() - room);
  }
  return tokens;
}

}  // namespace skein
