#include "skein/data/tokenizer/sentencepiece/hugging_face_files.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/json.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "tests/places.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const fs::path kGoldens = fs::path(kSourceFolder) / "skein/data/tokenizer/testdata/models";

SentencePieceModel golden(const char* name) {
  const fs::path path = kGoldens / name / "tokenizer.model";
  return parse_sentencepiece_model(read_file(path), path.string());
}

class HuggingFaceTokenizer : public testing::TestWithParam<const char*> {};

// transformers gave SentencePiece's ids with exactly these bytes, on every text of ids.json: see
// scripts/goldens/tokenizer_transformers.py, which must run again when they change.
TEST_P(HuggingFaceTokenizer, IsWhatTransformersWasJudgedWith) {
  const Json goldens = read_json((kGoldens / "transformers.json").string());
  const Json& judged = goldens["models"][GetParam()];
  EXPECT_EQ(judged["texts"], read_json((kGoldens / "ids.json").string())[GetParam()].size());
  const auto files = hugging_face_tokenizer_files(golden(GetParam()), "model");
  ASSERT_EQ(judged["files"].size(), files.size());
  for (const auto& [name, text] : files) {
    EXPECT_EQ(judged["files"][name], xxh3_128_hex(std::as_bytes(std::span(text)))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, HuggingFaceTokenizer,
                         testing::Values("llama", "bare", "trim", "symbols"));

TEST(HuggingFaceTokenizerFile, HoldsTheModel) {
  const SentencePieceModel model = golden("llama");
  const Json json = parse_json(hugging_face_tokenizer_json(model), "tokenizer.json");
  EXPECT_EQ(json["model"]["vocab"].size(), 512u);
  EXPECT_EQ(json["model"]["vocab"]["<0x0A>"], 13);
  EXPECT_EQ(json["added_tokens"].size(), 3u);
  // Every piece longer than a character results from merges, the best first.
  std::vector<std::string> made, wanted;
  for (const Json& merge : json["model"]["merges"]) {
    const auto text = merge[0].get<std::string>() + merge[1].get<std::string>();
    if (made.empty() || made.back() != text) made.push_back(text);
  }
  const auto is_one_character = [](std::string_view text) {
    return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }) == 1;
  };
  for (const auto& [text, score, type] : model.pieces) {
    if (type == SentencePiece::Type::kNormal && !is_one_character(text)) wanted.push_back(text);
  }
  EXPECT_EQ(made, wanted);
}

TEST(HuggingFaceTokenizerFile, FramesTextAsTrainingDoes) {
  const auto json = [](const char* name) {
    return parse_json(hugging_face_tokenizer_json(golden(name)), name);
  };
  EXPECT_EQ(json("llama")["normalizer"]["normalizers"][0]["type"], "Prepend");
  EXPECT_EQ(json("bare")["normalizer"]["normalizers"][0]["type"], "Replace");
  EXPECT_EQ(json("llama")["post_processor"]["single"][0]["SpecialToken"]["id"], "<s>");
  EXPECT_TRUE(json("bare")["post_processor"].is_null());
  EXPECT_EQ(json("symbols")["post_processor"]["single"][0]["SpecialToken"]["id"], "<|begin|>");
  const auto config = [](const char* name, const char* chat_template = "") {
    const auto files =
        hugging_face_tokenizer_files(golden(name), name, {.chat_template = chat_template});
    return parse_json(files.at("tokenizer_config.json"), name);
  };
  EXPECT_EQ(config("symbols")["bos_token"], "<|begin|>");
  EXPECT_FALSE(config("bare").contains("bos_token"));
  EXPECT_EQ(config("bare")["add_bos_token"], false);
  EXPECT_EQ(config("llama")["split_special_tokens"], true);
  EXPECT_EQ(config("llama", "{{ bos_token }}")["split_special_tokens"], false);
  EXPECT_EQ(config("llama", "{{ bos_token }}")["chat_template"], "{{ bos_token }}");
}

// Two cuts of one piece compete for text: the left one comes first, as in SentencePiece.
TEST(HuggingFaceTokenizerFile, CutsThatCompeteAreInTheirOrder) {
  SentencePieceModel model = golden("llama");
  model.pieces.resize(259);
  const auto add = [&](const char* text, float score) { model.pieces.push_back({text, score}); };
  add("xyx", 0);
  add("yx", -1);
  add("xy", -2);
  add("x", -3);
  add("y", -4);
  const Json json = parse_json(hugging_face_tokenizer_json(model), "model");
  EXPECT_THAT(json["model"]["merges"], ElementsAre(Json({"xy", "x"}), Json({"x", "yx"}),
                                                   Json({"y", "x"}), Json({"x", "y"})));
}

TEST(HuggingFaceTokenizerFile, SaysWhatItCannotReproduce) {
  EXPECT_THAT(why_no_hugging_face_tokenizer(golden("rules")), HasSubstr("normalizer has rules"));
  EXPECT_THAT(why_no_hugging_face_tokenizer(golden("unigram")), HasSubstr("unigram"));
  for (const char* name : {"llama", "bare", "trim", "symbols"}) {
    EXPECT_EQ(why_no_hugging_face_tokenizer(golden(name)), "") << name;
  }
  const auto why = [](auto&& change) {
    SentencePieceModel model = golden("symbols");
    change(model);
    return why_no_hugging_face_tokenizer(model);
  };
  using Type = SentencePiece::Type;
  EXPECT_THAT(why([](auto& model) { model.whitespace_is_suffix = true; }), HasSubstr("suffix"));
  EXPECT_THAT(why([](auto& model) { model.escape_whitespaces = false; }), HasSubstr("spaces"));
  EXPECT_THAT(why([](auto& model) { model.has_denormalizer = true; }), HasSubstr("denormalizer"));
  EXPECT_THAT(why([](auto& model) {
                model.pieces.push_back({"qq", -1, Type::kUnused});
              }),
              HasSubstr("`qq` is unused"));
  EXPECT_THAT(why([](auto& model) {
                model.pieces.push_back({"q q", 0, Type::kUserDefined});
              }),
              HasSubstr("holds a space"));
  EXPECT_THAT(why([](auto& model) {
                model.remove_extra_whitespaces = true;
                model.pieces.push_back({"\u2581\u2581", 0, Type::kUserDefined});
              }),
              HasSubstr("keeps spaces"));
  EXPECT_THAT(why([](auto& model) {
                model.pieces.push_back({"in in", -1e6f});
                model.pieces.push_back({"is is", -1e6f});
                for (const char* text : {" "}) model.pieces.push_back({text, -1e7f});
              }),
              HasSubstr("have one score"));
  EXPECT_THAT(why([](auto& model) {
                model.pieces.push_back({"a☃", -1e6f});
              }),
              HasSubstr("character `☃` of piece `a☃`"));
  // No pair of pieces makes this one, yet as a whole word it would become it beside symbols.
  EXPECT_THAT(why([](auto& model) {
                model.pieces.push_back({"xqzjxqzj", -1e6f});
              }),
              HasSubstr("merging does not lead to piece `xqzjxqzj`"));
  EXPECT_THROW(Tokenizer::load(kGoldens / "unigram")->export_files(), Error);
  EXPECT_THAT(Tokenizer::load(kGoldens / "unigram")->why_not_exported(), HasSubstr("unigram"));
}

}  // namespace
}  // namespace skein
