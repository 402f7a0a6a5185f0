// Ids of other formats than tokenizer.json: what tiktoken and transformers give.
#include "skein/data/tokenizer/folder/sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "skein/base/error.h"
#include "skein/base/text/json.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "tests/error_of.h"
#include "tests/places.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

const fs::path kForms = fs::path(kSourceFolder) / "skein/data/tokenizer/testdata/forms";
const fs::path kSeeds = fs::path(kSourceFolder) / "tests/fuzz/tokenizer_sources_fuzz";

std::vector<int32_t> encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

void write(const fs::path& file, std::string_view text) { std::ofstream(file) << text; }

// A tiktoken file with a few words among its ranks.
std::string tiktoken_text(int num_ranks) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto base64 = [&](const std::string& bytes) {
    std::string text;
    for (size_t at = 0; at < bytes.size(); at += 3) {
      uint32_t bits = 0;
      const size_t size = std::min<size_t>(3, bytes.size() - at);
      for (size_t i = 0; i < 3; ++i) {
        bits = bits << 8 | (i < size ? static_cast<uint8_t>(bytes[at + i]) : 0);
      }
      for (size_t i = 0; i < 4; ++i)
        text.push_back(i > size ? '=' : kDigits[bits >> (18 - 6 * i) & 63]);
    }
    return text;
  };
  std::string lines;
  int rank = 0;
  const auto add = [&](const std::string& bytes) {
    lines += base64(bytes) + " " + std::to_string(rank++) + "\n";
  };
  for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
  add("th");
  add(" th");
  add("the");
  while (rank < num_ranks) add("\x01" + std::to_string(rank));
  return lines;
}

// GPT-2's folder in two files has the ids of its tokenizer.json, and so has what is exported.
TEST(TokenizerSources, VocabularyAndMergesAreThoseOfTokenizerJson) {
  const test::TempFolder folder;
  const Json json = read_json((kForms / "gpt2/tokenizer.json").string());
  Json vocabulary = json["model"]["vocab"];
  for (const Json& token : json["added_tokens"]) {
    vocabulary[token["content"].get<std::string>()] = token["id"];
  }
  write(folder / "vocab.json", vocabulary.dump());
  std::string merges = "#version: 0.2\n";
  for (const Json& merge : json["model"]["merges"]) {
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  }
  write(folder / "merges.txt", merges);
  write(folder / "tokenizer_config.json", R"({"eos_token": "<|end|>", "bos_token": "<|begin|>"})");
  const auto tokenizer = Tokenizer::load(folder.path());
  const Json goldens = read_json((kForms / "ids.json").string());
  for (const Json& row : goldens["gpt2"]) {
    EXPECT_EQ(encode(*tokenizer, row["text"].get<std::string>()),
              row["ids"].get<std::vector<int32_t>>())
        << row["text"];
  }
  const auto files = tokenizer->export_files();
  EXPECT_FALSE(files.contains("vocab.json"));
  const test::TempFolder exported;
  for (const auto& [name, contents] : files) write(exported / name, contents);
  const auto again = Tokenizer::load(exported.path());
  EXPECT_EQ(encode(*again, "the quick a"), encode(*tokenizer, "the quick a"));
}

// Of a folder that names no class, model_type of config.json says whose pattern it is.
TEST(TokenizerSources, VocabularyOfAQwenHasItsPattern) {
  const test::TempFolder folder;
  const Json json = read_json((kForms / "qwen2/tokenizer.json").string());
  write(folder / "vocab.json", json["model"]["vocab"].dump());
  std::string merges;
  for (const Json& merge : json["model"]["merges"]) {
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  }
  write(folder / "merges.txt", merges);
  write(folder / "config.json", R"({"model_type": "qwen2"})");
  const auto tokenizer = Tokenizer::load(folder.path());
  const auto judge = Tokenizer::load(kForms / "qwen2");
  for (const char* text : {"don't  12345 \n\n x", "cafe\u0301 12"}) {
    EXPECT_EQ(encode(*tokenizer, text), encode(*judge, text)) << text;
  }
  write(folder / "config.json", R"({"model_type": "whisper"})");
  EXPECT_THAT(error_of([&] { Tokenizer::load(folder.path()); }), HasSubstr("whisper"));
}

// Ids behind a hole, as of cl100k_base, are kept by an export.
TEST(TokenizerSources, AnExportOfTiktokenKeepsIdsBehindAHole) {
  const test::TempFolder folder;
  write(folder / "cl100k_base.tiktoken", tiktoken_text(100256));
  const auto tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer->eos_id(), 100257);
  const test::TempFolder exported;
  for (const auto& [name, contents] : tokenizer->export_files()) write(exported / name, contents);
  EXPECT_EQ(Tokenizer::load(exported.path())->eos_id(), 100257);
}

