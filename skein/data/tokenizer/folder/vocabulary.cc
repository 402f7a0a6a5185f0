// vocab.json with merges.txt, and what a class of transformers makes of files beside a vocabulary.
#include <algorithm>
#include <variant>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/bpe/steps/split_pattern.h"
#include "skein/data/tokenizer/folder/files.h"
#include "skein/data/tokenizer/folder/folder.h"
#include "skein/data/tokenizer/folder/made.h"
#include "skein/data/tokenizer/folder/sources.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

using namespace internal;

std::string read(const fs::path& file) { return read_file_or_object(file, kMaxTokenizerBytes); }

// The class of transformers that reads the folder.
std::string class_of(const TokenizerFolder& folder) {
  if (const std::string name = folder.class_name(); !name.empty()) return name;
  const std::string type = folder.model_type();
  if (type.starts_with("qwen2") || type.starts_with("qwen3")) return "Qwen2Tokenizer";
  if (type == "roberta") return "RobertaTokenizer";
  return type.empty() || type == "gpt2" ? "GPT2Tokenizer" : "that of model_type " + type;
}

void add_special(const Json& token, const Json& vocabulary, const TokenizerJson& reader,
                 Json& added) {
  const Json& text = token.is_object() && token.contains("content") ? token["content"] : token;
  if (!text.is_string() || !vocabulary.contains(text.get<std::string>())) return;
  const auto content = text.get<std::string>();
  const bool is_known = std::any_of(added.begin(), added.end(),
                                    [&](const Json& each) { return each["content"] == content; });
  if (is_known) return;
  const int32_t id = reader.id_of(vocabulary[content], content);
  added.push_back(added_token_json<Json>({.text = content, .id = id, .special = true}));
}

// Whether it puts a space, as it spells one, before a text.
bool begins_with_space(const ByteLevelModel& model) {
  for (const bpe::NormalizerStep& step : model.normalizer.steps) {
    if (std::holds_alternative<bpe::PrependStep>(step)) return true;
  }
  for (const bpe::PreTokenizerStep& step : model.pre_tokenizer.steps) {
    const auto* const bytes = std::get_if<bpe::ByteLevelStep>(&step);
    const auto* const metaspace = std::get_if<bpe::MetaspaceStep>(&step);
    if (bytes != nullptr && bytes->add_prefix_space) return true;
    if (metaspace != nullptr && metaspace->prepend != bpe::MetaspaceStep::Prepend::kNever) {
      return true;
    }
  }
  return false;
}

Json read_merges(const fs::path& file) {
  const std::string text = read(file);
  Json merges = Json::array();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.pop_back();
    begin = end + 1;
    if (!line.starts_with("#version") && !line.empty()) merges.push_back(std::move(line));
  }
  return merges;
}

// How a class splits texts; null: any way that tokenizer.json has.
Json splits_of(const std::string& class_name, bool add_prefix_space) {
  if (class_name == "Qwen2Tokenizer") {
    return {
        {"normalizer", {{"type", "NFC"}}},
        {"pre_tokenizer",
         pre_tokenizer_json<Json>(
             std::string(bpe::SplitPattern::regular_expression(bpe::SplitPattern::Kind::kQwen2)),
             add_prefix_space)}};
  }
  if (class_name != "GPT2Tokenizer") return nullptr;
  return {{"normalizer", nullptr},
          {"pre_tokenizer", pre_tokenizer_json<Json>("", add_prefix_space)}};
}

// Where a token begins in its text is no matter of ids.
Json without_offsets(Json json) {
  if (json.is_object()) json.erase("trim_offsets");
  for (Json& each : json) {
    if (each.is_structured()) each = without_offsets(std::move(each));
  }
  return json;
}

}  // namespace

std::string class_of_other_ids(const std::map<std::string, std::string>& files,
                               const std::string& of_model) {
  const auto object = [&](const char* name) {
    const auto found = files.find(name);
    return found == files.end() ? Json::object() : parse_json(found->second, name);
  };
  const Json json = object("tokenizer.json"), config = object("tokenizer_config.json");
  if (json.empty()) return "";
  const Json named = config.value("tokenizer_class", Json());
  std::string name = of_model.empty() && named.is_string() ? named.get<std::string>() : of_model;
  if (name.ends_with("Fast")) name.resize(name.size() - 4);
  const Json splits = splits_of(name, config.value("add_prefix_space", Json()) == Json(true));
  if (splits.is_null()) return "";
  const Json theirs = {{"normalizer", json.value("normalizer", Json())},
                       {"pre_tokenizer", json.value("pre_tokenizer", Json())}};
  return without_offsets(theirs) == without_offsets(splits) ? "" : name;
}

