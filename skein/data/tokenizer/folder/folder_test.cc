#include "skein/data/tokenizer/folder/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "skein/base/error.h"
#include "skein/base/text/json.h"
#include "skein/data/tokenizer/sentencepiece/hugging_face_files.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "tests/error_of.h"
#include "tests/places.h"

namespace skein {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const fs::path kTestData = fs::path(kSourceFolder) / "skein/data/tokenizer/testdata";
const fs::path kModel = kTestData / "models/llama/tokenizer.model";

using Files = std::map<std::string, std::string>;

fs::path folder_with(const Files& files) {
  static int number = 0;
  const fs::path folder =
      fs::path(testing::TempDir()) / fmt::format("tokenizer-folder-{}-{}", ::getpid(), number++);
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const auto& [name, text] : files) write_file_atomic(folder / name, text);
  return folder;
}

// A SentencePiece model with files beside it.
fs::path model_folder(Files files) {
  files["tokenizer.model"] = read_file(kModel);
  return folder_with(files);
}

Json plain_json() {
  return parse_json(
      hugging_face_tokenizer_json(parse_sentencepiece_model(read_file(kModel), "llama")), "json");
}

fs::path golden_folder(const Json& golden) {
  Files files;
  for (const auto& [name, text] : golden["files"].items()) files[name] = text;
  if (!golden["added_to_json"].empty()) {
    Json json = plain_json();
    for (const Json& token : golden["added_to_json"]) json["added_tokens"].push_back(token);
    files["tokenizer.json"] = json.dump();
  }
  return model_folder(files);
}

Json goldens() { return read_json((kTestData / "models/folders.json").string()); }

TEST(TokenizerFolder, IdsAndEosAreThoseOfTransformers) {
  const Json all = goldens();
  ASSERT_GE(all.size(), 5u);
  for (const Json& golden : all) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    const auto tokenizer = Tokenizer::load(golden_folder(golden));
    EXPECT_EQ(tokenizer->eos_id(), golden["eos"]);
    EXPECT_EQ(tokenizer->vocab_size(), golden["tokens"]);
    for (const Json& one : golden["ids"]) {
      const std::string text = one["text"];
      std::vector<int32_t> ids, parsed;
      tokenizer->encode(text, ids);
      tokenizer->parse(text, parsed);
      EXPECT_EQ(Json(ids), one["text_ids"]) << text;
      EXPECT_EQ(Json(parsed), one["parsed_ids"]) << text;
    }
  }
}

TEST(TokenizerFolder, AnExportGivesTheSameTokenizer) {
  for (const Json& golden : goldens()) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    const auto tokenizer = Tokenizer::load(golden_folder(golden));
    const auto again = Tokenizer::load(folder_with(tokenizer->export_files()));
    EXPECT_EQ(again->eos_id(), tokenizer->eos_id());
    EXPECT_EQ(again->bos_id(), tokenizer->bos_id());
    for (const Json& one : golden["ids"]) {
      std::vector<int32_t> ids;
      again->encode(one["text"].get<std::string>(), ids);
      EXPECT_EQ(Json(ids), one["text_ids"]) << one["text"];
    }
  }
}

TEST(TokenizerFolder, AnExportKeepsTheKeysThatTheIdsLeaveAlone) {
  const auto tokenizer = Tokenizer::load(model_folder(
      {{"tokenizer_config.json",
        R"({"tokenizer_class": "LlamaTokenizer", "pad_token": "</s>", "model_max_length": 4096,
            "padding_side": "right", "add_bos_token": true, "chat_template": [{"name": "a"}]})"},
       {"special_tokens_map.json", R"({"pad_token": {"content": "</s>", "lstrip": false}})"}}));
  const auto files = tokenizer->export_files();
  const Json config = parse_json(files.at("tokenizer_config.json"), "config");
  EXPECT_EQ(config["pad_token"], "</s>");
  EXPECT_EQ(config["model_max_length"], 4096);
  EXPECT_EQ(config["padding_side"], "right");
  EXPECT_EQ(config["chat_template"].size(), 1u);
  EXPECT_EQ(config["tokenizer_class"], "PreTrainedTokenizerFast");
  const Json map = parse_json(files.at("special_tokens_map.json"), "map");
  EXPECT_EQ(map["pad_token"]["content"], "</s>");
  EXPECT_EQ(map["eos_token"], "</s>");
}

