#include "skein/data/tokenizer/byte_level/byte_level_model.h"

#include <algorithm>
#include <unordered_map>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/bpe/unicode/byte_alphabet.h"
#include "skein/bpe/unicode/invalid_utf8.h"
#include "skein/data/tokenizer/byte_level/steps.h"

namespace skein {
namespace {

using Spelled = std::unordered_map<std::string, int32_t>;  // tokens as the file has them

class ModelParser : private TokenizerJson {
 public:
  ModelParser(const Json& json, const std::string& where) : TokenizerJson(where), json_(json) {}

  ByteLevelModel parse() {
    if (!json_.is_object()) corrupt("is no JSON object");
    model_.normalizer = parse_normalizer(optional(json_, "normalizer"), *this);
    model_.pre_tokenizer = parse_pre_tokenizer(optional(json_, "pre_tokenizer"), *this);
    check_beginning();
    choose_symbols();
    parse_model(member(json_, "model"));
    choose_pattern();
    choose_decoder(optional(json_, "decoder"));
    if (const Json& added = optional(json_, "added_tokens"); !added.is_null()) parse_added(added);
    parse_template(optional(json_, "post_processor"));
    for (const AddedToken& token : model_.added) {
      model_.num_ids = std::max(model_.num_ids, token.id + 1);
    }
    return std::move(model_);
  }

 private:
  void parse_model(const Json& model) {
    const Json& type = optional(model, "type");
    if (!type.is_null() && type != "BPE") {
      unsupported(fmt::format("the model is of type {}", json_text(type)), "\"BPE\"");
    }
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
      const Json& value = optional(model, key);
      if (!value.is_null() && value != "" && value != 0.0) {
        unsupported(fmt::format("model.{} is {}", key, json_text(value)), "BPE without it");
      }
    }
    model_.ignore_merges = flag_of(model, "ignore_merges");
    model_.byte_fallback = flag_of(model, "byte_fallback");
    model_.fuse_unknown = flag_of(model, "fuse_unk");

    const Json& vocabulary = member(model, "vocab");
    if (!vocabulary.is_object()) corrupt("'vocab' is no object");
    Spelled spelled;
    for (const auto& [text, json] : vocabulary.items()) {
      const int32_t id = id_of(json, text);
      spelled.emplace(text, id);
      model_.num_ids = std::max(model_.num_ids, id + 1);
    }
    model_.num_pieces = static_cast<int32_t>(spelled.size());
    if (const Json& unknown = optional(model, "unk_token"); unknown.is_string()) {
      const auto found = spelled.find(unknown.get<std::string>());
      if (found != spelled.end()) model_.unknown_id = found->second;
    }
    check_characters(spelled);
    for (const auto& [text, id] : spelled) {
      std::string bytes;
      if (!model_.is_byte_level) {
        model_.vocabulary.add(text, id);
      } else if (bpe::from_byte_level(text, bytes)) {
        model_.vocabulary.add(bytes, id);
      } else {
        model_.unspelled.emplace(text, id);
      }
    }
    parse_merges(array_of(model, "merges"), spelled);
  }

  // Every character has an id, so that no part of a text vanishes.
  void check_characters(const Spelled& spelled) {
    for (int byte = 0; byte < 256 && spells_; ++byte) {
      if (spelled.contains(bpe::to_byte_level(std::string(1, static_cast<char>(byte))))) continue;
      if (model_.unknown_id < 0) {
        unsupported(fmt::format("the vocabulary lacks byte 0x{:02x}", byte),
                    "byte-level BPE, which has all 256, or an unk_token");
      }
      if (model_.is_byte_level) {
        std::get<bpe::ByteLevelStep>(model_.pre_tokenizer.steps.back()).spells = true;
      }
      model_.is_byte_level = false;
    }
    if (spells_ || model_.unknown_id >= 0) return;
    for (int byte = 0; byte < 256; ++byte) {
      const std::string name = fmt::format("<0x{:02X}>", byte);
      if (model_.byte_fallback && spelled.contains(name)) continue;
      unsupported(fmt::format("a character that the vocabulary lacks has no id: there is neither "
                              "an unk_token nor {}",
                              model_.byte_fallback ? name : "byte_fallback"),
                  "one of them, or the pre-tokenizer ByteLevel");
    }
  }

