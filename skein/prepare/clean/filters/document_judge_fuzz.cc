// Any text: its words are all that is not white space, in order; what is left of it is UTF-8.
#include <cstdlib>
#include <string>

#include "skein/prepare/clean/filters/document_judge.h"
#include "skein/prepare/clean/personal_data.h"
#include "skein/prepare/clean/repair_text.h"
#include "skein/prepare/read/bytes/utf8_policy.h"

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

void check_words(std::string_view text) {
  skein::DocumentWords document;
  document.read(text);
  std::string words, expected;
  for (const skein::Word& word : document.words()) {
    if (!word.is_space) words += document.word(word);
  }
  const skein::CharacterReader reader;
  for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
    const auto character = reader.first(at, end);
    const auto size = static_cast<size_t>(character.size);
    if ((character.classes & skein::character::kSpace) == 0) expected.append(at, size);
    at += size;
  }
  check(words == expected);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text = skein::replace_invalid_utf8({reinterpret_cast<const char*>(data), size});
  check_words(text);
  skein::CleanRules rules;
  for (const char* setting : {"gopher_repetition=off", "gopher_quality=off", "fineweb=off",
                              "too_few_sentences=off", "curly_bracket=off"}) {
    check(skein::is_utf8(skein::DocumentJudge(rules).judge(text).text));
    rules.set(setting);
  }
  std::string repaired, replaced;
  skein::PersonalDataCounts counts;
  check(skein::is_utf8(skein::repair_text(text, repaired)));
  check(skein::is_utf8(skein::replace_personal_data(text, {true, true, true}, counts, replaced)));
  return 0;
}
