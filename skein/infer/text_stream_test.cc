#include "skein/infer/text_stream.h"

#include <gtest/gtest.h>

#include <random>

namespace skein {
namespace {

class Texts : public testing::TestWithParam<const char*> {
 protected:
  Texts()
      : tokenizer_(Tokenizer::load(fs::path(__FILE__).parent_path() / "../data/tokenizer/testdata" /
                                   GetParam())) {}
  std::vector<int32_t> ids(const std::string& text) const {
    std::vector<int32_t> found;
    tokenizer_->encode(text, found);
    return found;
  }
  // The text that comes of the tokens of `text`; counts the pieces.
  std::string streamed(const std::string& text, const std::vector<std::string>& stops) {
    TextStream stream(*tokenizer_, {}, stops);
    std::string whole;
    for (const int32_t id : ids(text)) {
      const std::string piece = stream.add(id);
      EXPECT_EQ(piece.find("\xEF\xBF\xBD"), std::string::npos) << piece;
      num_pieces_ += !piece.empty();
      whole += piece;
    }
    return whole + stream.finish();
  }

  const std::unique_ptr<Tokenizer> tokenizer_;
  int num_pieces_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Of, Texts,
                         testing::Values("models/llama", "byte_level/llama3", "byte_level/gpt2",
                                         "models/unigram"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name.substr(name.find('/') + 1);
                         });

TEST_P(Texts, AreTheDecodedTokens) {
  const std::string text = "Fünf Bäume, 日本語 und 🌲🌲; then  two blanks\n\nand a line.";
  EXPECT_EQ(streamed(text, {}), tokenizer_->decode(ids(text)));
  EXPECT_GT(num_pieces_, 10);
}

TEST_P(Texts, EndBeforeTheFirstStop) {
  const std::string text = "one two three\n\nfour five\nQuestion: six";
  const std::string decoded = tokenizer_->decode(ids(text));  // unigram: without line feeds
  const std::string first = decoded.substr(0, decoded.find("\n\n"));
  EXPECT_EQ(streamed(text, {"\n\n"}), first);
  EXPECT_EQ(streamed(text, {"Question:", "five"}), decoded.substr(0, decoded.find("five")));
  EXPECT_EQ(streamed(text, {"\n\nx", "seven"}), decoded);
  EXPECT_EQ(streamed(text, {""}), decoded);
  EXPECT_EQ(streamed("aaab", {"aab"}), "a");
}

// What may begin a stop text is not given out before it is known.
TEST_P(Texts, WaitWhereAStopMayBegin) {
  TextStream stream(*tokenizer_, {}, {"\nStop here"});
  std::string given;
  for (const int32_t id : ids("one two\nStop her")) given += stream.add(id);
  EXPECT_EQ(given, "one two");
  EXPECT_FALSE(stream.is_stopped());
  EXPECT_EQ(stream.finish(), "\nStop her");
}

// Behind a prompt a word has its blank.
TEST_P(Texts, GoOnBehindTheirContext) {
  const std::vector<int32_t> all = ids("The trees of the wood are tall and old");
  for (size_t begin = 1; begin < all.size(); ++begin) {
    const std::vector<int32_t> context(all.begin(), all.begin() + static_cast<long>(begin));
    TextStream stream(*tokenizer_, context);
    std::string whole = tokenizer_->decode(context);
    for (size_t i = begin; i < all.size(); ++i) whole += stream.add(all[i]);
    EXPECT_EQ(whole + stream.finish(), tokenizer_->decode(all));
  }
}

// Bytes that are no text come as U+FFFD at the end, as in the whole.
TEST_P(Texts, OfRandomTokensAreTheDecodedTokens) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<int32_t> all(1 + random() % 30);
    for (int32_t& id : all) id = static_cast<int32_t>(random() % 256);
    TextStream stream(*tokenizer_, {});
    std::string whole;
    for (const int32_t id : all) whole += stream.add(id);
    EXPECT_EQ(whole + stream.finish(), tokenizer_->decode(all));
  }
}

}  // namespace
}  // namespace skein