  // Of two merges of one pair the later counts.
  void parse_merges(const Json& merges, const Spelled& spelled) {
    std::unordered_map<uint64_t, size_t> places;
    for (const Json& merge : merges) {
      const auto [left, right] = pair_of(merge);
      const auto a = spelled.find(left), b = spelled.find(right), both = spelled.find(left + right);
      if (a == spelled.end() || b == spelled.end() || both == spelled.end()) {
        corrupt(fmt::format("the vocabulary lacks a part of the merge '{}' + '{}'", left, right));
      }
      const uint64_t key =
          uint64_t{static_cast<uint32_t>(a->second)} << 32 | static_cast<uint32_t>(b->second);
      const auto [place, is_new] = places.try_emplace(key, model_.merges.size());
      if (!is_new) {
        model_.merges[place->second] = {-1, -1};
        place->second = model_.merges.size();
      }
      model_.merges.emplace_back(a->second, b->second);
      model_.merged.push_back(both->second);
    }
  }

  std::pair<std::string, std::string> pair_of(const Json& merge) const {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      return {merge[0].get<std::string>(), merge[1].get<std::string>()};
    }
    if (!merge.is_string()) {
      corrupt(fmt::format("a merge is {}, expected two strings", json_text(merge).substr(0, 80)));
    }
    const auto text = merge.get<std::string>();
    const size_t space = text.find(' ');
    if (space == std::string::npos) corrupt(fmt::format("merge '{}' has no space", text));
    if (text.find(' ', space + 1) != std::string::npos) {
      corrupt(fmt::format("merge '{}' has more than one space", text));
    }
    return {text.substr(0, space), text.substr(space + 1)};
  }

  // "First" asks where a part began before the normalizer changed it.
  void check_beginning() {
    const auto is_first = [](const bpe::PreTokenizerStep& step) {
      const auto* const metaspace = std::get_if<bpe::MetaspaceStep>(&step);
      return metaspace != nullptr && metaspace->prepend == bpe::MetaspaceStep::Prepend::kFirst;
    };
    const auto moves = [](const bpe::NormalizerStep& step) {
      const auto* const replace = std::get_if<bpe::ReplaceStep>(&step);
      const bool keeps_size = replace != nullptr && replace->expression == nullptr &&
                              utf8::is_one_character(replace->text) && !replace->content.empty();
      return std::holds_alternative<bpe::StripStep>(step) || (replace != nullptr && !keeps_size);
    };
    const auto& steps = model_.pre_tokenizer.steps;
    const auto& before = model_.normalizer.steps;
    if (std::any_of(steps.begin(), steps.end(), is_first) &&
        std::any_of(before.begin(), before.end(), moves)) {
      unsupported("Metaspace prepends to what is first, and the normalizer moves what is first",
                  "prepend_scheme \"always\" or \"never\"");
    }
  }

  // Bytes where the pre-tokenizer ends with ByteLevel. Where something follows it, it sees bytes
  // spelled, which are characters then.
  void choose_symbols() {
    auto& steps = model_.pre_tokenizer.steps;
    const auto& before = model_.normalizer.steps;
    const auto spells = [](const auto& step) {
      return std::holds_alternative<bpe::ByteLevelStep>(step);
    };
    const auto num_spelling = std::count_if(steps.begin(), steps.end(), spells);
    const bool is_spelled =
        std::any_of(before.begin(), before.end(), [](const bpe::NormalizerStep& step) {
          return std::holds_alternative<bpe::SpellBytesStep>(step);
        });
    spells_ = is_spelled || num_spelling > 0;
    model_.is_byte_level = !is_spelled && num_spelling == 1 && spells(steps.back());
    if (model_.is_byte_level) std::get<bpe::ByteLevelStep>(steps.back()).spells = false;
  }

