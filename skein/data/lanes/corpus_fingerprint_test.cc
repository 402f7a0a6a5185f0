#include "skein/data/lanes/corpus_fingerprint.h"

#include <gtest/gtest.h>

#include <set>

#include "skein/data/lanes/lane_testing.h"

namespace skein {
namespace {

constexpr int64_t kSampled = CorpusFingerprint::kWindows * CorpusFingerprint::kWindowBytes;

std::string hash_of(std::vector<std::string> texts) {
  return corpus_fingerprint(MemoryDocuments(std::move(texts))).xxh3_128;
}

TEST(CorpusFingerprint, CountsDocumentsAndBytes) {
  const CorpusFingerprint found = corpus_fingerprint(MemoryDocuments({"abc", "", "de"}));
  EXPECT_EQ(found.documents, 3);
  EXPECT_EQ(found.bytes, 5);
  EXPECT_EQ(found.xxh3_128.size(), 32u);
  EXPECT_EQ(found, corpus_fingerprint(MemoryDocuments({"abc", "", "de"})));
  EXPECT_EQ(corpus_fingerprint(MemoryDocuments({})).bytes, 0);
}

// Runs that began with an earlier version have it in their checkpoints.
TEST(CorpusFingerprint, IsThatOfScriptsGoldensCorpusFingerprint) {
  EXPECT_EQ(hash_of({"abc", "", "de"}), "c468e2ab9587b36cc37f76f05b940168");
  std::vector<std::string> texts;
  int64_t bytes = 0;
  for (size_t i = 0; bytes < 3 * kSampled; ++i) {
    std::string& text = texts.emplace_back();
    while (text.size() < (i % 3 == 0 ? 300'000 : 5000 + i))
      text += text.size() % 2 == 0 ? 'a' : 'b';
    bytes += static_cast<int64_t>(text.size());
  }
  EXPECT_EQ(hash_of(texts), "666b8506e3c16eeb6cb35e7066f28715");
}

// Beyond kAllLengths not all lengths are read, but the ends and windows between are.
TEST(CorpusFingerprint, SamplesTheLengthsOfVeryManyDocuments) {
  class Many final : public DocumentSource {
   public:
    explicit Many(int64_t longer) : longer_(longer) {}
    int64_t num_documents() const override { return CorpusFingerprint::kAllLengths + 1000; }
    int64_t num_bytes() const override { return num_documents() + 1; }
    int64_t document_bytes(int64_t index) const override {
      ++num_read_;
      return index == longer_ ? 2 : 1;
    }
    HeldText part(int64_t index, int64_t begin, int64_t num_bytes) const override {
      const std::string_view text = index == longer_ ? "aa" : "a";
      return HeldText(text.substr(static_cast<size_t>(begin), static_cast<size_t>(num_bytes)));
    }
    DocumentPlace find(int64_t position) const override {
      return position <= longer_
                 ? DocumentPlace{position, position}
                 : DocumentPlace{position - 1, position == longer_ + 1 ? longer_ : position};
    }
    std::string name() const override { return "many"; }
    int64_t num_read() const { return num_read_; }

   private:
    int64_t longer_;
    mutable int64_t num_read_ = 0;
  };
  const int64_t last = CorpusFingerprint::kAllLengths + 999;
  std::set<std::string> hashes;
  for (const int64_t longer : {int64_t{0}, int64_t{1023}, last - 1023, last}) {
    const Many source(longer);
    hashes.insert(corpus_fingerprint(source).xxh3_128);
    EXPECT_LT(source.num_read(), 5'000'000);
  }
  EXPECT_EQ(hashes.size(), 4u);
}

TEST(CorpusFingerprint, SeesWhereDocumentsEndAndTheirOrder) {
  const std::set<std::string> hashes = {hash_of({"abc", "de"}),     hash_of({"ab", "cde"}),
                                        hash_of({"de", "abc"}),     hash_of({"abc", "", "de"}),
                                        hash_of({"abc", "de", ""}), hash_of({"abcde"})};
  EXPECT_EQ(hashes.size(), 6u);
}

// Every byte of a small corpus counts, however it is divided into documents.
TEST(CorpusFingerprint, SeesEveryByteOfASmallCorpus) {
  std::vector<std::string> texts;
  for (size_t length : {1, 16383, 1, 40000, 7, 16384}) texts.emplace_back(length, 'a');
  const std::string before = hash_of(texts);
  for (std::string& text : texts) {
    for (size_t at : {size_t{0}, text.size() / 2, text.size() - 1}) {
      text[at] = 'b';
      EXPECT_NE(hash_of(texts), before) << text.size() << " at " << at;
      text[at] = 'a';
    }
  }
  EXPECT_EQ(hash_of(texts), before);
}

TEST(CorpusFingerprint, SamplesALargeCorpusFromItsFirstByteToItsLast) {
  std::vector<std::string> texts;
  int64_t bytes = 0;
  for (size_t i = 0; bytes < 3 * kSampled; ++i) {
    texts.emplace_back(i % 3 == 0 ? 300'000 : 5000 + i, 'a');
    bytes += static_cast<int64_t>(texts.back().size());
  }
  const std::string before = hash_of(texts);
  texts.front().front() = 'b';
  EXPECT_NE(hash_of(texts), before);
  texts.front().front() = 'a';
  texts.back().back() = 'b';
  EXPECT_NE(hash_of(texts), before);
  texts.back().back() = 'a';
  // An edit as long as a window is noticed anywhere, since the windows cover a third of the text.
  for (const size_t at : {texts.size() / 4, texts.size() / 2}) {
    std::string& text = texts[at / 3 * 3];
    const std::string kept = text;
    text.replace(1000, 3 * CorpusFingerprint::kWindowBytes, 3 * CorpusFingerprint::kWindowBytes,
                 'b');
    EXPECT_NE(hash_of(texts), before);
    text = kept;
  }
  EXPECT_EQ(hash_of(texts), before);
}

// Documents of eight bytes, of each of which the first bytes count, as many as `ends` says.
class Spanned final : public MemoryDocuments {
 public:
  explicit Spanned(std::vector<int64_t> ends, bool has_empty = false)
      : MemoryDocuments(std::vector<std::string>(ends.size(), "12345678")),
        ends_(std::move(ends)),
        has_empty_(has_empty) {}
  bool has_loss_spans() const override { return true; }
  std::vector<ByteRange> loss_spans(int64_t index) const override {
    ++num_read_;
    std::vector<ByteRange> spans = {{0, ends_[static_cast<size_t>(index)]}};
    if (has_empty_) spans.push_back({8, 8});
    return spans;
  }
  int64_t num_read() const { return num_read_; }

 private:
  std::vector<int64_t> ends_;
  bool has_empty_;
  mutable int64_t num_read_ = 0;
};

TEST(CorpusFingerprint, SpansHaveAHashOfTheirOwnWhereTheyAreRead) {
  const Spanned source({3, 0, 8});
  const CorpusFingerprint unread = corpus_fingerprint(source);
  EXPECT_EQ(source.num_read(), 0);
  EXPECT_EQ(to_json(unread).size(), 3u);
  const CorpusFingerprint found = corpus_fingerprint(source, true);
  EXPECT_EQ(found.xxh3_128, unread.xxh3_128);
  EXPECT_EQ(to_json(found).at("loss_spans_xxh3_128"), found.spans_xxh3_128);
  EXPECT_NE(corpus_fingerprint(Spanned({3, 0, 7}), true).spans_xxh3_128, found.spans_xxh3_128);
  EXPECT_NE(corpus_fingerprint(Spanned({0, 3, 8}), true).spans_xxh3_128, found.spans_xxh3_128);
  // Spans without bytes change no label.
  EXPECT_EQ(corpus_fingerprint(Spanned({3, 0, 8}, true), true), found);
}

TEST(CorpusFingerprint, SamplesTheSpansOfVeryManyDocuments) {
  std::vector<int64_t> ends(CorpusFingerprint::kAllSpans + 5000, 4);
  const Spanned source(ends);
  const CorpusFingerprint found = corpus_fingerprint(source, true);
  EXPECT_EQ(source.num_read(), CorpusFingerprint::kAllSpans);
  for (const size_t changed : {size_t{0}, ends.size() - 1}) {
    std::vector<int64_t> others = ends;
    others[changed] = 5;
    EXPECT_NE(corpus_fingerprint(Spanned(others), true), found) << changed;
  }
}

}  // namespace
}  // namespace skein
