#include "skein/prepare/clean/language/text_embedder.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "skein/prepare/clean/language/text_embedder_simd.h"

namespace skein {
namespace {

// No word that is kept has more n-grams: it has at most 66 characters, with its ends.
constexpr size_t kMaxPending = (WordRows::kMaxSize + 2) * (WordRows::kMaxSize + 3) / 2;
// So many words are looked up together, so that memory is waited for once.
constexpr size_t kBatch = 16;
// What ends a line to fastText, with room to be read as a chunk.
constexpr char kEnd[WordRows::kChunk] = "</s>";
constexpr size_t kEndSize = 4;

// The bits of `blanks` from `at` on, at least 57 of them.
uint64_t blanks_from(const uint8_t* blanks, size_t at) {
  uint64_t bits = 0;
  std::memcpy(&bits, blanks + at / 8, sizeof(bits));
  return bits >> at % 8;
}

}  // namespace

TextEmbedder::TextEmbedder(std::shared_ptr<const FastTextClassifier> model)
    : model_(std::move(model)),
      sum_(model_->dim()),
      batch_(kBatch),
      pending_(kMaxPending + WordRows::kPadding) {}

bool TextEmbedder::embed(std::string_view text, fasttext::Vector& mean) {
  std::fill(sum_.begin(), sum_.end(), 0.0f);
  num_rows_ = 0;
  if (model_->has_word_ngrams()) {
    text_ = text;
    std::replace(text_.begin(), text_.end(), '\n', ' ');
    const std::vector<int32_t> rows = model_->rows_of_line(text_ + '\n');
    add(rows.data(), rows.size());
  } else {
    embed_words(text);
  }
  if (num_rows_ == 0) return false;
  std::copy(sum_.begin(), sum_.end(), mean.data());
  mean.mul(static_cast<float>(1.0 / static_cast<double>(num_rows_)));
  return true;
}

void TextEmbedder::embed_words(std::string_view text) {
  // What is behind the text is read as words are, and ends the last one.
  text_.assign(text).append(kTextPadding, '\0');
  blanks_.resize(text_.size() / 8 + 2 * sizeof(uint64_t));
  mark_blanks(text_.data(), text.size() + 1, blanks_.data());
  for (size_t at = 0; at < text.size();) {
    uint64_t blanks = blanks_from(blanks_.data(), at);
    if (blanks & 1) {
      at += std::countr_one(blanks);
      continue;
    }
    const size_t begin = at;
    for (; blanks == 0; blanks = blanks_from(blanks_.data(), at)) at += 56;
    at += std::countr_zero(blanks);
    const char* word = &text_[begin];
    if (std::memcmp(word, kEnd, kEndSize) == 0 && at - begin == kEndSize) break;
    add_word({word, at - begin});
    ++at;
  }
  add_word({kEnd, kEndSize});
  append_batch();
  flush();
}

void TextEmbedder::add_word(std::string_view word) {
  if (word.size() > WordRows::kMaxSize) {
    append_batch();
    flush();
    const auto take = [this] {
      add(word_rows_.data(), word_rows_.size());
      word_rows_.clear();
    };
    model_->append_rows(word, word_rows_, take);
    return take();
  }
  if (batch_size_ == kBatch) append_batch();
  WordRows::WordKey& key = batch_[batch_size_++];
  key = WordRows::key_of(word);
  known_.prefetch_slot(key);
}

void TextEmbedder::append_batch() {
  const std::span batch(batch_.data(), batch_size_);
  for (const WordRows::WordKey& key : batch) known_.prefetch_rows(key);
  for (const WordRows::WordKey& key : batch) {
    std::span<const int32_t> rows = known_.find(key);
    if (rows.data() == nullptr) {
      model_->append_rows(key.word, word_rows_);
      known_.keep(key, word_rows_);
      word_rows_.clear();
      rows = known_.find(key);
    }
    append(rows);
  }
  batch_size_ = 0;
}

// How many rows a word has cannot be predicted: so many are copied, needed or not.
void TextEmbedder::append(std::span<const int32_t> rows) {
  constexpr size_t kCopied = WordRows::kPadding;
  if (num_pending_ + rows.size() > kMaxPending) flush();
  int32_t* pending = pending_.data() + num_pending_;
  std::memcpy(pending, rows.data(), kCopied * sizeof(int32_t));
  if (rows.size() > kCopied) {
    std::memcpy(pending + kCopied, &rows[kCopied], (rows.size() - kCopied) * sizeof(int32_t));
  }
  num_pending_ += rows.size();
}

void TextEmbedder::flush() {
  add(pending_.data(), num_pending_);
  num_pending_ = 0;
}

void TextEmbedder::add(const int32_t* rows, size_t num_rows) {
  add_rows(model_->row(0), model_->dim(), rows, num_rows, sum_.data());
  num_rows_ += static_cast<int64_t>(num_rows);
}

}  // namespace skein