TEST(TokenizerFolder, APlainModelKeepsItsHash) {
  const auto alone = Tokenizer::load(kModel);
  const auto with_files = Tokenizer::load(
      model_folder({{"tokenizer.json", plain_json().dump()},
                    {"tokenizer_config.json", R"({"add_bos_token": true, "eos_token": "</s>"})"}}));
  EXPECT_EQ(with_files->content_hash(), alone->content_hash());
  const auto added = Tokenizer::load(model_folder(
      {{"added_tokens.json", fmt::format(R"({{"<think>": {}}})", alone->vocab_size())}}));
  EXPECT_NE(added->content_hash(), alone->content_hash());
}

TEST(TokenizerFolder, FilesThatContradictEachOtherAreRefusedByName) {
  const int n = Tokenizer::load(kModel)->vocab_size();
  Json other = plain_json();
  other["model"]["vocab"]["</s>"] = 7;
  const auto message = [](const Files& files) {
    return error_of([&] { Tokenizer::load(model_folder(files)); });
  };
  EXPECT_THAT(message({{"tokenizer.json", other.dump()}}),
              HasSubstr("its vocabulary has '</s>' as token 7"));
  EXPECT_THAT(message({{"added_tokens.json", R"({"<think>": 5})"}}),
              HasSubstr("the added token 5 is '<think>'"));
  EXPECT_THAT(message({{"added_tokens.json", fmt::format(R"({{"<think>": {}}})", n + 3)}}),
              HasSubstr(fmt::format("have no token {}", n)));
  EXPECT_THAT(message({{"tokenizer_config.json", R"({"eos_token": "<|im_end|>"})"}}),
              HasSubstr("eos_token is \"<|im_end|>\": expected an added token of"));
  EXPECT_THAT(message({{"added_tokens.json", R"(["<think>"])"}}), HasSubstr("a JSON object"));
}

TEST(TokenizerFolder, AnExportKeepsChatTemplatesThatHaveNames) {
  const std::string tools = "additional_chat_templates/tools.jinja";
  for (const bool is_model : {true, false}) {
    const fs::path folder = folder_with({{"chat_template.jinja", "plain"}});
    is_model
        ? fs::copy_file(kModel, folder / "tokenizer.model")
        : fs::copy_file(kTestData / "byte_level/gpt2/tokenizer.json", folder / "tokenizer.json");
    fs::create_directory(folder / "additional_chat_templates");
    write_file_atomic(folder / tools, "with tools");
    const auto files = Tokenizer::load(folder)->export_files();
    EXPECT_EQ(files.at("chat_template.jinja"), "plain");
    EXPECT_EQ(files.at(tools), "with tools");
  }
}

// Whether a space comes before a text is what transformers does with the folder.
TEST(TokenizerFolder, ASpaceBeforeTextsIsWhereItsFilesSay) {
  const auto first = [](const Files& files) {
    std::vector<int32_t> ids;
    const auto tokenizer = Tokenizer::load(model_folder(files));
    tokenizer->encode("she", ids);
    return tokenizer->decode(ids);
  };
  const auto ids = [](const Files& files) {
    std::vector<int32_t> made;
    Tokenizer::load(model_folder(files))->encode("she", made);
    return made;
  };
  const Files no_space = {{"tokenizer_config.json",
                           R"({"tokenizer_class": "LlamaTokenizer", "add_prefix_space": false})"}};
  EXPECT_NE(ids({}), ids(no_space));
  EXPECT_EQ(first(no_space), "she");
  Json never = plain_json();
  never["normalizer"] = nullptr;
  never["pre_tokenizer"] = {{"type", "Metaspace"}, {"prepend_scheme", "never"}, {"split", false}};
  EXPECT_EQ(ids({{"tokenizer.json", never.dump()}}), ids(no_space));
  EXPECT_EQ(ids({{"tokenizer.json", plain_json().dump()}}), ids({}));
}

