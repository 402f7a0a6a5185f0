#include <algorithm>
#include <cctype>
#include <tuple>
#include <unordered_map>

#include "skein/base/text/json_text.h"
#include "skein/base/text/utf8.h"
#include "skein/data/tokenizer/folder/made.h"
#include "skein/data/tokenizer/sentencepiece/hugging_face_files.h"

namespace skein {
namespace {

using namespace internal;

using Type = SentencePiece::Type;

constexpr const char* kSpace = "\u2581";  // how pieces spell a space

struct PieceMerge {
  size_t id;  // the resulting piece: BPE pieces are numbered in the order learnt
  size_t left, right;
  size_t shorter_part;  // bytes
  bool gives_way;       // to the cut of this piece whose right part is this one's left part
};

// Every way in which two pieces make a third. If a piece can be made at several places,
// SentencePiece takes the leftmost, and `tokenizers` the first in this list. Two cuts of a piece
// compete for text if one's right part is the other's left part; then the former must come first.
std::vector<PieceMerge> merges_of(const SentencePieceModel& model) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].type == Type::kNormal) ids[model.pieces[id].text] = id;
  }
  std::vector<PieceMerge> merges;
  for (const auto& [text, id] : ids) {
    for (size_t cut = 1; cut < text.size(); ++cut) {
      if (utf8::is_continuation(text[cut])) continue;
      const auto left = ids.find(text.substr(0, cut));
      const auto right = ids.find(text.substr(cut));
      if (left == ids.end() || right == ids.end()) continue;
      const size_t other_cut = text.size() - cut;
      merges.push_back({id, left->second, right->second, std::min(cut, other_cut),
                        text.substr(cut) != text.substr(0, other_cut)});
    }
  }
  const auto order = [&](const PieceMerge& merge) {
    return std::tuple(-model.pieces[merge.id].score, merge.id, merge.shorter_part, merge.gives_way,
                      model.pieces[merge.right].text.size());
  };
  std::sort(merges.begin(), merges.end(),
            [&](const PieceMerge& a, const PieceMerge& b) { return order(a) < order(b); });
  return merges;
}

OrderedJson replace(const char* kind, const std::string& pattern, const std::string& content) {
  return {{"type", "Replace"}, {"pattern", {{kind, pattern}}}, {"content", content}};
}

bool is_added(const HuggingFaceExtras& extras, int32_t id) {
  if (extras.added == nullptr) return false;
  const auto& tokens = extras.added->tokens;
  return std::any_of(tokens.begin(), tokens.end(), [&](const auto& each) { return each.id == id; });
}

// Whether a pre-tokenizer, rather than the normalizer, puts the space before a text.
bool has_metaspace(const HuggingFaceExtras& extras) {
  return extras.added != nullptr && !extras.added->tokens.empty() &&
         extras.added->prefix != SpacePrefix::kNormalized;
}

