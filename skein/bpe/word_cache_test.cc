#include "skein/bpe/word_cache.h"

#include <gtest/gtest.h>

#include <random>

namespace skein::bpe {
namespace {

// As many ids as the word says, so that words of few and of many bytes and ids come.
void ids_of(std::string_view word, std::vector<int32_t>& ids) {
  const size_t count = static_cast<uint8_t>(word[0]) % 7;
  for (size_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<int32_t>(std::hash<std::string_view>()(word) & 0xffff) +
                  static_cast<int32_t>(i));
  }
}

TEST(WordCache, GivesTheIdsOfEachWord) {
  WordCache cache;
  std::mt19937 random(1);
  int num_encoded = 0;
  std::vector<std::string> words;
  for (int i = 0; i < 3000; ++i) {
    std::string word(1 + random() % (i % 10 == 0 ? 400 : 18), 'x');
    for (char& c : word) c = static_cast<char>(random() % (i % 2 == 0 ? 4 : 256));  // zeros too
    words.push_back(word);
  }
  const int num_rounds = 20;
  for (int round = 0; round < num_rounds; ++round) {
    std::string text;
    std::vector<size_t> sizes;
    std::vector<int32_t> expected, ids;
    for (int i = 0; i < 2000; ++i) {
      const std::string& word = words[random() % words.size()];
      text += word;
      sizes.push_back(word.size());
      ids_of(word, expected);
    }
    {
      IdSink sink(ids);
      size_t next = 0;
      cache.append(
          text, [&](const char* at, const char*) { return at + sizes[next++]; }, sink,
          [&](std::string_view word, std::vector<int32_t>& out) {
            ++num_encoded;
            ids_of(word, out);
          });
    }
    ASSERT_EQ(ids, expected) << round;
  }
  EXPECT_LT(num_encoded, num_rounds * 2000 / 3);  // most words were known
}

TEST(WordCache, GrowsWithTheWords) {
  WordCache cache;
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(10'000'000 + i);
  int num_encoded = 0;
  std::vector<int32_t> first, second;
  for (std::vector<int32_t>* const ids : {&first, &second}) {
    num_encoded = 0;
    IdSink sink(*ids);
    cache.append(
        text, [](const char* at, const char*) { return at + 8; }, sink,
        [&](std::string_view word, std::vector<int32_t>& out) {
          ++num_encoded;
          out.push_back(std::stoi(std::string(word)));
        });
  }
  EXPECT_EQ(first.size(), 200'000u);
  EXPECT_EQ(first[123'456], 10'123'456);
  EXPECT_EQ(second, first);
  EXPECT_LT(num_encoded, 2'000);
}

}  // namespace
}  // namespace skein::bpe
