#include "skein/data/tokenizer/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <optional>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/json.h"
#include "skein/base/text/log.h"
#include "skein/data/tokenizer/byte_level/added_tokens.h"
#include "skein/data/tokenizer/folder/ends.h"
#include "skein/data/tokenizer/folder/folder.h"
#include "skein/data/tokenizer/sentencepiece/additions.h"
#include "skein/data/tokenizer/sentencepiece/hugging_face_files.h"
#include "skein/data/tokenizer/sentencepiece/sentencepiece_bpe.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

constexpr std::string_view kSpaceText = "\u2581";  // how pieces spell a space

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string_view bytes, const std::string& name,
                         std::vector<fs::path> files)
      : name_(name),
        files_(std::move(files)),
        bytes_(bytes),
        model_(parse_sentencepiece_model(bytes, name)),
        folder_(files_),
        added_(added_sentencepieces(model_, name_, files_, folder_)) {
    follow_prefix();
    if (SentencePieceBpe::can_encode(model_)) {
      bpe_.emplace(model_);
    } else if (const auto status = processor_.LoadFromSerializedProto(bytes); !status.ok()) {
      fail(ErrorCode::kCorrupt, "{}: SentencePiece refuses the model: {}", name_,
           status.ToString());
    }
    find_ends();
    sort_added();
    hash_content();
  }

  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    if (!has_metaspace() && !in_raw_.any(false) && !in_normalized_.any(false)) {
      return encode_part(text, true, out);
    }
    encode_around(text, false, out);
  }

  void parse(std::string_view text, std::vector<int32_t>& out) const override {
    encode_around(text, true, out);
  }

  const AddedTokens& special_tokens() const override { return special_; }

  std::string decode(std::span<const int32_t> ids) const override {
    std::string text;
    const auto is_piece = [&](int32_t id) { return !index_of_added_.contains(id); };
    for (size_t at = 0; at < ids.size();) {
      const int32_t id = ids[at];
      if (id < 0 || id >= vocab_size()) {
        fail(ErrorCode::kInvalid, "{}: no token has id {}: expected 0 to {}", name_, id,
             vocab_size() - 1);
      }
      if (!is_piece(id)) {
        const AddedToken& token = added_.tokens[index_of_added_.at(id)];
        if (!token.special) text += token.text;
        ++at;
        continue;
      }
      size_t end = at;
      while (end < ids.size() && ids[end] >= 0 && ids[end] < vocab_size() && is_piece(ids[end]))
        ++end;
      text = decode_pieces(ids.subspan(at, end - at), std::move(text));
      at = end;
    }
    return text;
  }

  int vocab_size() const override { return added_.num_ids; }
  int bos_id() const override { return ends_.bos; }
  int eos_id() const override { return ends_.eos; }
  int mask_id() const override { return ends_.mask; }
  bool begins_word(int32_t id) const override {
    return static_cast<size_t>(id) < num_pieces() &&
           model_.pieces[static_cast<size_t>(id)].text.starts_with(kSpaceText);
  }
  std::span<const std::string> notes() const override { return ends_.notes; }
  std::string content_hash() const override { return content_hash_; }
  std::vector<fs::path> files() const override { return files_; }
  std::string why_not_exported() const override { return why_no_hugging_face_tokenizer(model_); }
  std::map<std::string, std::string> export_files() const override;

 private:
  size_t num_pieces() const { return model_.pieces.size(); }

  bool has_metaspace() const {
    return !added_.tokens.empty() && added_.prefix != SpacePrefix::kNormalized && bpe_;
  }

  int32_t id_of(std::string_view text) const {
    for (const AddedToken& token : added_.tokens) {
      if (token.text == text) return token.id;
    }
    for (size_t id = 0; id < num_pieces(); ++id) {
      if (model_.pieces[id].text == text) return static_cast<int32_t>(id);
    }
    return -1;
  }

  // Whether a space comes before a text, where the files beside the model say otherwise.
  void follow_prefix() {
    if (added_.add_dummy_prefix == model_.add_dummy_prefix) return;
    if (!SentencePieceBpe::can_encode(model_)) {
      fail(ErrorCode::kUnsupported,
           "{}: the files beside it {} a space before a text, and the model does not say so: "
           "expected both to say the same of a unigram model or one with rules of normalization",
           name_, added_.add_dummy_prefix ? "put" : "put no");
    }
    model_.add_dummy_prefix = added_.add_dummy_prefix;
    is_prefix_of_files_ = true;
  }

  void find_ends() {
    ends_ = text_ends(folder_,
                      {.name = name_,
                       .id_of = [this](std::string_view text) { return id_of(text); },
                       .has_token = [this](int64_t id) { return id >= 0 && id < vocab_size(); },
                       .own_bos = control_id(model_, model_.bos_piece),
                       .own_eos = control_id(model_, model_.eos_piece)});
  }

  // By the text in which they are looked for.
  void sort_added() {
    for (size_t i = 0; i < added_.tokens.size(); ++i) index_of_added_[added_.tokens[i].id] = i;
    std::vector<AddedToken> tokens = added_.tokens;
    for (size_t id = 0; id < num_pieces(); ++id) {
      const SentencePiece& piece = model_.pieces[id];
      if (piece.type != SentencePiece::Type::kControl &&
          piece.type != SentencePiece::Type::kUnknown) {
        continue;
      }
      if (index_of_added_.contains(static_cast<int32_t>(id))) continue;
      tokens.push_back({.text = piece.text, .id = static_cast<int32_t>(id), .special = true});
    }
    special_ = special_of(tokens);
    for (const AddedToken& token : tokens) {
      const bool in_prefixed =
          token.normalized && added_.prefix == SpacePrefix::kNormalized && bpe_;
      std::string held;
      (token.normalized ? in_normalized_ : in_raw_)
          .add(token, in_prefixed ? bpe_->normalize(token.text, true, held) : token.text);
    }
    if (bpe_ || !(in_raw_.any(false) || in_normalized_.any(false))) return;
    const auto found = std::find_if(added_.tokens.begin(), added_.tokens.end(),
                                    [](const AddedToken& token) { return !token.special; });
    fail(ErrorCode::kUnsupported,
         "{}: the files beside it add the token '{}', which Skein cannot find in a text beside a "
         "unigram model or rules of normalization: expected a BPE model",
         name_, found->text);
  }

  // Of a model alone it is the hash of its bytes.
  void hash_content() {
    content_hash_ = xxh3_128_hex(std::as_bytes(std::span(bytes_)));
    std::string decides;
    for (const AddedToken& token : added_.tokens) decides += text_to_hash(token);
    if (is_prefix_of_files_) decides += fmt::format("\nspace {}", model_.add_dummy_prefix);
    if (!added_.tokens.empty()) {
      decides += fmt::format("\nprefix {}", static_cast<int>(added_.prefix));
    }
    if (ends_.eos != control_id(model_, model_.eos_piece)) {
      decides += fmt::format("\neos {}", ends_.eos);
    }
    if (ends_.bos != control_id(model_, model_.bos_piece)) {
      decides += fmt::format("\nbos {}", ends_.bos);
    }
    if (decides.empty()) return;
    decides.insert(0, content_hash_);
    content_hash_ = xxh3_128_hex(std::as_bytes(std::span(decides)));
  }

  // Text without added tokens.
  void encode_part(std::string_view text, bool with_prefix, std::vector<int32_t>& out) const {
    if (bpe_ && with_prefix) return bpe_->encode(text, out);
    if (bpe_) {
      std::string held;
      return bpe_->encode_normalized(bpe_->normalize(text, false, held), out);
    }
    std::vector<int> ids;
    if (const auto status = processor_.Encode(text, &ids); !status.ok()) {
      fail(ErrorCode::kInternal, "{}: cannot encode {} bytes: {}", name_, text.size(),
           status.ToString());
    }
    out.insert(out.end(), ids.begin(), ids.end());
  }

  void encode_around(std::string_view text, bool special, std::vector<int32_t>& out) const {
    const auto on_token = [&](int32_t id) { out.push_back(id); };
    const bool is_normalized = added_.prefix == SpacePrefix::kNormalized && bpe_;
    in_raw_.visit(
        text, special,
        [&](size_t begin, size_t end) {
          std::string held;
          std::string_view part = text.substr(begin, end - begin);
          if (is_normalized) part = bpe_->normalize(part, true, held);
          in_normalized_.visit(
              part, special,
              [&](size_t part_begin, size_t part_end) {
                const std::string_view rest = part.substr(part_begin, part_end - part_begin);
                if (is_normalized) return bpe_->encode_normalized(rest, out);
                encode_part(rest, wants_space(rest, begin + part_begin == 0), out);
              },
              on_token);
        },
        on_token);
  }

  bool wants_space(std::string_view part, bool is_first) const {
    const bool has_space = part.starts_with(' ') || part.starts_with(kSpaceText);
    return (is_first || added_.prefix != SpacePrefix::kFirst) && !(has_space && has_metaspace());
  }

  std::string decode_pieces(std::span<const int32_t> ids, std::string before) const {
    if (bpe_) return bpe_->decode(ids, std::move(before));
    std::string text;
    const std::vector<int> all(ids.begin(), ids.end());
    if (const auto status = processor_.Decode(all, &text); !status.ok()) {
      fail(ErrorCode::kInternal, "{}: cannot decode {} ids: {}", name_, ids.size(),
           status.ToString());
    }
    return before + text;
  }

  std::string name_;
  std::vector<fs::path> files_;
  std::string bytes_;
  SentencePieceModel model_;
  TokenizerFolder folder_;
  AddedSentencePieces added_;
  bool is_prefix_of_files_ = false;
  std::unordered_map<int32_t, size_t> index_of_added_;
  AddedTokens in_raw_, in_normalized_, special_;
  TextEnds ends_;
  std::string content_hash_;
  std::optional<SentencePieceBpe> bpe_;
  sentencepiece::SentencePieceProcessor processor_;  // for what that does not do
};

