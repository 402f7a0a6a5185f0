#include "skein/data/tokenizer/sentencepiece/hugging_face_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/utf8.h"

namespace skein {
namespace {

using Type = SentencePiece::Type;

constexpr size_t kMaxMergedBytes = 512;  // of a piece that is merged here in quadratic time

size_t character_bytes(std::string_view text) { return utf8::next_character_start(text, 1); }

size_t num_characters(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); text.remove_prefix(character_bytes(text))) ++count;
  return count;
}

std::string why_not_kind(const SentencePieceModel& model) {
  using Kind = SentencePieceModel::Kind;
  if (model.kind == Kind::kUnigram) {
    return "it is a unigram model, whose sums of scores `tokenizers` rounds otherwise";
  }
  if (model.kind != Kind::kBpe) return "it is no BPE model";
  if (model.has_charsmap) return "its normalizer has rules (such as NFKC)";
  if (model.has_denormalizer) return "it has a denormalizer";
  if (!model.escape_whitespaces) return "it keeps spaces as they are (escape_whitespaces false)";
  if (model.whitespace_is_suffix) return "its spaces are suffixes (treat_whitespace_as_suffix)";
  return "";
}

// Merging by rank needs a strict order of all pieces, and pieces whose parts are pieces.
std::string why_not_pieces(const SentencePieceModel& model) {
  std::unordered_map<float, std::string_view> scores;
  std::unordered_set<std::string_view> normal;
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type == Type::kUnused) return fmt::format("piece `{}` is unused", piece.text);
    if (piece.type == Type::kUserDefined && piece.text.find(' ') != std::string::npos) {
      return fmt::format("symbol `{}` holds a space", piece.text);
    }
    if (keeps_extra_spaces(model, piece)) {
      return fmt::format("symbol `{}` keeps spaces, which are removed elsewhere", piece.text);
    }
    if (piece.type == Type::kNormal) normal.insert(piece.text);
  }
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type != Type::kNormal || num_characters(piece.text) < 2) continue;
    const auto [other, is_new] = scores.try_emplace(piece.score, piece.text);
    if (!is_new) {
      return fmt::format("pieces `{}` and `{}` have one score, {}", other->second, piece.text,
                         piece.score);
    }
    for (std::string_view rest = piece.text; !rest.empty();) {
      const std::string_view character = rest.substr(0, character_bytes(rest));
      if (!normal.contains(character)) {
        return fmt::format("character `{}` of piece `{}` is no piece", character, piece.text);
      }
      rest.remove_prefix(character.size());
    }
  }
  return "";
}

// With user-defined symbols, a word that is a piece becomes that piece at once (`ignore_merges`),
// so merging must give the same piece.
std::string why_not_symbols(const SentencePieceModel& model) {
  std::vector<std::string_view> symbols;
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type == Type::kUserDefined) symbols.push_back(piece.text);
  }
  if (symbols.empty()) return "";
  const PieceMerger merger(model);
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type == Type::kUserDefined || num_characters(piece.text) < 2) continue;
    if (piece.text.size() > kMaxMergedBytes) {
      return fmt::format("piece `{}…` has {} bytes", piece.text.substr(0, 40), piece.text.size());
    }
    const bool is_whole = merger.merge(piece.text).size() == 1;
    if (is_whole == (piece.type == Type::kNormal)) continue;
    const bool never_a_word = std::any_of(symbols.begin(), symbols.end(), [&](auto symbol) {
      return piece.text.find(symbol) != std::string::npos;
    });
    if (!never_a_word) {
      return fmt::format("merging does not lead to piece `{}`, beside symbols", piece.text);
    }
  }
  return "";
}

}  // namespace

PieceMerger::PieceMerger(const SentencePieceModel& model) {
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type == Type::kNormal) scores_[piece.text] = piece.score;
  }
}

