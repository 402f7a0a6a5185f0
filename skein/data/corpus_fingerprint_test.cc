#include "skein/data/corpus_fingerprint.h"

#include <gtest/gtest.h>

#include <set>

#include "skein/data/lane_testing.h"

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

}  // namespace
}  // namespace skein
