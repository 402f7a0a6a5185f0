// How a tokenizer.json cuts a text into the words in which it merges: steps, each of which cuts
// what the one before left.
//
//   Split      by an expression or a text, which stay, go, or join what is beside them; Digits,
//              Punctuation and Whitespace are such with an expression of one set
//   ByteLevel  GPT-2's pattern; a space before each part; bytes spelled by visible characters
//   Metaspace  U+2581 for a space, and one before the text; cut before each
//
// Threads  const; what a thread needs lies in a Session of its own
// Source   https://github.com/huggingface/tokenizers: tokenizers/src/pre_tokenizers,
//          tokenizer/pattern.rs and normalizer.rs (NormalizedString::split)
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "skein/bpe/expression/expression.h"

namespace skein::bpe {

struct SplitStep {
  enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
  std::shared_ptr<const Expression> expression;  // null: `text`
  std::string text;
  Behavior behavior = Behavior::kIsolated;
  bool invert = false;  // what is between the matches counts as they do
};

struct ByteLevelStep {
  bool add_prefix_space = false;
  bool use_regex = true;
  bool spells = true;  // otherwise the text keeps its bytes: who merges knows them
};

struct MetaspaceStep {
  enum class Prepend { kFirst, kNever, kAlways };
  std::string replacement = "\u2581";
  Prepend prepend = Prepend::kAlways;
  bool split = true;
};

using PreTokenizerStep = std::variant<SplitStep, ByteLevelStep, MetaspaceStep>;

class PreTokenizer {
 public:
  struct Session {
    std::string_view text;    // what the steps made of the text
    std::vector<Span> words;  // in it, in order; none is empty

    Matcher matcher;
    std::string buffers[2], classes;
    std::vector<Span> next, found;
    std::vector<std::pair<Span, bool>> matches;  // and what is between them
  };

  std::vector<PreTokenizerStep> steps;

  // Leaves the words of `text` in the session. is_first: it begins the document.
  void split(std::string_view text, bool is_first, Session& session) const;
};

}  // namespace skein::bpe