// As transformers 5.24 converts it.
TEST(TokenizerSources, TekkenHasSpecialTokensFirst) {
  const auto tokenizer = Tokenizer::load(kSeeds / "tekken.json");
  EXPECT_EQ(tokenizer->vocab_size(), 262);
  EXPECT_EQ(tokenizer->bos_id(), 1);
  EXPECT_EQ(tokenizer->eos_id(), 2);
  EXPECT_THAT(encode(*tokenizer, "see the 12"),
              ElementsAre(3 + 's', 3 + 'e', 3 + 'e', 261, 3 + ' ', 3 + '1', 3 + '2'));
  EXPECT_EQ(tokenizer->decode(encode(*tokenizer, "see the 12")), "see the 12");
  const auto files = tokenizer->export_files();
  EXPECT_FALSE(files.contains("tekken.json"));
  const test::TempFolder exported;
  for (const auto& [name, contents] : files) write(exported / name, contents);
  std::vector<int32_t> ids, again;
  tokenizer->parse("<s>see the 12</s>", ids);
  Tokenizer::load(exported.path())->parse("<s>see the 12</s>", again);
  EXPECT_EQ(ids.front(), 1);
  EXPECT_EQ(ids.back(), 2);
  EXPECT_EQ(again, ids);
}

// Meta's original/tokenizer.model: 128,000 ranks say that it is Llama 3's.
TEST(TokenizerSources, TiktokenOf128000RanksIsLlama3) {
  const test::TempFolder folder;
  write(folder / "tokenizer.model", tiktoken_text(128000));
  const auto tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer->vocab_size(), 128256);
  EXPECT_EQ(tokenizer->bos_id(), 128000);
  EXPECT_EQ(tokenizer->eos_id(), 128001);
  EXPECT_THAT(encode(*tokenizer, "the the"), ElementsAre(258, 257, 'e'));  // as tiktoken
}

TEST(TokenizerSources, WhatIsNotKnownIsNamed) {
  EXPECT_THAT(error_of([] { Tokenizer::load(kSeeds / "few.tiktoken"); }),
              HasSubstr("a tiktoken file of 259 ranks, which does not hold its pattern"));
  const test::TempFolder folder;
  write(folder / "notes.txt", "x");
  EXPECT_THAT(error_of([&] { Tokenizer::load(folder.path()); }), HasSubstr("there is notes.txt"));
  write(folder / "tekken.json", R"({"config": {"pattern": "x"}, "vocab": []})");
  EXPECT_THAT(error_of([&] { Tokenizer::load(folder.path()); }), HasSubstr("tekken.json"));
  fs::remove(folder / "tekken.json");
  write(folder / "tokenizer.model.v3", "something");
  EXPECT_THAT(error_of([&] { Tokenizer::load(folder.path()); }), HasSubstr("tokenizer.model.v3"));
}

// What transformers 5 takes from a folder of these classes is vocabulary and merges alone.
TEST(TokenizerSources, AClassThatSplitsOtherwiseIsNamed) {
  const auto named = [](const char* form, const char* class_name, const char* of_model = "") {
    return class_of_other_ids(
        {{"tokenizer.json", read_file(kForms / form / "tokenizer.json")},
         {"tokenizer_config.json", fmt::format(R"({{"tokenizer_class": "{}"}})", class_name)}},
        of_model);
  };
  EXPECT_EQ(named("gpt2", "GPT2Tokenizer"), "");
  EXPECT_EQ(named("starcoder", "GPT2TokenizerFast"), "GPT2Tokenizer");
  EXPECT_EQ(named("starcoder", "PreTrainedTokenizerFast"), "");
  EXPECT_EQ(named("qwen2", "Qwen2Tokenizer"), "");
  EXPECT_EQ(named("qwen2", "PreTrainedTokenizerFast", "Qwen2Tokenizer"), "");
  EXPECT_EQ(named("llama3", "PreTrainedTokenizerFast", "Qwen2Tokenizer"), "Qwen2Tokenizer");
}

// transformers 5 would put a space before a text; tokenizer.json does not.
TEST(TokenizerSources, AddPrefixSpaceThatContradictsIsRefused) {
  const test::TempFolder folder;
  fs::copy_file(kForms / "gpt2/tokenizer.json", folder / "tokenizer.json");
  const auto with = [&](const char* config) {
    write(folder / "tokenizer_config.json", config);
    return error_of([&] { Tokenizer::load(folder.path()); });
  };
  EXPECT_EQ(with(R"({"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": false})"), "");
  EXPECT_EQ(with(R"({"tokenizer_class": "PreTrainedTokenizerFast", "add_prefix_space": true})"),
            "");
  EXPECT_THAT(with(R"({"tokenizer_class": "GPT2TokenizerFast", "add_prefix_space": true})"),
              HasSubstr("add_prefix_space true"));
}

}  // namespace
}  // namespace skein
