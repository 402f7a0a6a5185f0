// Any text as an expression is refused, or cuts texts into parts that cover them.
#include <cstdint>
#include <string_view>

#include "skein/base/error.h"
#include "skein/bpe/steps/pre_tokenizer.h"
#include "skein/bpe/unicode/invalid_utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace skein::bpe;
  if (size > 4096) return 0;
  try {
    SplitStep step{.expression = std::make_shared<const Expression>(
                       std::string_view(reinterpret_cast<const char*>(data), size))};
    for (const auto behavior :
         {SplitStep::Behavior::kIsolated, SplitStep::Behavior::kMergedWithNext,
          SplitStep::Behavior::kMergedWithPrevious, SplitStep::Behavior::kContiguous}) {
      step.behavior = behavior;
      const PreTokenizer pre_tokenizer{.steps = {step}};
      PreTokenizer::Session session;
      for (const std::string_view text :
           {std::string_view("it's aaaa 123\r\n  日本 \u00e9\u0301 'S x_y"), std::string_view("a"),
            std::string_view()}) {
        pre_tokenizer.split(text, true, session);
        size_t at = 0;
        for (const Span& word : session.words) {
          if (word.begin != at || word.end <= at) __builtin_trap();
          at = word.end;
        }
        if (at != text.size()) __builtin_trap();
      }
    }
  } catch (const skein::Error&) {
  }
  return 0;
}
