#include "skein/data/tokenizer/byte_level_tokenizer.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/json.h"
#include "skein/data/tokenizer/byte_level/byte_level_bpe.h"
#include "skein/data/tokenizer/folder/ends.h"
#include "skein/data/tokenizer/folder/sources.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

class ByteLevelTokenizer : public Tokenizer {
 public:
  ByteLevelTokenizer(const fs::path& json, std::vector<fs::path> files)
      : name_(json.string()), files_(std::move(files)) {
    const TokenizerFolder folder(files_);
    source_ = read_tokenizer_source(json, folder);
    const std::string& text = source_.json;
    ByteLevelModel model = parse_byte_level_model(parse_json(text, name_), name_);
    if (!source_.is_made) check_prefix_space(folder, name_, model);
    if (model.end_id < 0) model.end_id = source_end(source_, model);
    const std::string added = add_tokens(folder, model);
    bpe_.emplace(std::move(model));
    find_ends(folder);
    special_ = special_of(bpe_->model().added);
    const int32_t end_id = bpe_->model().end_id;
    if (!source_.is_made && end_id >= 0 && end_id != ends_.eos) {
      fail(ErrorCode::kUnsupported,
           "{}: its template ends texts with token {}, and eos_token is {}: expected the same",
           name_, end_id, ends_.eos);
    }
    std::string decides = text + added + fmt::format("\neos {}", ends_.eos);
    if (ends_.bos != bpe_->model().bos_id) decides += fmt::format("\nbos {}", ends_.bos);
    content_hash_ = xxh3_128_hex(std::as_bytes(std::span(decides)));
  }

  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    bpe_->encode(text, out);
  }

  void parse(std::string_view text, std::vector<int32_t>& out) const override {
    bpe_->encode(text, out, true);
  }

  const AddedTokens& special_tokens() const override { return special_; }

  std::string decode(std::span<const int32_t> ids) const override {
    for (const int32_t id : ids) {
      if (id < 0 || id >= vocab_size()) {
        fail(ErrorCode::kInvalid, "{}: no token has id {}: expected 0 to {}", name_, id,
             vocab_size() - 1);
      }
    }
    return bpe_->decode(ids);
  }

  int vocab_size() const override { return bpe_->model().num_ids; }
  bool has_token(int32_t id) const override { return bpe_->has_token(id); }
  int bos_id() const override { return ends_.bos; }
  int eos_id() const override { return ends_.eos; }
  int mask_id() const override { return ends_.mask; }
  std::span<const std::string> notes() const override { return ends_.notes; }
  std::string content_hash() const override { return content_hash_; }
  std::vector<fs::path> files() const override { return files_; }
  std::string why_not_exported() const override { return ""; }

  // They are what transformers reads already, or a tokenizer.json made of other formats.
  std::map<std::string, std::string> export_files() const override {
    std::map<std::string, std::string> contents;
    for (const fs::path& file : files_) {
      contents[kept_tokenizer_name(file)] = read_file_or_object(file, kMaxTokenizerBytes);
    }
    if (source_.is_made) add_made_files(source_, contents);
    return contents;
  }

 private:
  int32_t id_of(std::string_view text) const {
    for (const AddedToken& token : bpe_->model().added) {
      if (token.text == text) return token.id;
    }
    return bpe_->model().spelled_id(std::string(text));
  }

  // The tokens of the files beside it: those that tokenizer.json lacks follow its own, and of the
  // others the flags count, as in transformers. Returns what that changes, for the hash.
  std::string add_tokens(const TokenizerFolder& folder, ByteLevelModel& model) const {
    std::string changes;
    for (const AddedToken& token : folder.added()) {
      const int32_t expected = next_added_id(model, token.text);
      if (token.id != expected) {
        fail(ErrorCode::kInvalid,
             "{}: the added token '{}' is {}, and {} gives it {}: expected both to describe one "
             "tokenizer. Remove the file that is not meant",
             folder.added_file().string(), token.text, token.id, name_, expected);
      }
      const auto known =
          std::find_if(model.added.begin(), model.added.end(),
                       [&](const AddedToken& each) { return each.text == token.text; });
      if (known != model.added.end() && text_to_hash(*known) == text_to_hash(token)) continue;
      changes += text_to_hash(token);
      if (known != model.added.end()) {
        *known = token;
      } else {
        model.added.push_back(token);
        model.num_ids = std::max(model.num_ids, token.id + 1);
      }
    }
    return changes;
  }

  void find_ends(const TokenizerFolder& folder) {
    ends_ = text_ends(folder, {.name = name_,
                               .id_of = [this](std::string_view text) { return id_of(text); },
                               .has_token =
                                   [this](int64_t id) {
                                     return id >= 0 && id < vocab_size() &&
                                            bpe_->has_token(static_cast<int32_t>(id));
                                   },
                               .own_bos = bpe_->model().bos_id,
                               .own_eos = bpe_->model().end_id});
  }

  std::string name_;
  std::vector<fs::path> files_;
  TokenizerSource source_;
  std::optional<ByteLevelBpe> bpe_;
  std::string content_hash_;
  TextEnds ends_;
  AddedTokens special_;
};

}  // namespace

std::unique_ptr<Tokenizer> load_byte_level_tokenizer(const fs::path& json,
                                                     std::vector<fs::path> files) {
  return std::make_unique<ByteLevelTokenizer>(json, std::move(files));
}

}  // namespace skein
