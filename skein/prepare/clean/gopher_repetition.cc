#include "skein/base/hash.h"
#include "skein/prepare/clean/filters.h"

namespace skein {
namespace {

// How many of some texts were there before, and their characters.
struct Repeats {
  int64_t num_texts = 0, num_repeated = 0, num_repeated_characters = 0;

  void add(std::string_view text, HashCounts& counts) {
    ++num_texts;
    if (counts.is_first(hash_name(text))) return;
    ++num_repeated;
    num_repeated_characters += count_characters(text);
  }
};

// Of the texts that runs of at least `min_breaks` newlines separate, one at each end among them.
Repeats count_repeats(std::string_view text, size_t min_breaks, HashCounts& counts) {
  counts.clear(1 + static_cast<size_t>(std::count(text.begin(), text.end(), '\n')));
  Repeats repeats;
  size_t begin = 0;
  for (size_t at = 0; (at = text.find('\n', at)) != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_not_of('\n', at), text.size());
    if (end - at >= min_breaks) {
      repeats.add(text.substr(begin, at - begin), counts);
      begin = end;
    }
    at = end;
  }
  repeats.add(text.substr(begin), counts);
  return repeats;
}

double share(int64_t part, int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::optional<Rule> GopherRepetition::judge_lines(std::string_view text, int64_t num_characters) {
  if (text.empty()) return rules_.is_on(Rule::kEmpty) ? std::optional(Rule::kEmpty) : std::nullopt;
  const auto fails = [&](Rule rule, int64_t part, int64_t whole) {
    return rules_.is_on(rule) && share(part, whole) > rules_.threshold(rule);
  };
  if (rules_.is_on(Rule::kDupParaFrac) || rules_.is_on(Rule::kDupParaCharFrac)) {
    const Repeats paragraphs = count_repeats(reader_.strip(text), 2, counts_);
    if (fails(Rule::kDupParaFrac, paragraphs.num_repeated, paragraphs.num_texts)) {
      return Rule::kDupParaFrac;
    }
    if (fails(Rule::kDupParaCharFrac, paragraphs.num_repeated_characters, num_characters)) {
      return Rule::kDupParaCharFrac;
    }
  }
  if (rules_.is_on(Rule::kDupLineFrac) || rules_.is_on(Rule::kDupLineCharFrac)) {
    const Repeats lines = count_repeats(text, 1, counts_);
    if (fails(Rule::kDupLineFrac, lines.num_repeated, lines.num_texts)) return Rule::kDupLineFrac;
    if (fails(Rule::kDupLineCharFrac, lines.num_repeated_characters, num_characters)) {
      return Rule::kDupLineCharFrac;
    }
  }
  return std::nullopt;
}

std::optional<Rule> GopherRepetition::judge_words(const DocumentWords& document) {
  const auto fails = [&](Rule rule, int64_t num_characters) {
    return share(num_characters, document.num_characters()) > rules_.threshold(rule);
  };
  size_t num_words = 2;
  for (const Rule rule : {Rule::kTop2Gram, Rule::kTop3Gram, Rule::kTop4Gram}) {
    if (rules_.is_on(rule) && fails(rule, characters_of_top(document, num_words))) return rule;
    ++num_words;
  }
  for (const Rule rule : {Rule::kDuplicated5, Rule::kDuplicated6, Rule::kDuplicated7,
                          Rule::kDuplicated8, Rule::kDuplicated9, Rule::kDuplicated10}) {
    if (rules_.is_on(rule) && fails(rule, characters_of_repeated(document, num_words))) return rule;
    ++num_words;
  }
  return std::nullopt;
}

// Of all occurrences of the most frequent sequence of `num_words` words, with blanks between; of
// equally frequent ones the first counts.
int64_t GopherRepetition::characters_of_top(const DocumentWords& document, size_t num_words) {
  const std::vector<MeasuredWord>& words = document.measured();
  if (words.size() < num_words) return 0;
  counts_.clear(words.size());
  HashCounts::Entry top;
  int64_t characters_of_one = 0;
  int64_t num_characters = 0;  // of the window, without blanks
  for (size_t end = 0; end < words.size(); ++end) {
    num_characters += words[end].num_characters;
    if (end + 1 < num_words) continue;
    const size_t begin = end + 1 - num_words;
    uint64_t hash = 0;
    for (size_t i = begin; i <= end; ++i) {
      hash = (hash ^ words[i].hash) * 0x9fb21c651e98df25;
      hash ^= hash >> 32;
    }
    const HashCounts::Entry& entry = counts_.add(hash);
    if (entry.count > top.count || (entry.count == top.count && entry.order < top.order)) {
      top = entry;
      characters_of_one = num_characters + static_cast<int64_t>(num_words) - 1;
    }
    num_characters -= words[begin].num_characters;
  }
  return characters_of_one * top.count;
}

// Of sequences of `num_words` words that were there before, without what stands between the words;
// the search goes on behind each of them.
int64_t GopherRepetition::characters_of_repeated(const DocumentWords& document, size_t num_words) {
  const std::vector<MeasuredWord>& words = document.measured();
  if (words.size() < num_words) return 0;
  counts_.clear(words.size());
  int64_t repeated = 0;
  uint64_t hash = 0;  // of the window
  uint64_t num_bytes = 0;
  int64_t num_characters = 0;
  size_t end = 0;  // of the window
  for (size_t begin = 0; begin + num_words <= words.size();) {
    for (; end < begin + num_words; ++end) {
      const MeasuredWord& word = words[end];
      hash = TextHash::add(TextHash::multiply(hash, text_hash_.power(word.num_bytes)), word.hash);
      num_bytes += word.num_bytes;
      num_characters += word.num_characters;
    }
    const bool is_repeated = !counts_.is_first(hash);
    if (is_repeated) repeated += num_characters;
    const size_t next = begin + (is_repeated ? num_words : 1);
    for (; begin < next; ++begin) {
      const MeasuredWord& word = words[begin];
      num_bytes -= word.num_bytes;
      num_characters -= word.num_characters;
      hash = TextHash::subtract(hash, TextHash::multiply(word.hash, text_hash_.power(num_bytes)));
    }
  }
  return repeated;
}

}  // namespace skein
