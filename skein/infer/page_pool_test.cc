#include "skein/infer/page_pool.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace skein {
namespace {

std::vector<int32_t> text(int64_t size, int32_t first = 0) {
  std::vector<int32_t> tokens(static_cast<size_t>(size));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

TextPages take(PagePool& pool, const std::vector<int32_t>& tokens, int64_t positions) {
  const auto pages = pool.take(tokens, positions, std::ssize(tokens) - 1);
  EXPECT_TRUE(pages.has_value());
  return pages.value_or(TextPages());
}

TEST(PagePool, GivesEachTextPagesOfItsOwn) {
  PagePool pool(6, 4);
  const TextPages a = take(pool, text(5), 9), b = take(pool, text(5, 100), 12);
  EXPECT_EQ(a.pages.size(), 3U);
  EXPECT_EQ(b.pages.size(), 3U);
  std::set<int32_t> all(a.pages.begin(), a.pages.end());
  all.insert(b.pages.begin(), b.pages.end());
  EXPECT_EQ(all.size(), 6U);
  EXPECT_FALSE(pool.take(text(1), 1, 0).has_value());
  pool.give_back(a);
  EXPECT_TRUE(pool.take(text(1), 1, 0).has_value());
}

TEST(PagePool, SharesWhatAnotherTextHasRead) {
  PagePool pool(10, 4);
  const TextPages a = take(pool, text(11), 11);
  EXPECT_FALSE(pool.take(text(12), 12, 11).has_value());  // a is reading its first pages
  pool.note_read(a, 11);
  const TextPages b = take(pool, text(12), 12);
  EXPECT_EQ(b.num_shared, 8);
  EXPECT_EQ(b.pages[0], a.pages[0]);
  EXPECT_EQ(b.pages[1], a.pages[1]);
  EXPECT_NE(b.pages[2], a.pages[2]);
  // No more than is allowed: the last token must be read for its logits.
  const auto c = pool.take(text(8), 8, 7);
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(c->num_shared, 4);
  EXPECT_EQ(c->pages[0], a.pages[0]);
}

TEST(PagePool, KeepsWhatATextReadUntilThePageIsNeeded) {
  PagePool pool(4, 4);
  const TextPages a = take(pool, text(9), 9);
  pool.note_read(a, 9);
  pool.give_back(a);
  EXPECT_EQ(pool.num_free(), 4);
  const TextPages again = take(pool, text(9), 9);
  EXPECT_EQ(again.num_shared, 8);
  pool.give_back(again);
  const TextPages other = take(pool, text(16, 50), 16);  // takes all pages
  EXPECT_EQ(other.num_shared, 0);
  pool.note_read(other, 16);
  pool.give_back(other);
  EXPECT_EQ(take(pool, text(9), 9).num_shared, 0);
}

TEST(PagePool, NeverFindsAPageBehindOneThatIsGone) {
  PagePool pool(3, 2);
  const TextPages a = take(pool, {1, 2, 3, 4, 9}, 5);
  pool.note_read(a, 5);
  pool.give_back(a);
  // Another text takes some of these pages. Then a text with the first beginning comes again.
  const TextPages b = take(pool, {7, 8, 9}, 4);
  pool.note_read(b, 3);
  pool.give_back(b);
  const TextPages c = take(pool, {1, 2, 3, 4, 5}, 5);
  std::set<int32_t> own(c.pages.begin(), c.pages.end());
  EXPECT_EQ(own.size(), 3U);
  EXPECT_LE(c.num_shared, 2);
}

TEST(PagePool, ForgetsATextThatEndedBeforeItsPagesWereRead) {
  PagePool pool(4, 4);
  pool.give_back(take(pool, text(9), 9));
  EXPECT_EQ(take(pool, text(9), 9).num_shared, 0);
}

TEST(PagePool, KeepsTheScoresOfWholePages) {
  PagePool pool(10, 4);
  const std::vector<int32_t> tokens = text(11);
  EXPECT_EQ(pool.known_scores(tokens, 1)->num_tokens, 0);
  const TextPages a = take(pool, tokens, 11);
  EXPECT_FALSE(pool.known_scores(tokens, 1).has_value());  // a is reading them
  pool.note_read(a, 11);
  for (int64_t token = 1; token < 11; ++token) {
    pool.note_score(a, token, {.logprob = static_cast<float>(-token)});
  }
  pool.note_score(a, 12, {});  // behind the last page
  pool.give_back(a);
  const auto known = pool.known_scores(text(9), 3);
  ASSERT_EQ(known->num_tokens, 8);
  ASSERT_EQ(known->scores.size(), 5U);
  EXPECT_EQ(known->scores[0].logprob, -3);
  EXPECT_EQ(known->scores[4].logprob, -7);
  EXPECT_EQ(pool.known_scores({{0, 1, 2, 3, 9, 9, 9, 9}}, 1)->num_tokens, 4);
  EXPECT_EQ(pool.known_scores(text(9, 1), 1)->num_tokens, 0);
  // Another text takes all pages.
  take(pool, text(40, 50), 40);
  EXPECT_EQ(pool.known_scores(tokens, 1)->num_tokens, 0);
}

TEST(PagePool, KnowsNothingOfPagesThatWereReadAndNotScored) {
  PagePool pool(10, 4);
  const TextPages a = take(pool, text(12), 12);
  pool.note_read(a, 12);
  for (int64_t token = 5; token < 8; ++token) pool.note_score(a, token, {});
  EXPECT_EQ(pool.known_scores(text(12), 1)->num_tokens, 0);
  EXPECT_EQ(pool.known_scores(text(12), 5)->num_tokens, 8);
  EXPECT_EQ(pool.known_scores(text(12), 5)->scores.size(), 3U);
  EXPECT_EQ(pool.known_scores(text(12), 4)->num_tokens, 4);
  EXPECT_TRUE(pool.known_scores(text(12), 4)->scores.empty());
}

// A page that a text had to read again does not hide those behind it.
TEST(PagePool, FindsWhatLiesBehindAPageThatTwoTextsRead) {
  PagePool pool(10, 4);
  const TextPages a = take(pool, text(5), 5);
  pool.note_read(a, 5);
  const auto b = pool.take(text(9), 9, 0);  // may share nothing
  ASSERT_TRUE(b.has_value());
  pool.note_read(*b, 9);
  EXPECT_EQ(take(pool, text(9), 9).num_shared, 8);
}

}  // namespace
}  // namespace skein
