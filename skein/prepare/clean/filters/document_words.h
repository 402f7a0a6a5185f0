// A document in words and lines, with what the filters measure of them: found once for all filters.
//
// Memory   40 bytes a word, and the text once more
// Cost     two passes over the text
// Threads  one at a time
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skein/prepare/clean/words/english_words.h"

namespace skein {

struct MeasuredWord {
  uint64_t hash = 0;   // of 64 bits
  uint32_t begin = 0;  // in joined()
  uint32_t num_characters = 0;
};

// A line as Python's splitlines() has it.
struct TextLine {
  uint32_t begin = 0, end = 0;             // without white space at the ends
  uint32_t first_word = 0, last_word = 0;  // in words(), up to, but not including, last_word
  int64_t num_runs = 0;                    // of characters that are not white space
  int64_t longest_run = 0;                 // in characters
};

class DocumentWords {
 public:
  // `text`, which is UTF-8 and shorter than 4 GiB, must outlive what is asked.
  void read(std::string_view text);

  std::string_view text() const { return text_; }
  int64_t num_characters() const { return num_characters_; }
  const std::vector<TextLine>& lines() const { return lines_; }
  // With white space that is more than a blank.
  const std::vector<Word>& words() const { return words_; }
  const std::vector<MeasuredWord>& measured() const { return measured_; }  // without white space
  // The words of `measured` from `first` up to, but not including, `last`, with nothing between.
  std::string_view joined(size_t first, size_t last) const {
    const uint32_t begin = measured_[first].begin;
    const uint32_t end = last < measured_.size() ? measured_[last].begin : num_joined_;
    return {&joined_[begin], end - begin};
  }
  std::string_view word(const Word& word) const { return text_.substr(word.begin, word.size()); }
  // Of the kPrefixBytes that begin with a word, those of the words behind it among them.
  static constexpr uint32_t kPrefixBytes = 16;
  uint64_t prefix_hash(size_t word) const;

  int64_t num_words() const { return static_cast<int64_t>(measured_.size()); }
  int64_t longest_word() const { return longest_word_; }  // in characters
  int64_t num_words_with_letter() const { return num_words_with_letter_; }
  // Of words that hold more than signs.
  int64_t num_plain_words() const { return num_plain_words_; }
  int64_t num_plain_characters() const { return num_plain_characters_; }
  // Of the eight words that English is full of: how many occur.
  int num_stop_words() const { return num_stop_words_; }

 private:
  void read_lines();
  void measure_words();

  EnglishWords splitter_;
  CharacterReader reader_;
  std::string_view text_;
  int64_t num_characters_ = 0;
  std::vector<TextLine> lines_;
  std::vector<Word> words_;
  std::vector<MeasuredWord> measured_;
  std::string joined_;  // the words without white space, and some bytes that may be read
  uint32_t num_joined_ = 0;
  int64_t longest_word_ = 0;
  int64_t num_words_with_letter_ = 0, num_plain_words_ = 0, num_plain_characters_ = 0;
  int num_stop_words_ = 0;
};

// The sentences of words[first, last) as spaCy's sentencizer counts them: a sentence ends behind a
// sign that ends sentences, and what punctuation follows it.
int64_t count_sentences(std::string_view text, const std::vector<Word>& words, size_t first,
                        size_t last, const CharacterReader& reader);

}  // namespace skein
