// The mean of the rows that a text stands for in a fastText classifier: what it is classified by.
//
// Formula  words end at a blank, tab, newline, vertical tab, form feed, carriage return or NUL;
//          the rows of each, in order, then those of "</s>", which also ends the text where it is a
//          word of it, are added up and divided by their number
// Memory   18 MB at most for the words that were seen before (word_rows.h), and the longest text
// Cost     3 cycles a row and a look-up a word; hashing n-grams where a word is new
// Threads  one at a time; each has an embedder of its own
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "skein/prepare/clean/language/fasttext_classifier.h"
#include "skein/prepare/clean/language/word_rows.h"

namespace skein {

class TextEmbedder {
 public:
  explicit TextEmbedder(std::shared_ptr<const FastTextClassifier> model);

  // False where the text stands for no row; `mean` is then left as it is.
  bool embed(std::string_view text, fasttext::Vector& mean);

 private:
  void embed_words(std::string_view text);
  void add_word(std::string_view word);
  void append_batch();
  void append(std::span<const int32_t> rows);
  void flush();  // adds up pending_
  void add(const int32_t* rows, size_t num_rows);

  std::shared_ptr<const FastTextClassifier> model_;
  std::string text_;
  std::vector<uint8_t> blanks_;
  std::vector<float> sum_;
  int64_t num_rows_ = 0;
  WordRows known_;
  std::vector<WordRows::WordKey> batch_;
  size_t batch_size_ = 0;
  std::vector<int32_t> word_rows_;
  std::vector<int32_t> pending_;
  size_t num_pending_ = 0;
};

}  // namespace skein
