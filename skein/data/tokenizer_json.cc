#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "skein/base/json.h"
#include "skein/data/tokenizer_train.h"

namespace skein {
namespace {

struct Merge {
  size_t id;  // of the piece that it makes: BPE pieces are numbered in the order they were learnt
  size_t left, right;
};

// Every way in which two pieces make a third.
std::vector<Merge> merges_of(const SentencePieceModel& model) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    if (model.pieces[id].type == SentencePiece::Type::kNormal) ids[model.pieces[id].text] = id;
  }
  std::vector<Merge> merges;
  for (const auto& [text, id] : ids) {
    for (size_t cut = 1; cut < text.size(); ++cut) {
      if ((static_cast<uint8_t>(text[cut]) & 0xc0) == 0x80) continue;  // inside a character
      const auto left = ids.find(text.substr(0, cut));
      const auto right = ids.find(text.substr(cut));
      if (left != ids.end() && right != ids.end()) {
        merges.push_back({id, left->second, right->second});
      }
    }
  }
  const auto order = [&](const Merge& merge) {
    return std::tuple(-model.pieces[merge.id].score, merge.id, merge.left, merge.right);
  };
  std::sort(merges.begin(), merges.end(),
            [&](const Merge& a, const Merge& b) { return order(a) < order(b); });
  return merges;
}

// [BOS] text: how transformers frames one text, or a pair.
OrderedJson post_processor(const std::string& bos, size_t bos_id) {
  const auto special = [&](int type) {
    return OrderedJson{{"SpecialToken", {{"id", bos}, {"type_id", type}}}};
  };
  const auto sequence = [](const char* name, int type) {
    return OrderedJson{{"Sequence", {{"id", name}, {"type_id", type}}}};
  };
  OrderedJson json{{"type", "TemplateProcessing"}};
  json["single"] = {special(0), sequence("A", 0)};
  json["pair"] = {special(0), sequence("A", 0), special(1), sequence("B", 1)};
  json["special_tokens"][bos] = {
      {"id", bos}, {"ids", OrderedJson::array({bos_id})}, {"tokens", OrderedJson::array({bos})}};
  return json;
}

// SentencePiece writes a space as U+2581, and puts one before the text.
constexpr const char* kSpace = "\u2581";

OrderedJson normalizer() {
  OrderedJson json{{"type", "Sequence"}};
  json["normalizers"] = {
      {{"type", "Prepend"}, {"prepend", kSpace}},
      {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpace}}};
  return json;
}

OrderedJson decoder() {
  OrderedJson json{{"type", "Sequence"}};
  json["decoders"] = {{{"type", "Replace"}, {"pattern", {{"String", kSpace}}}, {"content", " "}},
                      OrderedJson{{"type", "ByteFallback"}},
                      OrderedJson{{"type", "Fuse"}},
                      {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}};
  return json;
}

}  // namespace

std::string hugging_face_tokenizer_json(const SentencePieceModel& model) {
  using Type = SentencePiece::Type;
  OrderedJson added = OrderedJson::array(), vocabulary = OrderedJson::object();
  OrderedJson merges = OrderedJson::array();
  std::string unknown;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePiece& piece = model.pieces[id];
    // Appended, not looked up: operator[] of an ordered object is a linear search.
    vocabulary.get_ref<OrderedJson::object_t&>().push_back({piece.text, id});
    if (piece.type == Type::kUnknown) unknown = piece.text;
    if (piece.type == Type::kUnknown || piece.type == Type::kControl) {
      added.push_back({{"id", id},
                       {"content", piece.text},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
    }
  }
  for (const Merge& merge : merges_of(model)) {
    merges.push_back(
        OrderedJson::array({model.pieces[merge.left].text, model.pieces[merge.right].text}));
  }
  OrderedJson json{{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  json["added_tokens"] = std::move(added);
  json["normalizer"] = normalizer();
  json["pre_tokenizer"] = nullptr;
  json["post_processor"] = post_processor(model.pieces.at(1).text, 1);
  json["decoder"] = decoder();
  json["model"] = {{"type", "BPE"},
                   {"dropout", nullptr},
                   {"unk_token", unknown},
                   {"continuing_subword_prefix", nullptr},
                   {"end_of_word_suffix", nullptr},
                   {"fuse_unk", true},
                   {"byte_fallback", true},
                   {"ignore_merges", false}};
  json["model"]["vocab"] = std::move(vocabulary);
  json["model"]["merges"] = std::move(merges);
  return json.dump(1) + "\n";
}

}  // namespace skein
