#include "skein/data/tokenizer/sentencepiece/additions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/data/tokenizer/folder/files.h"
#include "skein/data/tokenizer/sentencepiece/sentencepiece_bpe.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

class AdditionsReader {
 public:
  AdditionsReader(const SentencePieceModel& model, const std::string& name,
                  std::span<const fs::path> files, const TokenizerFolder& folder)
      : model_(model), name_(name), folder_(folder) {
    for (const fs::path& file : files) {
      if (file.filename() == "tokenizer.json") json_file_ = file;
    }
  }

  AddedSentencePieces read() {
    for (size_t id = 0; id < model_.pieces.size(); ++id) {
      ids_.emplace(model_.pieces[id].text, static_cast<int32_t>(id));
    }
    Json json;
    if (!json_file_.empty()) json = read_json_file();
    for (const AddedToken& token : folder_.added()) add(token, folder_.added_file());
    check_no_holes();
    add_dummy_prefix_ = add_dummy_prefix(json);
    AddedSentencePieces result{.add_dummy_prefix = add_dummy_prefix_,
                               .prefix = prefix(json),
                               .num_ids = static_cast<int32_t>(model_.pieces.size())};
    for (const auto& [id, token] : tokens_) {
      result.num_ids = std::max(result.num_ids, id + 1);
      if (!is_models_own(token)) result.tokens.push_back(token);
    }
    return result;
  }

 private:
  [[noreturn]] void contradicts(const fs::path& file, const std::string& what) const {
    fail(ErrorCode::kInvalid,
         "{}: {}: expected both to describe one tokenizer. Remove the file that is not meant, or "
         "name it: data.tokenizer takes a file too",
         file.string(), what);
  }

  Json read_json_file() {
    const TokenizerJson reader(json_file_.string());
    Json json =
        parse_json(read_file_or_object(json_file_, kMaxTokenizerBytes), json_file_.string());
    if (!json.is_object()) reader.corrupt("is no JSON object");
    compare_pieces(json);
    if (reader.optional(json, "added_tokens").is_null()) return json;
    for (const Json& each : reader.array_of(json, "added_tokens")) {
      AddedToken token = parse_added_token(each, reader);
      token.id = reader.id_of(reader.member(each, "id"), token.text);
      add(token, json_file_);
    }
    return json;
  }

  // The ids of tokenizer.json's vocabulary must be the model's.
  void compare_pieces(const Json& json) const {
    const auto model = json.find("model");
    if (model == json.end() || !model->is_object() || !model->contains("vocab")) return;
    const Json& vocabulary = (*model)["vocab"];
    if (!vocabulary.is_object()) return;  // of a unigram model, a list: its order is not looked at
    for (const auto& [text, id] : vocabulary.items()) {
      const auto found = ids_.find(text);
      const bool is_added = found == ids_.end() && id.is_number_integer() &&
                            id.get<int64_t>() >= static_cast<int64_t>(model_.pieces.size());
      if (is_added || (found != ids_.end() && id == found->second)) continue;
      contradicts(
          json_file_,
          fmt::format("its vocabulary has '{}' as token {}, and {} {}", text, json_text(id), name_,
                      found == ids_.end() ? "has no such piece"
                                          : fmt::format("as token {}", found->second)));
    }
  }

  // Flags of the file that comes later count.
  void add(const AddedToken& token, const fs::path& file) {
    if (token.text.empty()) return;
    const auto num_pieces = static_cast<int32_t>(model_.pieces.size());
    const auto same_text = ids_.find(token.text);
    if (same_text != ids_.end() && same_text->second != token.id) {
      contradicts(file, fmt::format("the added token '{}' is {}, and it is token {} in {}",
                                    token.text, token.id, same_text->second,
                                    same_text->second < num_pieces ? name_ : origin_.string()));
    }
    if (token.id < num_pieces) {
      const SentencePiece& piece = model_.pieces[static_cast<size_t>(token.id)];
      if (piece.text != token.text) {
        contradicts(file, fmt::format("the added token {} is '{}', and {} has the piece '{}' there",
                                      token.id, token.text, name_, piece.text));
      }
    }
    const auto known = tokens_.find(token.id);
    if (known != tokens_.end() && known->second.text != token.text) {
      contradicts(file, fmt::format("the added token {} is '{}', and it is '{}' in {}", token.id,
                                    token.text, known->second.text, origin_.string()));
    }
    if (known == tokens_.end()) origin_ = file;
    ids_.emplace(token.text, token.id);
    tokens_[token.id] = token;
  }

