// testdata/encode/ids.json is made by scripts/goldens/text_encoder.py.
#include "skein/evaluate/encode/text_encoder.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "skein/base/error.h"
#include "skein/base/text/json.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;

const Json& recorded() {
  static const Json json =
      read_json((fs::path(__FILE__).parent_path() / "../testdata/encode/ids.json").string());
  return json;
}

class TextEncoderTest : public ::testing::TestWithParam<const char*> {
 protected:
  TextEncoderTest()
      : tokenizer_(Tokenizer::load(fs::path(__FILE__).parent_path() /
                                   "../../data/tokenizer/testdata" / GetParam())),
        encoder_(*tokenizer_, recorded().at("max_length").get<int64_t>()),
        golden_(recorded().at("tokenizers").at(GetParam())) {}

  std::unique_ptr<Tokenizer> tokenizer_;
  TextEncoder encoder_;
  const Json& golden_;
};

TEST_P(TextEncoderTest, PairsAreTheHarnesss) {
  EXPECT_GE(golden_.at("pairs").size(), 17U);
  for (const Json& pair : golden_.at("pairs")) {
    const auto context = pair.at("context").get<std::string>();
    const auto continuation = pair.at("continuation").get<std::string>();
    if (pair.at("tokens").is_null()) {
      EXPECT_THROW(encoder_.pair(context, continuation), Error) << context;
      continue;
    }
    const EncodedText encoded = encoder_.pair(context, continuation);
    EXPECT_EQ(encoded.tokens, pair.at("tokens").get<Ids>()) << context << "|" << continuation;
    EXPECT_EQ(encoded.score_from, pair.at("score_from").get<int64_t>()) << context;
  }
  EXPECT_EQ(encoder_.num_cut(), 1);
}

TEST_P(TextEncoderTest, PiecesOfWholeTextsAreTheHarnesss) {
  size_t most = 0;
  for (const Json& text : golden_.at("rolling")) {
    const std::vector<EncodedText> pieces = encoder_.rolling(text.at("text").get<std::string>());
    const Json& windows = text.at("windows");
    ASSERT_EQ(pieces.size(), windows.size()) << text.at("text");
    most = std::max(most, pieces.size());
    for (size_t i = 0; i < pieces.size(); ++i) {
      EXPECT_EQ(pieces[i].tokens, windows[i].at("tokens").get<Ids>()) << i;
      EXPECT_EQ(std::ssize(pieces[i].tokens) - pieces[i].score_from,
                windows[i].at("scored").get<int64_t>());
    }
  }
  EXPECT_GE(most, 3U);
}

TEST_P(TextEncoderTest, PromptsAreTheHarnesss) {
  const auto max_new_tokens = recorded().at("max_new_tokens").get<int64_t>();
  for (const Json& prompt : golden_.at("prompts")) {
    const auto text = prompt.at("prompt").get<std::string>();
    const auto expected = prompt.at("tokens").get<Ids>();
    // The harness gives nothing to an empty prompt without BOS, which no model continues.
    if (expected.empty()) continue;
    EXPECT_EQ(encoder_.prompt(text, max_new_tokens), expected) << text;
  }
  EXPECT_EQ(encoder_.prompt("", max_new_tokens).size(), 1U);
  EXPECT_THROW(encoder_.prompt("a", encoder_.max_length()), Error);
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, TextEncoderTest,
                         ::testing::Values("byte_level/gpt2", "byte_level/llama3",
                                           "byte_level/qwen2"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name.substr(name.find('/') + 1);
                         });

}  // namespace
}  // namespace skein
