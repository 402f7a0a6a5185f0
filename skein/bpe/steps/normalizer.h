// What a tokenizer.json does to a text before it cuts it into words: steps in order.
//
// Threads  const; what a thread needs lies in a Session of its own
// Source   https://github.com/huggingface/tokenizers: tokenizers/src/normalizers
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "skein/bpe/expression/expression.h"
#include "skein/bpe/unicode/nfc.h"

namespace skein::bpe {

struct FormStep {
  NormalForm form = NormalForm::kC;  // of Unicode 9
};
struct ReplaceStep {
  std::shared_ptr<const Expression> expression;  // null: `text`
  std::string text, content;
};
struct PrependStep {
  std::string text;
};
struct StripStep {
  bool left = true, right = true;
};
struct SpellBytesStep {};  // by the visible characters of byte_alphabet.h

using NormalizerStep = std::variant<FormStep, ReplaceStep, PrependStep, StripStep, SpellBytesStep>;

class Normalizer {
 public:
  struct Session {
    std::string buffers[2], classes;
    std::vector<Span> found;
    Matcher matcher;
  };

  std::vector<NormalizerStep> steps;

  // `text`, or what the session then holds.
  std::string_view apply(std::string_view text, Session& session) const;
};

}  // namespace skein::bpe