TEST(TokenizerFolder, FlagsOfAddedTokensAreInTheHash) {
  const auto hash = [](const char* flags) {
    const std::string token = fmt::format(R"({{"content": "</s>", "special": true{}}})", flags);
    return Tokenizer::load(model_folder({{"tokenizer_config.json",
                                          R"({"added_tokens_decoder": {"2": )" + token + "}}"}}))
        ->content_hash();
  };
  EXPECT_EQ(hash(""), Tokenizer::load(kModel)->content_hash());
  EXPECT_NE(hash(R"(, "rstrip": true)"), hash(""));
  EXPECT_NE(hash(R"(, "rstrip": true)"), hash(R"(, "lstrip": true)"));
}

TEST(TokenizerFolder, ValuesOfAWrongKindAreNamed) {
  for (const char* text :
       {R"({"add_bos_token": "yes"})", R"({"eos_token": 5})", R"({"tokenizer_class": 5})",
        R"({"added_tokens_decoder": []})", R"({"added_tokens_decoder": {"512": 5}})",
        R"({"added_tokens_decoder": {"512": {"content": 5}}})",
        R"({"added_tokens_decoder": {"x": {"content": "a"}}})",
        R"({"added_tokens_decoder": {"512": {"content": "a", "lstrip": 1}}})", "[]", "5"}) {
    EXPECT_THAT(error_of([&] {
                  Tokenizer::load(model_folder({{"tokenizer_config.json", text}}));
                }),
                HasSubstr("tokenizer_config.json"))
        << text;
  }
  EXPECT_THAT(error_of([] {
                Tokenizer::load(model_folder({{"tokenizer.json", "[]"}}));
              }),
              HasSubstr("tokenizer.json"));
  const auto nulls = Tokenizer::load(
      model_folder({{"tokenizer_config.json", R"({"tokenizer_class": null, "add_bos_token": null,
                                     "eos_token": null, "padding_side": null})"}}));
  EXPECT_EQ(nulls->eos_id(), 2);
  EXPECT_NO_THROW(nulls->export_files());
}

TEST(TokenizerFolder, EosIsOfTheModelWhereNoTokenizerFileNamesIt) {
  const std::string json = read_file(kTestData / "byte_level/gpt2/tokenizer.json");
  const Json parsed = parse_json(json, "json");
  ASSERT_FALSE(parsed["added_tokens"].empty());
  const int64_t id = parsed["added_tokens"][0]["id"];
  const auto load = [&](Files files) {
    files["tokenizer.json"] = json;
    return Tokenizer::load(folder_with(files));
  };
  const auto none = load({});
  EXPECT_EQ(none->eos_id(), -1);
  EXPECT_THAT(none->notes(), ElementsAre(HasSubstr("no token ends a text")));
  const auto config = load({{"config.json", fmt::format(R"({{"eos_token_id": {}}})", id)}});
  EXPECT_EQ(config->eos_id(), id);
  EXPECT_THAT(config->notes(), ElementsAre(HasSubstr("config.json")));
  const auto generation =
      load({{"config.json", R"({"eos_token_id": 3})"},
            {"generation_config.json", fmt::format(R"({{"eos_token_id": [{}, 3]}})", id)}});
  EXPECT_EQ(generation->eos_id(), id);
  const auto named =
      load({{"config.json", R"({"eos_token_id": 3})"},
            {"tokenizer_config.json",
             fmt::format(R"({{"eos_token": {}}})", parsed["added_tokens"][0]["content"].dump())}});
  EXPECT_EQ(named->eos_id(), id);
  EXPECT_THAT(named->notes(), IsEmpty());
}

}  // namespace
}  // namespace skein
