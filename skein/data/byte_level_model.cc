#include "skein/data/byte_level_model.h"

#include <algorithm>
#include <unordered_map>

#include "skein/base/error.h"
#include "skein/bpe/byte_alphabet.h"

namespace skein {
namespace {

class Parser {
 public:
  Parser(const Json& json, const std::string& where) : json_(json), where_(where) {}

  ByteLevelModel parse() {
    if (!json_.is_object()) corrupt("is no JSON object");
    parse_model(member(json_, "model"));
    parse_normalizer(optional(json_, "normalizer"));
    parse_pre_tokenizer(optional(json_, "pre_tokenizer"));
    if (const Json& added = optional(json_, "added_tokens"); !added.is_null()) parse_added(added);
    parse_template(optional(json_, "post_processor"));
    for (const AddedToken& token : model_.added) {
      model_.num_ids = std::max(model_.num_ids, token.id + 1);
    }
    return std::move(model_);
  }

 private:
  [[noreturn]] void corrupt(const std::string& what) const {
    fail(ErrorCode::kCorrupt, "{}: {}: it is no tokenizer.json, or damaged", where_, what);
  }
  [[noreturn]] void unsupported(const std::string& what, const std::string& expected) const {
    fail(ErrorCode::kUnsupported, "{}: {}: expected {}; with anything else the ids would differ",
         where_, what, expected);
  }

  const Json& optional(const Json& object, const char* key) const {
    static const Json kNull;
    if (!object.is_object()) corrupt(fmt::format("what should hold '{}' is no object", key));
    const auto found = object.find(key);
    return found == object.end() ? kNull : *found;
  }
  const Json& member(const Json& object, const char* key) const {
    const Json& found = optional(object, key);
    if (found.is_null()) corrupt(fmt::format("'{}' is missing", key));
    return found;
  }
  std::string text_of(const Json& object, const char* key) const {
    const Json& found = member(object, key);
    if (!found.is_string()) corrupt(fmt::format("'{}' is no string", key));
    return found.get<std::string>();
  }
  bool flag_of(const Json& object, const char* key, bool otherwise = false) const {
    const Json& found = optional(object, key);
    if (found.is_null()) return otherwise;
    if (!found.is_boolean()) corrupt(fmt::format("'{}' is neither true nor false", key));
    return found.get<bool>();
  }
  int32_t id_of(const Json& json, const std::string& what) const {
    constexpr int32_t kMost = 1 << 24;
    if (!json.is_number_integer() || json < 0 || json >= kMost) {
      corrupt(fmt::format("the id of '{}' is no number from 0 to {}", what, kMost - 1));
    }
    return json.get<int32_t>();
  }