  void choose_pattern() {
    const auto& steps = model_.pre_tokenizer.steps;
    if (!model_.is_byte_level || steps.size() > 2) return;
    const auto& last = std::get<bpe::ByteLevelStep>(steps.back());
    if (last.add_prefix_space) return;
    if (steps.size() == 1) {
      if (last.use_regex) model_.pattern = bpe::SplitPattern::Kind::kGpt2;
      return;
    }
    const auto* const split = std::get_if<bpe::SplitStep>(&steps[0]);
    if (split == nullptr || last.use_regex || split->expression == nullptr || split->invert ||
        split->behavior != bpe::SplitStep::Behavior::kIsolated) {
      return;
    }
    model_.pattern = bpe::SplitPattern::named(split->expression->source());
  }

  void choose_decoder(const Json& json) {
    bpe::Decoder decoder = parse_decoder(json, *this);
    const bool is_bytes =
        decoder.steps.size() == 1 && std::holds_alternative<bpe::DecodeBytes>(decoder.steps[0]);
    if (model_.is_byte_level && (json.is_null() || is_bytes)) return;
    model_.decoder = std::move(decoder);
  }

  void parse_added(const Json& added) {
    if (!added.is_array()) corrupt("'added_tokens' is no array");
    for (const Json& json : added) {
      AddedToken token = parse_added_token(json, *this);
      token.id = id_of(member(json, "id"), token.text);
      if (token.text.empty()) continue;
      // tokenizers takes this id, whatever the file says.
      const int32_t expected = next_added_id(model_, token.text);
      if (token.id != expected) {
        unsupported(fmt::format("the added token '{}' is {}", token.text, token.id),
                    fmt::format("{}, the id that `tokenizers` gives it", expected));
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
      parse_single(single, processor);
    } else if (type != "ByteLevel") {
      unsupported(fmt::format("the post-processor is {}", type), "TemplateProcessing or ByteLevel");
    }
  }

  // A text, with at most one token on either side.
  void parse_single(const Json& single, const Json& processor) {
    bool has_text = false;
    for (const Json& part : single) {
      const Json& special = part.is_object() ? optional(part, "SpecialToken") : Json();
      if (special.is_null()) {
        has_text = true;
        continue;
      }
      int32_t& id = has_text ? model_.end_id : model_.bos_id;
      if (id >= 0) {
        unsupported(fmt::format("the template 'single' is {}", json_text(single).substr(0, 200)),
                    "at most one token before a text, and one behind it");
      }
      const std::string text = text_of(special, "id");
      const auto token = std::find_if(model_.added.begin(), model_.added.end(),
                                      [&](const AddedToken& each) { return each.text == text; });
      if (token == model_.added.end()) {
        corrupt(fmt::format("the template has '{}', which is no added token", text));
      }
      const Json& ids = template_ids(processor, text);
      if (!ids.is_null() && ids != Json::array({token->id})) {
        unsupported(
            fmt::format("the template puts {} for '{}'", json_text(ids).substr(0, 80), text),
            fmt::format("[{}], the token's id", token->id));
      }
      id = token->id;
    }
  }

  const Json& template_ids(const Json& processor, const std::string& text) const {
    const Json& tokens = optional(processor, "special_tokens");
    const Json& token = tokens.is_null() ? tokens : optional(tokens, text.c_str());
    return token.is_null() ? token : optional(token, "ids");
  }

  const Json& json_;
  ByteLevelModel model_;
  bool spells_ = false;  // bytes, somewhere before they merge
};

}  // namespace

int32_t ByteLevelModel::spelled_id(const std::string& text) const {
  std::string bytes;
  if (!is_byte_level) return vocabulary.find(text);
  if (bpe::from_byte_level(text, bytes)) return vocabulary.find(bytes);
  const auto found = unspelled.find(text);
  return found == unspelled.end() ? -1 : found->second;
}

int32_t next_added_id(const ByteLevelModel& model, const std::string& text) {
  int32_t last = -1;
  for (const AddedToken& token : model.added) {
    if (token.text == text) return token.id;
    last = std::max(last, token.id);
  }
  const int32_t own = model.spelled_id(text);
  return own >= 0 ? own : std::max(model.num_pieces, last + 1);
}

ByteLevelModel parse_byte_level_model(const Json& json, const std::string& where) {
  return ModelParser(json, where).parse();
}

}  // namespace skein