std::map<std::string, std::string> SentencePieceTokenizer::export_files() const {
  std::string chat_template;
  for (const fs::path& file : files_) {
    if (file.filename() == "chat_template.jinja") chat_template = read_file_or_object(file);
  }
  const auto found = folder_.config().find("chat_template");
  if (chat_template.empty() && found != folder_.config().end() && found->is_string()) {
    chat_template = *found;
  }
  if (!chat_template.empty()) {
    log::warn(
        "{}: has a chat template: in the export a text that spells a control token (\"<s>\") is "
        "that token, which it was not in training",
        name_);
  }
  HuggingFaceExtras extras{.chat_template = chat_template,
                           .config = folder_.config(),
                           .special_map = folder_.special_map(),
                           .class_name = folder_.class_name(),
                           .added = &added_,
                           .bos_id = ends_.bos,
                           .eos_id = ends_.eos};
  auto files = hugging_face_tokenizer_files(model_, name_, extras);
  files["tokenizer.model"] = bytes_;
  for (const fs::path& file : files_) {
    if (file.extension() != ".jinja") continue;
    if (const std::string name = kept_tokenizer_name(file); name.find('/') != name.npos) {
      files[name] = read_file_or_object(file);
      files["chat_template.jinja"] = chat_template;
    }
  }
  return files;
}

}  // namespace

std::unique_ptr<Tokenizer> load_sentencepiece_tokenizer(std::string_view model,
                                                        const std::string& name,
                                                        std::vector<fs::path> files) {
  return std::make_unique<SentencePieceTokenizer>(model, name, std::move(files));
}

}  // namespace skein
