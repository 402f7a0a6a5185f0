#include "skein/bpe/steps/split_pattern.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace skein::bpe {
namespace {

using Words = std::vector<std::string>;

// As encoding splits: many words at a time.
Words split(const SplitPattern& pattern, std::string_view text) {
  Words words;
  pattern.with_end_of_word([&](auto end_of_word) {
    const char* const end = text.data() + text.size();
    for (const char* at = text.data(); at < end;) {
      const char* const behind = end_of_word(at, end);
      words.emplace_back(at, behind);
      at = behind;
    }
  });
  return words;
}

// Word by word, which the ids of `tokenizers` judge (byte_level_bpe_test.cc).
template <PatternKind kKind>
Words split_one_by_one(const SplitPattern& pattern, std::string_view text) {
  Words words;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    const char* const behind = pattern.end_of_word<kKind>(at, end);
    words.emplace_back(at, behind);
    at = behind;
  }
  return words;
}

template <PatternKind kKind>
void compare(const std::vector<std::string>& pieces, int num_texts, uint64_t seed) {
  const SplitPattern pattern(kKind);
  std::mt19937_64 random(seed);
  for (int i = 0; i < num_texts; ++i) {
    std::string text;
    const size_t size = 64 + random() % 400;
    while (text.size() < size) text += pieces[random() % pieces.size()];
    ASSERT_EQ(split(pattern, text), (split_one_by_one<kKind>(pattern, text)))
        << "pattern " << static_cast<int>(kKind) << ": " << text;
  }
}

void compare_all(const std::vector<std::string>& pieces, int num_texts, uint64_t seed) {
  compare<PatternKind::kGpt2>(pieces, num_texts, seed);
  compare<PatternKind::kLlama3>(pieces, num_texts, seed);
  compare<PatternKind::kQwen2>(pieces, num_texts, seed);
}

TEST(SplitPattern, ManyAtATimeAreTheWordsOneByOne) {
  compare_all({"a", "B", "7", ".", " ", "\n", "'"}, 20000, 1);
  compare_all(
      {"word", "x", " ", "  ", "\n", "\n\n", " \n ", "\r\n", "\t", ".", "...", "(", "12345"}, 20000,
      2);
  compare_all({"'s", "'S", "'re", "'LL", "'v", "'", "''", "d", "ll", " ", "it", ".", "\n"}, 20000,
              3);
  compare_all({"plain", " ", "text", "é", "日本", "1", ", ", "\u00a0", "'", "ſ", "\xff", "\x85"},
              20000, 4);
}

#ifdef __SSE2__
TEST(SplitPattern, AWindowHoldsManyWords) {
  const std::string text(200, ' ');
  std::string words;
  while (words.size() < kWindowBytes) words += "four ";
  EXPECT_EQ(word_starts(PatternKind::kGpt2, words.data()), 0x842108421084211U);
  EXPECT_EQ(word_starts(PatternKind::kGpt2, text.data()), 1u);  // may end far behind
}
#endif

TEST(SplitPattern, EveryByteMayFollowEveryOther) {
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 128; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  compare_all(bytes, 3000, 5);
}

TEST(SplitPattern, RunsAreLongerThanAWindow) {
  std::vector<std::string> runs;
  for (const char c : {'a', '1', ' ', '\n', '.', '\'', '\t'}) {
    for (const size_t size : {1, 2, 3, 30, 63, 64, 65, 130}) runs.emplace_back(size, c);
  }
  compare_all(runs, 3000, 6);
}

}  // namespace
}  // namespace skein::bpe