OrderedJson normalizer(const SentencePieceModel& model, const HuggingFaceExtras& extras) {
  OrderedJson steps = OrderedJson::array();
  if (has_metaspace(extras)) {
    if (!model.remove_extra_whitespaces) return nullptr;
    steps.push_back(replace("Regex", "\\A +", ""));
    steps.push_back(replace("Regex", " {2,}", " "));
    steps.push_back(replace("Regex", std::string("(?: |") + kSpace + ")+\\z", ""));
    return {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
  }
  if (model.remove_extra_whitespaces) {
    steps.push_back(replace("Regex", "\\A +", ""));
    steps.push_back(replace("Regex", " {2,}", " "));
  }
  if (model.add_dummy_prefix) steps.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
  steps.push_back(replace("String", " ", kSpace));
  if (model.remove_extra_whitespaces) {
    steps.push_back(replace("Regex", std::string("(?:") + kSpace + ")+\\z", ""));
  }
  return {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
}

// Escapes text for Oniguruma's regular expressions.
std::string regex_of(std::string_view text) {
  std::string pattern;
  for (const char byte : text) {
    const bool plain = (byte & 0x80) != 0 || std::isalnum(static_cast<uint8_t>(byte)) != 0 ||
                       static_cast<uint8_t>(byte) <= 0x20 || byte == 0x7f;
    if (!plain) pattern += '\\';
    pattern += byte;
  }
  return pattern;
}

// User-defined symbols are words of their own, the longest first. A word that is a piece becomes
// that piece (`ignore_merges`), so text between two symbols that spells a control or byte token has
// to be cut into the pieces that SentencePiece would give.
OrderedJson pre_tokenizer(const SentencePieceModel& model, const HuggingFaceExtras& extras,
                          const std::vector<std::string_view>& symbols) {
  OrderedJson steps = OrderedJson::array();
  if (has_metaspace(extras)) {
    const bool is_first = extras.added->prefix == SpacePrefix::kFirst;
    const char* const scheme = !model.add_dummy_prefix ? "never" : is_first ? "first" : "always";
    steps.push_back({{"type", "Metaspace"},
                     {"replacement", kSpace},
                     {"prepend_scheme", scheme},
                     {"split", false}});
    if (symbols.empty()) return steps[0];
  }
  if (symbols.empty()) return nullptr;
  std::string pattern;
  for (const std::string_view symbol : symbols) {
    pattern += (pattern.empty() ? "" : "|") + regex_of(symbol);
  }
  const PieceMerger merger(model);
  std::string lookalikes;
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type == Type::kNormal || piece.type == Type::kUserDefined) continue;
    const std::vector<std::string> parts = merger.merge(piece.text);
    if (parts.size() < 2) continue;
    lookalikes += (lookalikes.empty() ? "" : "|") + regex_of(parts[0]) +
                  "(?=" + regex_of(piece.text.substr(parts[0].size())) + "\\z)";
  }
  steps.push_back(split_json<OrderedJson>(pattern));
  if (!lookalikes.empty()) steps.push_back(split_json<OrderedJson>("\\A(?:" + lookalikes + ")"));
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

// [BOS] text: how transformers frames one text, or a pair of texts.
OrderedJson post_processor(const SentencePieceModel& model, const HuggingFaceExtras& extras) {
  const int bos_id = extras.bos_id.value_or(control_id(model, model.bos_piece));
  if (bos_id < 0) return nullptr;
  return template_json<OrderedJson>(token_text(model, extras, bos_id), bos_id);
}

OrderedJson decoder(const SentencePieceModel& model) {
  OrderedJson steps = OrderedJson::array();
  steps.push_back(replace("String", kSpace, " "));
  if (model.byte_fallback) steps.push_back({{"type", "ByteFallback"}});
  steps.push_back({{"type", "Fuse"}});
  if (model.add_dummy_prefix || model.remove_extra_whitespaces) {
    const int all = 1 << 20;
    steps.push_back({{"type", "Strip"},
                     {"content", " "},
                     {"start", model.remove_extra_whitespaces ? all : 1},
                     {"stop", 0}});
  }
  return {{"type", "Sequence"}, {"decoders", std::move(steps)}};
}

// Longest first; those of equal length in the order of their ids.
std::vector<std::string_view> symbols_of(const SentencePieceModel& model) {
  std::vector<std::string_view> symbols;
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type == Type::kUserDefined) symbols.push_back(piece.text);
  }
  std::stable_sort(symbols.begin(), symbols.end(),
                   [](std::string_view a, std::string_view b) { return a.size() > b.size(); });
  return symbols;
}

}  // namespace

std::string hugging_face_tokenizer_json(const SentencePieceModel& model,
                                        const HuggingFaceExtras& extras) {
  OrderedJson added = OrderedJson::array(), vocabulary = OrderedJson::object();
  OrderedJson merges = OrderedJson::array();
  std::string unknown;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePiece& piece = model.pieces[id];
    // Appended, because operator[] of an ordered object is a linear search.
    vocabulary.get_ref<OrderedJson::object_t&>().push_back({piece.text, id});
    if (piece.type == Type::kUnknown) unknown = piece.text;
    const bool is_control = piece.type == Type::kUnknown || piece.type == Type::kControl;
    if (is_control && !is_added(extras, static_cast<int32_t>(id))) {
      added.push_back(added_token_json<OrderedJson>(
          {.text = piece.text, .id = static_cast<int32_t>(id), .special = true}));
    }
  }
  if (extras.added != nullptr) {
    for (const AddedToken& token : extras.added->tokens)
      added.push_back(added_token_json<OrderedJson>(token));
  }
  for (const PieceMerge& merge : merges_of(model)) {
    merges.push_back(
        OrderedJson::array({model.pieces[merge.left].text, model.pieces[merge.right].text}));
  }
  const std::vector<std::string_view> symbols = symbols_of(model);
  OrderedJson json{{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  json["added_tokens"] = std::move(added);
  json["normalizer"] = normalizer(model, extras);
  json["pre_tokenizer"] = pre_tokenizer(model, extras, symbols);
  json["post_processor"] = post_processor(model, extras);
  json["decoder"] = decoder(model);
  json["model"] = {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", unknown},
                   {"continuing_subword_prefix", nullptr},
                   {"end_of_word_suffix", nullptr},
                   {"fuse_unk", true},
                   {"byte_fallback", model.byte_fallback},
                   {"ignore_merges", !symbols.empty()}};
  json["model"]["vocab"] = std::move(vocabulary);
  json["model"]["merges"] = std::move(merges);
  return exact_json(json, "tokenizer.json", 1) + "\n";
}

}  // namespace skein
