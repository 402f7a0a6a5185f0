// Byte-level BPE against what `tokenizers` gives (scripts/goldens/byte_level.py).
#include "skein/data/tokenizer/byte_level/byte_level_bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "skein/base/error.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "tests/error_of.h"
#include "tests/places.h"

namespace skein {
namespace {

using test::error_of;
using testing::HasSubstr;

const fs::path kGoldens = fs::path(kSourceFolder) / "skein/data/tokenizer/testdata/byte_level";

std::vector<int32_t> encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

// Every form of scripts/judge/tokenizer_forms.py, by scripts/goldens/tokenizer_forms.py.
TEST(TokenizerForms, IdsAndTextAreThoseOfTokenizers) {
  const fs::path folder = fs::path(kSourceFolder) / "skein/data/tokenizer/testdata/forms";
  const Json goldens = read_json((folder / "ids.json").string());
  ASSERT_GT(goldens.size(), 20u);
  for (const auto& [form, rows] : goldens.items()) {
    const auto tokenizer = Tokenizer::load(folder / form);
    for (const Json& row : rows) {
      const auto text = row["text"].get<std::string>();
      const auto ids = row["ids"].get<std::vector<int32_t>>();
      EXPECT_EQ(encode(*tokenizer, text), ids) << form << ": " << text;
      EXPECT_EQ(tokenizer->decode(ids), row["decoded"].get<std::string>()) << form << ": " << text;
    }
  }
}

class ByteLevelGolden : public testing::TestWithParam<const char*> {
 protected:
  const std::unique_ptr<Tokenizer> tokenizer_ = Tokenizer::load(kGoldens / GetParam());
  const Json goldens_ = read_json((kGoldens / "ids.json").string())[GetParam()];
};

TEST_P(ByteLevelGolden, IdsAndTextAreThoseOfTokenizers) {
  ASSERT_GT(goldens_.size(), 300u);
  for (const Json& golden : goldens_) {
    const auto ids = golden["ids"].get<std::vector<int32_t>>();
    if (golden.contains("text")) {
      const auto text = golden["text"].get<std::string>();
      EXPECT_EQ(encode(*tokenizer_, text), ids) << text;
    }
    EXPECT_EQ(tokenizer_->decode(ids), golden["decoded"].get<std::string>()) << golden["ids"];
  }
}

TEST_P(ByteLevelGolden, ThreadsAndKnownWordsChangeNothing) {
  std::string text;
  for (const Json& golden : goldens_) {
    if (golden.contains("text")) text += golden["text"].get<std::string>() + "\n";
  }
  const std::vector<int32_t> once = encode(*tokenizer_, text);
  std::vector<std::thread> threads;
  std::vector<int> same(4);
  for (size_t i = 0; i < same.size(); ++i) {
    threads.emplace_back([&, i] {
      same[i] = 1;
      for (int round = 0; round < 5; ++round) same[i] &= encode(*tokenizer_, text) == once;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(same, testing::Each(1));
}

INSTANTIATE_TEST_SUITE_P(Patterns, ByteLevelGolden, testing::Values("gpt2", "llama3", "qwen2"));

TEST(ByteLevelTokenizer, BeginsAndEndsTextsAsItsFilesSay) {
  const auto llama = Tokenizer::load(kGoldens / "llama3");
  EXPECT_EQ(llama->decode(encode(*llama, "<|end_of_text|>")), "<|end_of_text|>");  // ordinary text
  EXPECT_EQ(llama->bos_id(), llama->vocab_size() - 2);
  EXPECT_EQ(llama->eos_id(), llama->vocab_size() - 1);
  EXPECT_EQ(llama->decode(std::vector<int32_t>{llama->bos_id(), 'a' - '!'}), "a");
  const auto gpt2 = Tokenizer::load(kGoldens / "gpt2");
  EXPECT_EQ(gpt2->bos_id(), -1);  // its template puts nothing before a text
  EXPECT_EQ(gpt2->eos_id(), gpt2->vocab_size() - 1);
  EXPECT_NE(gpt2->content_hash(), llama->content_hash());
  EXPECT_THAT(error_of([&] { gpt2->decode(std::vector<int32_t>{gpt2->vocab_size()}); }),
              HasSubstr("no token has id"));
}

// As `tokenizers` 0.23.3 has it.
TEST(ByteLevelTokenizer, FindsAddedTokensInNormalizedText) {
  Json json = read_json((kGoldens / "qwen2/tokenizer.json").string());
  Json added = json["added_tokens"][0];
  const int32_t id = parse_byte_level_model(json, "").num_ids;
  added["id"] = id;
  added["content"] = "e\u0301x";
  added["special"] = false;
  added["normalized"] = true;
  json["added_tokens"].push_back(added);
  const ByteLevelBpe bpe(parse_byte_level_model(json, ""));
  for (const char* text : {"e\u0301x", "\u00e9x"}) {
    std::vector<int32_t> ids;
    bpe.encode(text, ids);
    EXPECT_THAT(ids, testing::ElementsAre(id)) << text;
  }
}

TEST(ByteLevelTokenizer, TextIsASpecialTokenWhereOneAsks) {
  const ByteLevelBpe bpe(
      parse_byte_level_model(read_json((kGoldens / "llama3/tokenizer.json").string()), ""));
  std::vector<int32_t> text, special;
  bpe.encode("<|end_of_text|>a", text);
  bpe.encode("<|end_of_text|>a", special, true);
  EXPECT_GT(text.size(), 2u);
  EXPECT_THAT(special, testing::ElementsAre(bpe.model().num_ids - 1, 'a' - '!'));
}

TEST(ByteLevelTokenizer, ExportsTheFilesThatItWasReadFrom) {
  const auto tokenizer = Tokenizer::load(kGoldens / "qwen2");
  EXPECT_EQ(tokenizer->why_not_exported(), "");
  const auto files = tokenizer->export_files();
  EXPECT_EQ(files.size(), 2u);
  EXPECT_EQ(files.at("tokenizer.json"), read_file(kGoldens / "qwen2/tokenizer.json"));
}

TEST(ByteLevelTokenizer, BytesThatAreNoTextCountAsTheReplacementCharacter) {
  const auto tokenizer = Tokenizer::load(kGoldens / "gpt2");
  EXPECT_EQ(encode(*tokenizer, "a\xff\xfe b"), encode(*tokenizer, "a\ufffd\ufffd b"));
}

class ByteLevelRefusal : public testing::Test {
 protected:
  std::string refusal() const {
    return error_of([&] { parse_byte_level_model(json_, "tokenizer.json"); });
  }
  Json json_ = read_json((kGoldens / "llama3/tokenizer.json").string());
};

TEST_F(ByteLevelRefusal, OfWhatWouldGiveOtherIds) {
  const Json whole = json_;
  EXPECT_EQ(refusal(), "");
  const auto with = [&](const char* pointer, Json value) {
    json_ = whole;
    json_[Json::json_pointer(pointer)] = std::move(value);
    return refusal();
  };
  EXPECT_THAT(with("/model/type", "Unigram"), HasSubstr("the model is of type \"Unigram\""));
  EXPECT_EQ(with("/model/unk_token", "<unk>"), "");  // every byte is known
  EXPECT_THAT(with("/model/dropout", 0.1), HasSubstr("model.dropout is 0.1"));
  EXPECT_EQ(with("/model/byte_fallback", true), "");
  EXPECT_THAT(with("/normalizer", {{"type", "Lowercase"}}), HasSubstr("normalizer is Lowercase"));
  EXPECT_THAT(with("/pre_tokenizer", nullptr), HasSubstr("neither an unk_token nor byte_fallback"));
  EXPECT_THAT(with("/pre_tokenizer", {{"type", "BertPreTokenizer"}}), HasSubstr("is Bert"));
  const char* const kExpression = "/pre_tokenizer/pretokenizers/0/pattern/Regex";
  EXPECT_EQ(with(kExpression, "\\w+"), "");
  EXPECT_THAT(with(kExpression, "(a)\\1"), HasSubstr("this escape is not read: `\\1`"));
  EXPECT_THAT(with("/pre_tokenizer/pretokenizers/0/behavior", "Other"), HasSubstr("Isolated"));
  EXPECT_THAT(with("/decoder", {{"type", "WordPiece"}}), HasSubstr("the decoder is WordPiece"));
  EXPECT_THAT(with("/post_processor", {{"type", "BertProcessing"}}), HasSubstr("BertProcessing"));
  const Json text = {{"Sequence", {{"id", "A"}}}};
  const Json token = {{"SpecialToken", {{"id", "<|end_of_text|>"}}}};
  const auto ends = [&](Json single) {
    return with("/post_processor", {{"type", "TemplateProcessing"}, {"single", std::move(single)}});
  };
  EXPECT_EQ(ends(Json::array({text})), "");  // clang takes {text} for text itself
  EXPECT_EQ(ends({token, text, token}), "");
  EXPECT_THAT(ends({token, token, text}), HasSubstr("at most one token before a text"));
  EXPECT_THAT(ends({text, token, token}), HasSubstr("and one behind it"));
  const int32_t id = whole["added_tokens"][0]["id"];
  EXPECT_THAT(with("/added_tokens/0/id", id + 7), HasSubstr("the id that `tokenizers` gives it"));
  EXPECT_THAT(with("/post_processor", {{"type", "TemplateProcessing"},
                                       {"single", {token, text}},
                                       {"special_tokens", {{"<|end_of_text|>", {{"ids", {3}}}}}}}),
              HasSubstr("the template puts [3] for '<|end_of_text|>'"));
}

TEST_F(ByteLevelRefusal, OfWhatIsDamaged) {
  const Json whole = json_;
  const auto with = [&](const char* pointer, Json value) {
    json_ = whole;
    json_[Json::json_pointer(pointer)] = std::move(value);
    return refusal();
  };
  EXPECT_THAT(with("/model/vocab/a", -1), HasSubstr("the id of 'a'"));
  EXPECT_THAT(with("/model/vocab/a", "7"), HasSubstr("the id of 'a'"));
  EXPECT_THAT(with("/model/vocab", Json::array()), HasSubstr("'vocab' is no object"));
  EXPECT_THAT(with("/model/merges/0", "onlyone"), HasSubstr("has no space"));
  EXPECT_THAT(with("/model/merges/0", "a b c"), HasSubstr("more than one space"));
  EXPECT_THAT(with("/model/merges/0", 7), HasSubstr("a merge is 7"));
  const auto delimiter = [&](const char* text) {
    return with("/pre_tokenizer/pretokenizers/0",
                {{"type", "CharDelimiterSplit"}, {"delimiter", text}});
  };
  EXPECT_EQ(delimiter("\u2581"), "");
  EXPECT_THAT(delimiter(""), HasSubstr("'delimiter' is not one character"));
  EXPECT_THAT(delimiter("ab"), HasSubstr("'delimiter' is not one character"));
  EXPECT_THAT(with("/model/merges/0", "zz qq"), HasSubstr("lacks a part of the merge"));
  EXPECT_THAT(with("/model/ignore_merges", "yes"), HasSubstr("neither true nor false"));
  EXPECT_THAT(with("/added_tokens/0/id", 1e9), HasSubstr("the id of"));
  EXPECT_THAT(with("/added_tokens/0/content", "other"), HasSubstr("no added token"));
  json_ = whole;
  json_["model"]["vocab"].erase("!");
  EXPECT_THAT(refusal(), HasSubstr("lacks"));
  json_ = Json::array();
  EXPECT_THAT(refusal(), HasSubstr("is no JSON object"));
}

}  // namespace
}  // namespace skein
