// A text classifier in a file of fastText, whose parts are read directly.
//
// Formula  a text is the mean of rows of the input matrix (text_embedder.h says of which); the
//          model's loss gives each label a probability from it. Rows, sums and probabilities are
//          those of fastText's predictLine, to the bit
// Dtype    fp32 in fastText's order of additions, without fused multiply-adds
// Memory   the file's; a product-quantized input matrix is decoded, once: 4 bytes an element
// Errors   std::exception for a file that is no such model, ends early or refers beyond its ends
// Threads  any number at once
// Source   Joulin et al., "Bag of tricks for efficient text classification", 2017;
//          Bojanowski et al., "Enriching word vectors with subword information", 2017
#pragma once

#include <fasttext/fasttext.h>

#include <string>
#include <string_view>
#include <vector>

#include "skein/base/files/file.h"

namespace skein {

class FastTextClassifier : private fasttext::FastText {
 public:
  explicit FastTextClassifier(const fs::path& path);

  int64_t dim() const { return input_->size(1); }
  const float* row(int32_t i) const { return rows_ + i * dim(); }
  int32_t num_labels() const { return dict_->nlabels(); }
  std::string label(int32_t i) const { return dict_->getLabel(i); }

  // Whether a text stands for rows of its sequences of words as well (wordNgrams).
  bool has_word_ngrams() const { return args_->wordNgrams > 1; }
  // Appends the rows of a word: its own, then those of its n-grams of characters. `take` is called
  // now and then between those of a long word, and may take what there is.
  void append_rows(std::string_view word, std::vector<int32_t>& rows,
                   const std::function<void()>& take = {}) const;
  // The rows of a line that ends with a newline, which fastText reads itself.
  std::vector<int32_t> rows_of_line(const std::string& line) const;

  fasttext::Model::State new_state() const { return {args_->dim, num_labels(), 0}; }
  // The labels of the text whose mean `state.hidden` is, the most probable first, with logarithms.
  // Labels of less than `threshold` may be missing.
  void predict(float threshold, fasttext::Model::State& state,
               fasttext::Predictions& predictions) const;

 private:
  struct Buckets {  // 32 of them
    uint32_t are_kept = 0, num_kept_before = 0;
  };

  void load(const fs::path& path);
  int64_t read_pruning();  // how many rows its buckets have
  void check(int64_t num_bucket_rows) const;
  void decode_input();
  void append_ngrams(std::string_view text, size_t first_byte, size_t last_byte,
                     std::vector<int32_t>& rows) const;
  // Rows for numbers of buckets, where they have one; the end of these.
  int32_t* replace_buckets(int32_t* begin, int32_t* end) const;

  std::vector<float> decoded_;
  const float* rows_ = nullptr;
  // Of a pruned model: which buckets have rows, and these rows in the buckets' order.
  std::vector<Buckets> buckets_;
  std::vector<int32_t> kept_rows_;
  std::vector<bool> may_be_known_;  // by a word's hash: whether it may be in the dictionary
  const fasttext::Loss* loss_ = nullptr;
};

}  // namespace skein
