// For tests: documents in memory, a tokenizer of bytes, and random corpora.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "skein/data/lanes/lane.h"

namespace skein {

class MemoryDocuments : public DocumentSource {
 public:
  explicit MemoryDocuments(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (const std::string& text : texts_) {
      num_bytes_ += static_cast<int64_t>(text.size());
      ends_.push_back(num_bytes_);
    }
  }
  int64_t num_documents() const override { return static_cast<int64_t>(texts_.size()); }
  int64_t num_bytes() const override { return num_bytes_; }
  std::string_view document(int64_t index) const { return texts_.at(index); }
  int64_t document_bytes(int64_t index) const override {
    return static_cast<int64_t>(texts_.at(index).size());
  }
  HeldText part(int64_t index, int64_t begin, int64_t num_bytes) const override {
    return HeldText(
        document(index).substr(static_cast<size_t>(begin), static_cast<size_t>(num_bytes)));
  }
  DocumentPlace find(int64_t position) const override {
    const auto at = std::upper_bound(ends_.begin(), ends_.end(), position) - ends_.begin();
    return {at, at == 0 ? 0 : ends_.at(at - 1)};
  }
  std::string name() const override { return "memory.arrow"; }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  std::vector<int64_t> ends_;
  int64_t num_bytes_ = 0;
};

// One token per byte; with `drop_blanks` blanks give no token, as in tokenizers that normalize.
class ByteTokenizer final : public Tokenizer {
 public:
  static constexpr int kBos = 256, kEos = 257, kMask = 258;
  explicit ByteTokenizer(bool drop_blanks = false, int eos = kEos)
      : drop_blanks_(drop_blanks), eos_(eos) {}
  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    for (const char c : text) {
      if (!drop_blanks_ || c != ' ') out.push_back(static_cast<unsigned char>(c));
    }
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) {
      if (id < kBos) text.push_back(static_cast<char>(id));
    }
    return text;
  }
  int vocab_size() const override { return 259; }
  int bos_id() const override { return kBos; }
  int eos_id() const override { return eos_; }
  int mask_id() const override { return kMask; }
  std::string content_hash() const override { return "bytes"; }
  std::vector<fs::path> files() const override { return {}; }

 private:
  bool drop_blanks_;
  int eos_;
};

// Documents of 0 to max_bytes bytes, a few of them much longer, in characters of 1 to 4 bytes.
inline MemoryDocuments random_documents(uint64_t seed, int num_documents, int max_bytes) {
  std::mt19937_64 random(seed);
  const std::vector<std::string> characters = {"a", "b", "\n", "é", "漢", "😀", "x", "yz"};
  std::vector<std::string> texts(num_documents);
  for (std::string& text : texts) {
    const size_t longer = random() % 16 == 0 ? 20 : 1;
    const size_t bytes = random() % 8 == 0 ? 0 : random() % (max_bytes * longer + 1);
    while (text.size() < bytes) text += characters[random() % characters.size()];
  }
  return MemoryDocuments(std::move(texts));
}

}  // namespace skein