TokenizerSource read_vocabulary_source(const fs::path& file, const TokenizerFolder& folder) {
  const std::string where = file.string();
  const TokenizerJson reader(where, "vocab.json");
  const Json vocabulary = parse_json(read(file), where);
  if (!vocabulary.is_object()) reader.corrupt("is no JSON object");
  const std::string name = class_of(folder);
  const bool is_qwen = name == "Qwen2Tokenizer";
  if (!is_qwen && name != "GPT2Tokenizer" && name != "RobertaTokenizer") {
    fail(ErrorCode::kUnsupported,
         "{}: the tokenizer_class is {}: expected GPT2Tokenizer, RobertaTokenizer or "
         "Qwen2Tokenizer. Others convert it: python -c \"from transformers import AutoTokenizer as "
         "T; T.from_pretrained('{}').save_pretrained('converted')\"",
         where, name, file.parent_path().string());
  }
  Json made =
      tokenizer_json<Json>(vocabulary, read_merges(file.parent_path() / "merges.txt"), false);
  made["pre_tokenizer"] = pre_tokenizer_json<Json>(
      is_qwen ? std::string(bpe::SplitPattern::regular_expression(bpe::SplitPattern::Kind::kQwen2))
              : "",
      folder.flag("add_prefix_space"));
  if (is_qwen) made["normalizer"] = {{"type", "NFC"}};
  TokenizerSource source{.is_made = true};
  if (vocabulary.contains("<|endoftext|>")) {
    source.eos = "<|endoftext|>";
    add_special("<|endoftext|>", vocabulary, reader, made["added_tokens"]);
  }
  for (const Json* names : {&folder.config(), &folder.special_map()}) {
    for (const auto& [key, value] : names->items()) {
      if (key.ends_with("_token")) add_special(value, vocabulary, reader, made["added_tokens"]);
    }
  }
  source.json = exact_json(made, "the tokenizer.json of " + file.string());
  return source;
}

int32_t source_end(const TokenizerSource& source, const ByteLevelModel& model) {
  if (source.eos.empty()) return -1;
  const auto token = std::find_if(model.added.begin(), model.added.end(),
                                  [&](const AddedToken& each) { return each.text == source.eos; });
  return token == model.added.end() ? -1 : token->id;
}

void add_made_files(const TokenizerSource& source, std::map<std::string, std::string>& contents) {
  std::erase_if(contents, [](const auto& file) {
    return file.first == "vocab.json" || file.first == "merges.txt" ||
           file.first.find("tekken") != std::string::npos || file.first.ends_with(".tiktoken") ||
           file.first.ends_with(".model");
  });
  contents["tokenizer.json"] = source.json;
  std::string& file = contents["tokenizer_config.json"];
  Json config = file.empty() ? Json::object() : parse_json(file, "tokenizer_config.json");
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  if (!source.bos.empty() && !config.contains("bos_token")) config["bos_token"] = source.bos;
  if (!source.eos.empty() && !config.contains("eos_token")) config["eos_token"] = source.eos;
  file = exact_json(config, "tokenizer_config.json", 2) + "\n";
}

void check_prefix_space(const TokenizerFolder& folder, const std::string& json,
                        const ByteLevelModel& model) {
  if (!folder.config().contains("add_prefix_space") || folder.class_name().empty()) return;
  if (folder.config()["add_prefix_space"].is_null()) return;
  const std::string name = folder.class_name();
  const bool is_rebuilt = name == "GPT2Tokenizer" || name == "Qwen2Tokenizer" ||
                          name == "RobertaTokenizer" || name == "LlamaTokenizer" ||
                          name == "CodeLlamaTokenizer";
  const bool expected = folder.flag("add_prefix_space");
  const bool is_there = begins_with_space(model);
  if (!is_rebuilt || expected == is_there) return;
  fail(ErrorCode::kInvalid,
       "{}: tokenizer_config.json has add_prefix_space {}, as which transformers' {} reads it, and "
       "this file {} a space before a text: expected both to say the same. Set it to {}, if "
       "tokenizer.json is right",
       json, expected, name, is_there ? "puts" : "does not put", is_there);
}

}  // namespace skein
