#include "skein/prepare/clean/words/english_word_tables.h"

#include <algorithm>
#include <set>

#include "skein/prepare/clean/words/english_exceptions.h"
#include "skein/prepare/clean/words/english_words.h"

namespace skein {
namespace {

// Those that spaCy splits from numbers.
const std::set<std::string_view>& units() {
  static const std::set<std::string_view> all = {
      "km",   "km²",  "km³", "m",  "m²",  "m³",   "dm",    "dm²", "dm³",  "cm",  "cm²",  "cm³",
      "mm",   "mm²",  "mm³", "ha", "µm",  "nm",   "yd",    "in",  "ft",   "kg",  "g",    "mg",
      "µg",   "t",    "lb",  "oz", "m/s", "km/h", "kmh",   "mph", "hPa",  "Pa",  "mbar", "mb",
      "MB",   "kb",   "KB",  "gb", "GB",  "tb",   "TB",    "T",   "G",    "M",   "K",    "%",
      "км",   "км²",  "км³", "м",  "м²",  "м³",   "дм",    "дм²", "дм³",  "см",  "см²",  "см³",
      "мм",   "мм²",  "мм³", "нм", "кг",  "г",    "мг",    "м/с", "км/ч", "кПа", "Па",   "мбар",
      "Кб",   "КБ",   "кб",  "Мб", "МБ",  "мб",   "Гб",    "ГБ",  "гб",   "Тб",  "ТБ",   "тбكم",
      "كم²",  "كم³",  "م",   "م²", "م³",  "سم",   "سم²",   "سم³", "مم",   "مم²", "مم³",  "كم",
      "غرام", "جرام", "جم",  "كغ", "ملغ", "كوب",  "اكواب", "US$", "C$",   "A$",  "+"};
  return all;
}
constexpr size_t kMaxUnitBytes = 12;

}  // namespace

const EnglishWordTables& EnglishWordTables::get() {
  static const EnglishWordTables tables;
  return tables;
}

EnglishWordTables::EnglishWordTables() {
  phrase_kinds_ = {kPart};
  add_phrases();
  for (const auto& [exception, sizes] : english_exceptions()) {
    exceptions_[exception] = PartSizes(sizes.begin(), sizes.end());
    const uint64_t size_bit = uint64_t{1} << exception.size();
    sizes_by_first_byte_[static_cast<uint8_t>(exception.front())] |= size_bit;
    sizes_by_last_byte_[static_cast<uint8_t>(exception.back())] |= size_bit;
  }
}

const EnglishWordTables::PartSizes* EnglishWordTables::find_exception_of_size(
    std::string_view word) const {
  const auto found = exceptions_.find(word);
  return found == exceptions_.end() ? nullptr : &found->second;
}

// While there are no exceptions yet, words are split by rule alone.
void EnglishWordTables::add_phrases() {
  EnglishWords words_by_rule(this);
  for (const auto& [exception, sizes] : english_exceptions()) {
    if (!words_by_rule.has_affix(exception)) continue;
    std::vector<Word> words;
    words_by_rule.split(exception, 0, exception.size(), words);
    PhraseId phrase = kNoPhrase;
    for (const Word& word : words) {
      const std::string_view text = std::string_view(exception).substr(word.begin, word.size());
      if (phrase == kNoPhrase) may_begin_phrase_[static_cast<uint8_t>(text[0])] = true;
      const auto [entry, is_new] =
          phrases_.emplace(key(phrase, text), static_cast<PhraseId>(phrase_kinds_.size()));
      if (is_new) phrase_kinds_.push_back(kPart);
      phrase = entry->second;
    }
    const bool is_same =
        std::equal(words.begin(), words.end(), sizes.begin(), sizes.end(),
                   [](const Word& word, size_t size) { return word.size() == size; });
    phrase_kinds_[phrase] = is_same ? kSame : kOtherwise;
  }
}

size_t EnglishWordTables::unit_size(std::string_view word) const {
  const std::string_view end = word.substr(word.size() - std::min(word.size(), kMaxUnitBytes + 1));
  const size_t digit = end.find_last_of("0123456789");
  if (digit == std::string_view::npos || digit + 1 == end.size()) return 0;
  const std::string_view unit = end.substr(digit + 1);
  return units().contains(unit) ? unit.size() : 0;
}

}  // namespace skein