  void parse_model(const Json& model) {
    const Json& type = optional(model, "type");
    if (!type.is_null() && type != "BPE") {
      unsupported(fmt::format("the model is of type {}", type.dump()), "\"BPE\"");
    }
    if (flag_of(model, "byte_fallback")) {
      unsupported(
          "there is no tokenizer.model beside it, and byte_fallback says that it was made "
          "of one",
          "SentencePiece's tokenizer.model, or byte-level BPE");
    }
    for (const char* key :
         {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"}) {
      const Json& value = optional(model, key);
      if (!value.is_null() && value != "" && value != 0.0) {
        unsupported(fmt::format("model.{} is {}", key, value.dump()), "byte-level BPE without it");
      }
    }
    model_.ignore_merges = flag_of(model, "ignore_merges");

    const Json& vocabulary = member(model, "vocab");
    if (!vocabulary.is_object()) corrupt("'vocab' is no object");
    std::unordered_map<std::string, int32_t> spelled;
    for (const auto& [text, json] : vocabulary.items()) {
      const int32_t id = id_of(json, text);
      spelled.emplace(text, id);
      model_.num_ids = std::max(model_.num_ids, id + 1);
      std::string bytes;
      if (bpe::from_byte_level(text, bytes)) model_.vocabulary.add(bytes, id);
    }
    for (int byte = 0; byte < 256; ++byte) {
      if (model_.vocabulary.find(std::string(1, static_cast<char>(byte))) < 0) {
        unsupported(fmt::format("the vocabulary lacks byte 0x{:02x}", byte),
                    "byte-level BPE, which has all 256");
      }
    }
    const Json& merges = member(model, "merges");
    if (!merges.is_array()) corrupt("'merges' is no array");
    for (const Json& merge : merges) {
      std::string left, right;
      if (merge.is_string()) {
        const auto text = merge.get<std::string>();
        const size_t space = text.find(' ');
        if (space == std::string::npos) corrupt(fmt::format("merge '{}' has no space", text));
        left = text.substr(0, space);
        right = text.substr(space + 1);
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
                 merge[1].is_string()) {
        left = merge[0].get<std::string>();
        right = merge[1].get<std::string>();
      } else {
        corrupt(fmt::format("a merge is {}, expected two strings", merge.dump().substr(0, 80)));
      }
      const auto a = spelled.find(left), b = spelled.find(right), both = spelled.find(left + right);
      if (a == spelled.end() || b == spelled.end() || both == spelled.end()) {
        corrupt(fmt::format("the vocabulary lacks a part of the merge '{}' + '{}'", left, right));
      }
      model_.merges.emplace_back(a->second, b->second);
      model_.merged.push_back(both->second);
    }
  }

  void parse_normalizer(const Json& normalizer) {
    if (normalizer.is_null()) return;
    const std::string type = text_of(normalizer, "type");
    if (type == "NFC") {
      model_.nfc = true;
    } else if (type == "Sequence") {
      for (const Json& each : member(normalizer, "normalizers")) parse_normalizer(each);
    } else {
      unsupported(fmt::format("the normalizer is {}", type), "none, or NFC");
    }
  }

  void parse_pre_tokenizer(const Json& pre_tokenizer) {
    bool is_split = false, is_byte_level = false;
    const auto visit = [&](const Json& each) {
      const std::string type = text_of(each, "type");
      if (type == "ByteLevel" && !is_byte_level) {
        is_byte_level = true;
        if (flag_of(each, "add_prefix_space", true)) {
          unsupported("the pre-tokenizer puts a space before texts (add_prefix_space)", "none");
        }
        if (flag_of(each, "use_regex", true)) {
          if (is_split) unsupported("the pre-tokenizer splits twice", "one pattern");
          is_split = true;
        }
      } else if (type == "Split" && !is_split && !is_byte_level) {
        is_split = true;
        const Json& pattern = member(each, "pattern");
        const auto named = pattern.contains("Regex")
                               ? bpe::SplitPattern::named(text_of(pattern, "Regex"))
                               : std::nullopt;
        if (!named) {
          unsupported(fmt::format("the pre-tokenizer splits by {}", pattern.dump()),
                      "the pattern of GPT-2, Llama 3 or Qwen 2");
        }
        if (text_of(each, "behavior") != "Isolated" || flag_of(each, "invert")) {
          unsupported("the pre-tokenizer's Split is not \"Isolated\", or inverted", "neither");
        }
        model_.pattern = *named;
      } else {
        unsupported(fmt::format("the pre-tokenizer has {}, or has it twice", type),
                    "Split and ByteLevel");
      }
    };
    if (pre_tokenizer.is_null()) unsupported("there is no pre-tokenizer", "ByteLevel");
    if (text_of(pre_tokenizer, "type") == "Sequence") {
      const Json& all = member(pre_tokenizer, "pretokenizers");
      if (!all.is_array()) corrupt("'pretokenizers' is no array");
      for (const Json& each : all) visit(each);
    } else {
      visit(pre_tokenizer);
    }
    if (!is_byte_level || !is_split) {
      unsupported("the pre-tokenizer does not split, or not into bytes", "Split and ByteLevel");
    }
  }

  void parse_added(const Json& added) {
    if (!added.is_array()) corrupt("'added_tokens' is no array");
    for (const Json& json : added) {
      AddedToken token;
      token.text = text_of(json, "content");
      token.id = id_of(member(json, "id"), token.text);
      token.special = flag_of(json, "special");
      token.normalized = flag_of(json, "normalized", !token.special);
      if (token.text.empty()) continue;
      for (const char* key : {"single_word", "lstrip", "rstrip"}) {
        if (!token.special && flag_of(json, key)) {
          unsupported(fmt::format("the added token '{}' has {}", token.text, key),
                      "tokens that stand for their text alone");
        }
      }
      model_.added.push_back(std::move(token));
    }
  }

  void parse_template(const Json& processor) {
    if (processor.is_null()) return;
    const std::string type = text_of(processor, "type");
    if (type == "Sequence") {
      for (const Json& each : member(processor, "processors")) parse_template(each);
    } else if (type == "TemplateProcessing") {
      const Json& single = member(processor, "single");
      if (!single.is_array()) corrupt("the template 'single' is no array");
      parse_single(single);
    } else if (type != "ByteLevel") {
      unsupported(fmt::format("the post-processor is {}", type), "TemplateProcessing or ByteLevel");
    }
  }

  // A text, with at most one token on either side.
  void parse_single(const Json& single) {
    bool has_text = false;
    for (const Json& part : single) {
      const Json& special = part.is_object() ? optional(part, "SpecialToken") : Json();
      if (special.is_null()) {
        has_text = true;
        continue;
      }
      int32_t& id = has_text ? model_.end_id : model_.bos_id;
      if (id >= 0) {
        unsupported(fmt::format("the template 'single' is {}", single.dump().substr(0, 200)),
                    "at most one token before a text, and one behind it");
      }
      const std::string text = text_of(special, "id");
      const auto token = std::find_if(model_.added.begin(), model_.added.end(),
                                      [&](const AddedToken& each) { return each.text == text; });
      if (token == model_.added.end()) {
        corrupt(fmt::format("the template has '{}', which is no added token", text));
      }
      id = token->id;
    }
  }

  const Json& json_;
  const std::string& where_;
  ByteLevelModel model_;
};

}  // namespace

ByteLevelModel parse_byte_level_model(const Json& json, const std::string& where) {
  return Parser(json, where).parse();
}

}  // namespace skein