std::vector<std::string> PieceMerger::merge(std::string_view text) const {
  std::vector<std::string> parts;
  for (; !text.empty(); text.remove_prefix(character_bytes(text))) {
    parts.emplace_back(text.substr(0, character_bytes(text)));
  }
  while (true) {
    auto best = scores_.end();
    size_t place = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto made = scores_.find(parts[i] + parts[i + 1]);
      if (made == scores_.end() || (best != scores_.end() && made->second <= best->second)) {
        continue;
      }
      best = made;
      place = i;
    }
    if (best == scores_.end()) return parts;
    parts[place] += parts[place + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

std::string why_no_hugging_face_tokenizer(const SentencePieceModel& model) {
  if (std::string why = why_not_kind(model); !why.empty()) return why;
  if (std::string why = why_not_pieces(model); !why.empty()) return why;
  return why_not_symbols(model);
}

std::string token_text(const SentencePieceModel& model, const HuggingFaceExtras& extras,
                       int32_t id) {
  if (id >= 0 && id < static_cast<int32_t>(model.pieces.size())) {
    return model.pieces[static_cast<size_t>(id)].text;
  }
  if (extras.added == nullptr) return "";
  const auto& tokens = extras.added->tokens;
  const auto found = std::find_if(tokens.begin(), tokens.end(),
                                  [&](const AddedToken& token) { return token.id == id; });
  return found != tokens.end() ? found->text : "";
}

namespace {

// bos_token, eos_token and unk_token, over what `before` has.
OrderedJson special_tokens(const SentencePieceModel& model, const HuggingFaceExtras& extras,
                           const Json& before) {
  OrderedJson special = OrderedJson::object();
  const auto set = [&](const char* key, std::string_view text) {
    if (!text.empty()) special[key] = text;
  };
  const int32_t own_bos = control_id(model, model.bos_piece);
  const std::string bos = token_text(model, extras, extras.bos_id.value_or(own_bos));
  const bool has_bos_token = before.contains("bos_token");
  // Where no text begins with BOS, a file may name it nevertheless.
  set("bos_token", bos.empty() && own_bos >= 0 && !has_bos_token ? model.bos_piece : bos);
  set("eos_token",
      token_text(model, extras, extras.eos_id.value_or(control_id(model, model.eos_piece))));
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type == Type::kUnknown) set("unk_token", piece.text);
  }
  for (const auto& [key, value] : before.items()) {
    const Json& text = value.is_object() && value.contains("content") ? value["content"] : value;
    const bool is_same =
        special.contains(key) && text.is_string() && special[key] == OrderedJson(text);
    if (is_same || !special.contains(key)) special[key] = OrderedJson(value);
  }
  return special;
}

}  // namespace

std::map<std::string, std::string> hugging_face_tokenizer_files(const SentencePieceModel& model,
                                                                const std::string& where,
                                                                const HuggingFaceExtras& extras) {
  if (const std::string why = why_no_hugging_face_tokenizer(model); !why.empty()) {
    fail(ErrorCode::kUnsupported,
         "{}: cannot be written for transformers with the ids that training uses: {}", where, why);
  }
  const OrderedJson special_map = special_tokens(model, extras, extras.special_map);
  // LlamaTokenizer, if named here, would build its own tokenizer from `legacy` and
  // `add_prefix_space`; PreTrainedTokenizerFast reads tokenizer.json unchanged.
  OrderedJson config{{"tokenizer_class", "PreTrainedTokenizerFast"}};
  const OrderedJson kept = special_tokens(model, extras, extras.config);
  for (const char* key : {"bos_token", "eos_token", "unk_token"}) {
    if (kept.contains(key)) config[key] = kept[key];
  }
  config["add_bos_token"] = extras.bos_id.value_or(control_id(model, model.bos_piece)) >= 0;
  config["add_eos_token"] = false;
  config["legacy"] = true;
  if (!model.add_dummy_prefix) config["add_prefix_space"] = false;
  if (extras.config.empty()) {
    config["split_special_tokens"] = extras.chat_template.empty();
  } else if (kept.contains("split_special_tokens")) {
    config["split_special_tokens"] = kept["split_special_tokens"];
  }
  config["clean_up_tokenization_spaces"] = false;
  config["model_input_names"] =
      kept.value("model_input_names", OrderedJson{"input_ids", "attention_mask"});
  if (!extras.chat_template.empty()) config["chat_template"] = extras.chat_template;
  if (extras.class_name.starts_with("Llama")) {
    config["padding_side"] = kept.contains("padding_side") ? kept["padding_side"] : "left";
  }
  for (const auto& [key, value] : kept.items()) {
    if (key != "add_prefix_space" && !config.contains(key)) config[key] = value;
  }
  return {
      {"tokenizer.json", hugging_face_tokenizer_json(model, extras)},
      {"tokenizer_config.json", exact_json(config, "tokenizer_config.json", 2) + "\n"},
      {"special_tokens_map.json", exact_json(special_map, "special_tokens_map.json", 2) + "\n"}};
}

}  // namespace skein
