// The words of English text as spaCy's blank pipeline has them, which datatrove's filters count.
//
// Formula  white space separates. From both ends of what is between, signs are split off; what is
//          left is an exception (english_exceptions.h), an address of the web, or is split at signs
//          within. Neighbours that together spell an exception are joined again.
// Cost     a table look-up a character; words of letters alone take one more in the exceptions
// Memory   what the longest line has words
// Threads  one at a time
// Source   https://spacy.io/usage/linguistic-features#how-tokenizer-works; every rule is judged
//          against spaCy 3.8 by scripts/judge/clean.py
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skein/prepare/clean/words/character_classes.h"

namespace skein {

class EnglishWordTables;

// Part of a text: bytes begin to end.
struct Word {
  uint32_t begin = 0, end = 0;
  bool is_space = false;  // white space other than one blank, which ends sentences

  uint32_t size() const { return end - begin; }
  friend bool operator==(const Word&, const Word&) = default;
};

class EnglishWords {
 public:
  EnglishWords();

  // What a line is besides its words.
  struct LineRuns {
    int64_t num_runs = 0;     // of characters that are not white space
    int64_t longest_run = 0;  // in characters
  };
  // Appends the words of text[begin, end), which holds no line breaks, to `words`. White space at
  // its ends is left out.
  LineRuns split(std::string_view text, size_t begin, size_t end, std::vector<Word>& words);

  // Whether rules split `word`, were it no exception.
  bool has_affix(std::string_view word) const;

 private:
  friend class EnglishWordTables;
  explicit EnglishWords(const EnglishWordTables* unfinished);

  bool append_exception(std::string_view text, Word word, std::vector<Word>& words) const;
  void append_run(std::string_view text, Word run, std::vector<Word>& words);
  void append_inside(std::string_view text, Word word, std::vector<Word>& words) const;
  size_t prefix_size(std::string_view word) const;
  size_t suffix_size(std::string_view word) const;
  size_t infix_size(std::string_view word, size_t at) const;
  bool spells_other_exception(std::string_view text, const std::vector<Word>& words,
                              size_t first) const;
  void join_exceptions(std::string_view text, std::vector<Word>& words, size_t first) const;

  CharacterReader reader_;
  const EnglishWordTables* tables_;
  std::vector<Word> suffixes_;  // of the run that is split
};

}  // namespace skein
