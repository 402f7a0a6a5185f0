#include "skein/prepare/clean/words/english_words.h"

#include <algorithm>

#include "skein/base/text/utf8.h"
#include "skein/prepare/clean/words/english_word_tables.h"
#include "skein/prepare/clean/words/web_address.h"

namespace skein {
namespace {

using ClassifiedCharacter = CharacterReader::ClassifiedCharacter;

bool is_digit(char32_t code) { return code >= '0' && code <= '9'; }

bool is_one_of(char32_t code, std::u32string_view characters) {
  return characters.find(code) != std::u32string_view::npos;
}

size_t count_dots(std::string_view word, size_t at) {
  const size_t end = std::min(word.find_first_not_of('.', at), word.size());
  return end - at;
}

std::string_view part(std::string_view text, const Word& word) {
  return text.substr(word.begin, word.size());
}

// A word of letters alone has neither prefixes nor suffixes nor infixes.
constexpr uint32_t kSplits =
    character::kPrefix | character::kSuffix | character::kIcon | character::kCurrency;

}  // namespace

EnglishWords::EnglishWords() : tables_(&EnglishWordTables::get()) {}
EnglishWords::EnglishWords(const EnglishWordTables* unfinished) : tables_(unfinished) {}

EnglishWords::LineRuns EnglishWords::split(std::string_view text, size_t begin, size_t end,
                                           std::vector<Word>& words) {
  const size_t first_word = words.size();
  LineRuns line;
  bool has_other_exception = false;
  const char* const text_begin = text.data();
  const char* at = text_begin + begin;
  const char* const line_end = text_begin + end;
  const auto offset = [&](const char* place) { return static_cast<uint32_t>(place - text_begin); };
  while (at < line_end) {
    const char* const space = at;
    ClassifiedCharacter character;
    for (; at < line_end; at += character.size) {
      character = reader_.first(at, line_end);
      if ((character.classes & character::kSpace) == 0) break;
    }
    if (at == line_end) break;
    const bool is_blank = at - space == 1 && *space == ' ';
    if (line.num_runs > 0 && !is_blank) words.push_back({offset(space), offset(at), true});
    const char* const run = at;
    uint32_t any = 0, all = ~0U;
    int64_t num_characters = 0;
    for (; at < line_end; at += character.size) {
      character = reader_.first(at, line_end);
      if ((character.classes & character::kSpace) != 0) break;
      any |= character.classes;
      all &= character.classes;
      ++num_characters;
    }
    ++line.num_runs;
    line.longest_run = std::max(line.longest_run, num_characters);
    const Word word{offset(run), offset(at)};
    const size_t first_of_run = words.size();
    if ((all & character::kAlphabetic) != 0 && (any & kSplits) == 0) {
      if (!append_exception(text, word, words)) words.push_back(word);
    } else {
      append_run(text, word, words);
    }
    if (words.size() - first_of_run > 1 && !has_other_exception) {
      has_other_exception = spells_other_exception(text, words, first_of_run);
    }
  }
  if (has_other_exception) join_exceptions(text, words, first_word);
  return line;
}

bool EnglishWords::append_exception(std::string_view text, Word word,
                                    std::vector<Word>& words) const {
  const EnglishWordTables::PartSizes* const sizes = tables_->find_exception(part(text, word));
  if (sizes == nullptr) return false;
  uint32_t begin = word.begin;
  for (const uint8_t size : *sizes) {
    words.push_back({begin, begin + size});
    begin += size;
  }
  return true;
}

// Takes a prefix and a suffix at a time, until neither is left or an exception is.
void EnglishWords::append_run(std::string_view text, Word run, std::vector<Word>& words) {
  suffixes_.clear();
  const auto is_exception = [&](uint32_t begin, uint32_t end) {
    return end > begin && tables_->find_exception(text.substr(begin, end - begin)) != nullptr;
  };
  Word left = run;
  while (left.size() > 0 && !is_exception(left.begin, left.end)) {
    const Word before = left;
    const uint32_t after_prefix = left.begin + static_cast<uint32_t>(prefix_size(part(text, left)));
    if (after_prefix > left.begin && is_exception(after_prefix, left.end)) {
      words.push_back({left.begin, after_prefix});
      left.begin = after_prefix;
      break;
    }
    const uint32_t before_suffix =
        left.end - static_cast<uint32_t>(suffix_size(part(text, {after_prefix, left.end})));
    if (before_suffix < left.end && is_exception(left.begin, before_suffix)) {
      suffixes_.push_back({before_suffix, left.end});
      left.end = before_suffix;
      break;
    }
    if (after_prefix > left.begin) words.push_back({left.begin, after_prefix});
    if (before_suffix < left.end) suffixes_.push_back({before_suffix, left.end});
    left = {after_prefix, before_suffix};
    if (left == before) break;
  }
  if (left.size() > 0 && !append_exception(text, left, words)) {
    if (is_web_address(part(text, left), reader_)) {
      words.push_back(left);
    } else {
      append_inside(text, left, words);
    }
  }
  words.insert(words.end(), suffixes_.rbegin(), suffixes_.rend());
}

void EnglishWords::append_inside(std::string_view text, Word word, std::vector<Word>& words) const {
  const std::string_view inside = part(text, word);
  size_t begin = 0;
  const auto append = [&](size_t first, size_t last) {
    if (last > first) {
      words.push_back(
          {word.begin + static_cast<uint32_t>(first), word.begin + static_cast<uint32_t>(last)});
    }
  };
  for (size_t at = 0; at < inside.size();) {
    const size_t size = infix_size(inside, at);
    if (size == 0) {
      at += static_cast<size_t>(reader_.first(&inside[at], inside.data() + inside.size()).size);
      continue;
    }
    if (at > 0) {  // one at the front stays with what follows
      append(begin, at);
      append(at, at + size);
      begin = at + size;
    }
    at += size;
  }
  append(begin, inside.size());
}

bool EnglishWords::has_affix(std::string_view word) const {
  if (prefix_size(word) > 0 || suffix_size(word) > 0) return true;
  for (size_t at = 0; at < word.size(); ++at) {
    if (!utf8::is_continuation(word[at]) && infix_size(word, at) > 0) return true;
  }
  return false;
}

size_t EnglishWords::prefix_size(std::string_view word) const {
  const char* const end = word.data() + word.size();
  const ClassifiedCharacter first = reader_.first(word.data(), end);
  if ((first.classes & character::kPrefix) != 0) return static_cast<size_t>(first.size);
  if (first.code == '+') return word.size() > 1 && is_digit(static_cast<uint8_t>(word[1])) ? 0 : 1;
  if (first.code == '.') {
    const size_t num_dots = count_dots(word, 0);
    return num_dots > 1 ? num_dots : 0;
  }
  if (word.starts_with("US$")) return 3;
  return word.starts_with("C$") || word.starts_with("A$") ? 2 : 0;
}

// The longest of all that may be split off.
size_t EnglishWords::suffix_size(std::string_view word) const {
  if (word.empty()) return 0;
  const char* const begin = word.data();
  const ClassifiedCharacter last = reader_.last(begin, begin + word.size());
  const auto size = static_cast<size_t>(last.size);
  const std::string_view rest = word.substr(0, word.size() - size);
  const ClassifiedCharacter before =
      rest.empty() ? ClassifiedCharacter{} : reader_.last(begin, begin + rest.size());
  if (last.code == '.') {
    const size_t num_dots = word.size() - (word.find_last_not_of('.') + 1);
    if (num_dots > 1) return num_dots;
    if ((before.classes & character::kBeforePeriod) != 0) return 1;
    const std::string_view more = rest.substr(0, rest.size() - static_cast<size_t>(before.size));
    if (more.empty()) return 0;
    const ClassifiedCharacter second = reader_.last(begin, begin + more.size());
    if ((before.classes & second.classes & character::kUpper) != 0) return 1;
    return second.code == 0xb0 && is_one_of(before.code, U"FfCcKk") ? 1 : 0;
  }
  if ((last.code == 's' || last.code == 'S') && (before.code == '\'' || before.code == 0x2019)) {
    return size + static_cast<size_t>(before.size);
  }
  if (last.code == 0x2026 && before.code == 0x2026) return 2 * size;
  if ((last.classes & character::kSuffix) != 0) return size;
  if ((last.classes & character::kCurrency) != 0 && is_digit(before.code)) return size;
  return tables_->unit_size(word);
}

// What may stand between two words that white space does not separate.
size_t EnglishWords::infix_size(std::string_view word, size_t at) const {
  const char* const end = word.data() + word.size();
  const ClassifiedCharacter here = reader_.first(&word[at], end);
  if (here.code == '.' && count_dots(word, at) > 1) return count_dots(word, at);
  const auto size = static_cast<size_t>(here.size);
  if (here.code == 0x2026 || (here.classes & character::kIcon) != 0) return size;
  if (at == 0) return 0;
  const auto class_at = [&](size_t place) {
    return place < word.size() ? reader_.first(&word[place], end) : ClassifiedCharacter{};
  };
  const ClassifiedCharacter before = reader_.last(word.data(), &word[at]),
                            after = class_at(at + size);
  if (is_one_of(here.code, U"+-*^") && is_digit(before.code) &&
      (is_digit(after.code) || after.code == '-')) {
    return size;
  }
  constexpr uint32_t kLetter = character::kLetter;
  const bool is_between_letters = (before.classes & after.classes & kLetter) != 0;
  if (here.code == '.') {
    const bool splits = (before.classes & (character::kLower | character::kQuote)) != 0 &&
                        (after.classes & (character::kUpper | character::kQuote)) != 0;
    return splits ? size : 0;
  }
  if (here.code == ',') return is_between_letters ? size : 0;
  if ((before.classes & kLetter) == 0 && !is_digit(before.code)) return 0;
  if (is_one_of(here.code, U"-\u2013\u2014~:<>=/")) {
    if ((after.classes & kLetter) != 0) return size;
  }
  for (const std::string_view dashes : {"--", "---", "\u2014\u2014"}) {
    if (word.substr(at).starts_with(dashes) &&
        (class_at(at + dashes.size()).classes & kLetter) != 0) {
      return dashes.size();
    }
  }
  return 0;
}

// Whether some words from `first` on spell an exception that splits them otherwise.
bool EnglishWords::spells_other_exception(std::string_view text, const std::vector<Word>& words,
                                          size_t first) const {
  for (size_t i = first; i < words.size(); ++i) {
    EnglishWordTables::PhraseId phrase = EnglishWordTables::kNoPhrase;
    for (size_t last = i; last < words.size(); ++last) {
      phrase = tables_->next(phrase, part(text, words[last]));
      if (phrase == EnglishWordTables::kNone) break;
      if (tables_->differs(phrase)) return true;
    }
  }
  return false;
}

// As spaCy does it: of all sequences that could be an exception, even if blanks lie between, the
// longest wins; and none that begins or ends within one that was looked at before.
void EnglishWords::join_exceptions(std::string_view text, std::vector<Word>& words,
                                   size_t first) const {
  struct ExceptionMatch {
    size_t begin, end;
  };
  std::vector<ExceptionMatch> matches, chosen;
  for (size_t i = first; i < words.size(); ++i) {
    EnglishWordTables::PhraseId phrase = EnglishWordTables::kNoPhrase;
    for (size_t last = i; last < words.size(); ++last) {
      phrase = tables_->next(phrase, part(text, words[last]));
      if (phrase == EnglishWordTables::kNone) break;
      if (tables_->is_whole(phrase)) matches.push_back({i, last + 1});
    }
  }
  std::stable_sort(matches.begin(), matches.end(),
                   [](const ExceptionMatch& a, const ExceptionMatch& b) {
                     return a.end - a.begin > b.end - b.begin;
                   });
  std::vector<bool> is_seen(words.size() - first);
  for (const ExceptionMatch& match : matches) {
    const auto begin = is_seen.begin() + static_cast<ptrdiff_t>(match.begin - first);
    const auto end = is_seen.begin() + static_cast<ptrdiff_t>(match.end - first);
    if (!*begin && !*(end - 1)) chosen.push_back(match);
    std::fill(begin, end, true);
  }
  std::sort(chosen.begin(), chosen.end(),
            [](const ExceptionMatch& a, const ExceptionMatch& b) { return a.begin < b.begin; });
  const std::vector<Word> old(words.begin() + static_cast<ptrdiff_t>(first), words.end());
  words.resize(first);
  size_t at = first;
  for (const ExceptionMatch& match : chosen) {
    for (; at < match.begin; ++at) words.push_back(old[at - first]);
    const Word whole{old[match.begin - first].begin, old[match.end - 1 - first].end};
    if (append_exception(text, whole, words)) at = match.end;
  }
  for (; at < first + old.size(); ++at) words.push_back(old[at - first]);
}

}  // namespace skein
