// Gopher's, C4's and FineWeb's filters: each says which of its rules drops a document, if one does.
//
// Formula  rules.def; shares are of characters (code points), lines or words as datatrove has them,
//          compared in double precision. Repeated texts are told by 64-bit hashes.
// Cost     together some 30 ns a word
// Threads  one at a time
// Source   rules.h; decisions are judged against datatrove 0.10.1 by scripts/judge/clean.py
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skein/prepare/clean/filters/document_words.h"
#include "skein/prepare/clean/filters/rules.h"
#include "skein/prepare/clean/words/hash_counts.h"

namespace skein {

class GopherRepetition {
 public:
  explicit GopherRepetition(const CleanRules& rules) : rules_(rules) {}

  // Needs no words.
  std::optional<Rule> judge_lines(std::string_view text, int64_t num_characters);
  std::optional<Rule> judge_words(const DocumentWords& document);

 private:
  void lengthen_sequences(const DocumentWords& document, size_t num_words);
  int64_t characters_of_top(const DocumentWords& document, size_t num_words);
  bool may_be_top(const DocumentWords& document, size_t num_words, Rule rule) const;
  void find_possible_repeats(const DocumentWords& document);
  int64_t characters_of_repeated(const DocumentWords& document, size_t num_words);

  const CleanRules& rules_;
  CharacterReader reader_;
  HashCounts counts_;
  HashSet seen_;
  std::vector<uint64_t> sequences_;     // hashes of sequences of words, with blanks between
  int64_t top_count_ = 0;               // of the most frequent one
  std::vector<uint64_t> once_, twice_;  // Bloom filters of prefixes
  std::vector<bool> may_repeat_;        // [word]: its prefix is there more than once
  size_t num_possible_repeats_ = 0;
};

std::optional<Rule> judge_gopher_quality(const DocumentWords& document, const CleanRules& rules);

// A line that a rule cut, or took something out of.
struct CutLine {
  Rule rule;
  std::string_view text;  // of the document
  int64_t num_bytes = 0;  // that are gone
};

// What C4 leaves of a document.
struct C4Result {
  std::optional<Rule> rule;  // that drops the document
  std::string_view text;     // valid until the next document
  int64_t num_words = 0;     // in it
  std::vector<CutLine> cut;
};

class C4 {
 public:
  explicit C4(const CleanRules& rules) : rules_(rules) {}

  C4Result judge(const DocumentWords& document);

 private:
  struct LineResult {
    std::optional<Rule> cut, dropped;
    std::string_view text;
    bool is_changed = false;
  };
  LineResult judge_line(std::string_view text, const TextLine& line);
  void keep_line(const DocumentWords& document, const TextLine& line, const LineResult& result);

  const CleanRules& rules_;
  CharacterReader reader_;
  EnglishWords splitter_;
  std::string changed_, lower_;  // the line that is looked at
  std::vector<Word> words_;
  std::string text_;
  int64_t num_lines_ = 0, num_words_ = 0, num_sentences_ = 0;
};

class FineWeb {
 public:
  explicit FineWeb(const CleanRules& rules) : rules_(rules) {}

  std::optional<Rule> judge(std::string_view text, int64_t num_words);

 private:
  const CleanRules& rules_;
  CharacterReader reader_;
  HashSet seen_;
};

}  // namespace skein