  // Whether the model alone treats its piece as the list of added tokens says.
  bool is_models_own(const AddedToken& token) const {
    using Type = SentencePiece::Type;
    if (token.id >= static_cast<int32_t>(model_.pieces.size())) return false;
    const Type type = model_.pieces[static_cast<size_t>(token.id)].type;
    if (type == Type::kControl || type == Type::kUnknown) {
      return text_to_hash(token) ==
             text_to_hash({.text = token.text, .id = token.id, .special = true});
    }
    // Behind an added token transformers may put a space; SentencePiece does not behind a symbol.
    return type == Type::kUserDefined && !token.lstrip && !token.rstrip && !token.single_word &&
           (!add_dummy_prefix_ || !SentencePieceBpe::can_encode(model_));
  }

  // transformers numbers added tokens one after another.
  void check_no_holes() const {
    auto next = static_cast<int32_t>(model_.pieces.size());
    for (const auto& [id, token] : tokens_) {
      if (id < next) continue;
      if (id > next) {
        contradicts(origin_, fmt::format("the added token '{}' is {}, and {} and the files beside "
                                         "it have no token {}",
                                         token.text, id, name_, next));
      }
      ++next;
    }
  }

  // What a class of transformers builds comes before what tokenizer.json says.
  bool is_built(const Json& json) const {
    const std::string name = folder_.class_name();
    return name.starts_with("Llama") || name.starts_with("CodeLlama") || json.is_null();
  }

  // The steps `key` of tokenizer.json, of a sequence one by one.
  static std::vector<Json> steps_of(const Json& json, const char* key, const char* in_sequence) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_object()) return {};
    const auto sequence = found->find(in_sequence);
    if (sequence == found->end() || !sequence->is_array()) return {*found};
    return {sequence->begin(), sequence->end()};
  }

  static std::optional<std::string> metaspace_scheme(const Json& step) {
    if (!step.is_object() || step.value("type", Json()) != "Metaspace") return std::nullopt;
    const bool is_never = step.value("add_prefix_space", Json()) == Json(false);
    const Json scheme = step.value("prepend_scheme", Json(is_never ? "never" : "always"));
    return scheme.is_string() ? scheme.get<std::string>() : "always";
  }

  bool add_dummy_prefix(const Json& json) const {
    if (is_built(json)) {
      const auto found = folder_.config().find("add_prefix_space");
      const bool is_said = found != folder_.config().end() && !found->is_null();
      return is_said ? folder_.flag("add_prefix_space") : model_.add_dummy_prefix;
    }
    for (const Json& step : steps_of(json, "normalizer", "normalizers")) {
      if (step.is_object() && step.value("type", Json()) == "Prepend") return true;
    }
    for (const Json& step : steps_of(json, "pre_tokenizer", "pretokenizers")) {
      if (metaspace_scheme(step).value_or("never") != "never") return true;
    }
    return false;
  }

  SpacePrefix prefix(const Json& json) const {
    if (is_built(json)) return folder_.flag("legacy") ? SpacePrefix::kEach : SpacePrefix::kFirst;
    for (const Json& step : steps_of(json, "pre_tokenizer", "pretokenizers")) {
      const auto scheme = metaspace_scheme(step);
      if (scheme) return *scheme == "first" ? SpacePrefix::kFirst : SpacePrefix::kEach;
    }
    return SpacePrefix::kNormalized;
  }

  const SentencePieceModel& model_;
  const std::string& name_;
  const TokenizerFolder& folder_;
  fs::path json_file_;
  fs::path origin_;                                  // the last file that added a token
  std::map<std::string, int32_t, std::less<>> ids_;  // of pieces and tokens
  std::map<int32_t, AddedToken> tokens_;
  bool add_dummy_prefix_ = true;
};

}  // namespace

AddedSentencePieces added_sentencepieces(const SentencePieceModel& model, const std::string& name,
                                         std::span<const fs::path> files,
                                         const TokenizerFolder& folder) {
  return AdditionsReader(model, name, files, folder).read();
}

}  // namespace skein
