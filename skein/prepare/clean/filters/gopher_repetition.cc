#include <bit>

#include "skein/base/numbers/hash.h"
#include "skein/prepare/clean/filters/document_filters.h"

namespace skein {
namespace {

// How many of some texts were there before, and their characters.
struct Repeats {
  int64_t num_texts = 0, num_repeated = 0, num_repeated_characters = 0;

  void add(std::string_view text, HashSet& seen) {
    ++num_texts;
    if (seen.add(hash_name(text))) return;
    ++num_repeated;
    num_repeated_characters += count_characters(text);
  }
};

// Of the texts that runs of at least `min_breaks` newlines separate, one at each end among them.
Repeats count_repeats(std::string_view text, size_t min_breaks, HashSet& seen) {
  seen.clear(1 + static_cast<size_t>(std::count(text.begin(), text.end(), '\n')));
  Repeats repeats;
  size_t begin = 0;
  for (size_t at = 0; (at = text.find('\n', at)) != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_not_of('\n', at), text.size());
    if (end - at >= min_breaks) {
      repeats.add(text.substr(begin, at - begin), seen);
      begin = end;
    }
    at = end;
  }
  repeats.add(text.substr(begin), seen);
  return repeats;
}

constexpr size_t kFewestWords = 5;  // of a sequence that is looked for whole

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
    const Repeats paragraphs = count_repeats(reader_.strip(text), 2, seen_);
    if (fails(Rule::kDupParaFrac, paragraphs.num_repeated, paragraphs.num_texts)) {
      return Rule::kDupParaFrac;
    }
    if (fails(Rule::kDupParaCharFrac, paragraphs.num_repeated_characters, num_characters)) {
      return Rule::kDupParaCharFrac;
    }
  }
  if (rules_.is_on(Rule::kDupLineFrac) || rules_.is_on(Rule::kDupLineCharFrac)) {
    const Repeats lines = count_repeats(text, 1, seen_);
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
  size_t num_words = 1;
  top_count_ = document.num_words();
  sequences_.clear();
  for (const MeasuredWord& word : document.measured()) sequences_.push_back(word.hash);
  for (const Rule rule : {Rule::kTop2Gram, Rule::kTop3Gram, Rule::kTop4Gram}) {
    lengthen_sequences(document, ++num_words);
    if (rules_.is_on(rule) && may_be_top(document, num_words, rule) &&
        fails(rule, characters_of_top(document, num_words))) {
      return rule;
    }
  }
  find_possible_repeats(document);
  for (const Rule rule : {Rule::kDuplicated5, Rule::kDuplicated6, Rule::kDuplicated7,
                          Rule::kDuplicated8, Rule::kDuplicated9, Rule::kDuplicated10}) {
    ++num_words;
    if (rules_.is_on(rule) && fails(rule, characters_of_repeated(document, num_words))) return rule;
  }
  return std::nullopt;
}

// From the hashes of all sequences of a word less.
void GopherRepetition::lengthen_sequences(const DocumentWords& document, size_t num_words) {
  const std::vector<MeasuredWord>& words = document.measured();
  sequences_.resize(words.size() < num_words ? 0 : words.size() - num_words + 1);
  for (size_t i = 0; i < sequences_.size(); ++i) {
    sequences_[i] = mix_hashes(sequences_[i], words[i + num_words - 1].hash);
  }
}

// No sequence is more frequent than the most frequent one of fewer words, or longer than the
// longest words together: most documents need not be looked at for three and four.
bool GopherRepetition::may_be_top(const DocumentWords& document, size_t num_words,
                                  Rule rule) const {
  const int64_t most_characters =
      static_cast<int64_t>(num_words) * (document.longest_word() + 1) - 1;
  return share(top_count_ * most_characters, document.num_characters()) > rules_.threshold(rule);
}

// Of all occurrences of the most frequent sequence of `num_words` words, with blanks between; of
// equally frequent ones the first counts.
int64_t GopherRepetition::characters_of_top(const DocumentWords& document, size_t num_words) {
  counts_.clear(sequences_.size());
  HashCounts::HashCount top;
  size_t place = 0;
  for (size_t i = 0; i < sequences_.size(); ++i) {
    const HashCounts::HashCount& entry = counts_.add(sequences_[i]);
    if (entry.count > top.count || (entry.count == top.count && entry.order < top.order)) {
      top = entry;
      place = i;
    }
  }
  top_count_ = top.count;
  auto num_characters = static_cast<int64_t>(num_words) - 1;
  for (size_t i = place; top.count > 0 && i < place + num_words; ++i) {
    num_characters += document.measured()[i].num_characters;
  }
  return num_characters * top.count;
}

// Sequences are equal only if they begin with the same bytes, which few places of most documents
// do, or are very short. Bits that stand for several prefixes make that "may": what follows is
// exact all the same.
void GopherRepetition::find_possible_repeats(const DocumentWords& document) {
  const size_t num_words = document.measured().size();
  constexpr size_t kBitsPerWord = 16;
  const size_t num_bits = std::bit_ceil(std::max<size_t>(kBitsPerWord * num_words, 64));
  const int shift = 64 - std::countr_zero(num_bits);
  once_.assign(num_bits / 64, 0);
  twice_.assign(num_bits / 64, 0);
  for (size_t i = 0; i < num_words; ++i) {
    const uint64_t bit = document.prefix_hash(i) >> shift;
    const uint64_t mask = uint64_t{1} << bit % 64;
    twice_[bit / 64] |= once_[bit / 64] & mask;
    once_[bit / 64] |= mask;
  }
  may_repeat_.assign(num_words, false);
  num_possible_repeats_ = 0;
  for (size_t i = 0; i + kFewestWords <= num_words; ++i) {
    const uint64_t bit = document.prefix_hash(i) >> shift;
    const bool is_short = document.joined(i, i + kFewestWords).size() < DocumentWords::kPrefixBytes;
    may_repeat_[i] = is_short || (twice_[bit / 64] >> bit % 64 & 1) != 0;
    num_possible_repeats_ += may_repeat_[i];
  }
}

// Of sequences of `num_words` words that were there before, without what stands between the words;
// the search goes on behind each of them.
int64_t GopherRepetition::characters_of_repeated(const DocumentWords& document, size_t num_words) {
  const std::vector<MeasuredWord>& words = document.measured();
  seen_.clear(num_possible_repeats_);
  int64_t num_characters = 0;
  for (size_t begin = 0; begin + num_words <= words.size();) {
    if (!may_repeat_[begin] || seen_.add(hash_name(document.joined(begin, begin + num_words)))) {
      ++begin;
      continue;
    }
    for (const size_t end = begin + num_words; begin < end; ++begin) {
      num_characters += words[begin].num_characters;
    }
  }
  return num_characters;
}

}  // namespace skein
