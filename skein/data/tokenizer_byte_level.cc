#include "skein/data/tokenizer_byte_level.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/hash.h"
#include "skein/base/json.h"
#include "skein/data/byte_level_bpe.h"
#include "skein/objects/object_store.h"

namespace skein {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{256} << 20;

class ByteLevelTokenizer : public Tokenizer {
 public:
  ByteLevelTokenizer(const fs::path& json, std::vector<fs::path> files)
      : name_(json.string()), files_(std::move(files)) {
    const std::string text = read_file_or_object(json, kMaxFileBytes);
    bpe_.emplace(parse_byte_level_model(parse_json(text, name_), name_));
    eos_id_ = find_eos();
    const int32_t end_id = bpe_->model().end_id;
    if (eos_id_ < 0) eos_id_ = end_id;
    if (end_id >= 0 && end_id != eos_id_) {
      fail(ErrorCode::kUnsupported,
           "{}: its template ends texts with token {}, and eos_token is {}: expected the same",
           name_, end_id, eos_id_);
    }
    const std::string decides = text + fmt::format("\neos {}", eos_id_);
    content_hash_ = xxh3_128_hex(std::as_bytes(std::span(decides)));
  }

  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    bpe_->encode(text, out);
  }

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
  int bos_id() const override { return bpe_->model().bos_id; }
  int eos_id() const override { return eos_id_; }
  std::string content_hash() const override { return content_hash_; }
  std::vector<fs::path> files() const override { return files_; }
  std::string why_not_exported() const override { return ""; }

  // They are what transformers reads already.
  std::map<std::string, std::string> export_files() const override {
    std::map<std::string, std::string> contents;
    for (const fs::path& file : files_) {
      contents[file.filename().string()] = read_file_or_object(file, kMaxFileBytes);
    }
    return contents;
  }

 private:
  int find_eos() const {
    for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
      const auto file = std::find_if(files_.begin(), files_.end(),
                                     [&](const fs::path& each) { return each.filename() == name; });
      if (file == files_.end()) continue;
      const Json config = parse_json(read_file_or_object(*file), file->string());
      if (!config.is_object() || !config.contains("eos_token")) continue;
      const Json& eos = config["eos_token"];
      const Json& text = eos.is_object() && eos.contains("content") ? eos["content"] : eos;
      if (!text.is_string()) continue;
      const auto& added = bpe_->model().added;
      const auto token = std::find_if(added.begin(), added.end(), [&](const AddedToken& each) {
        return each.text == text.get<std::string>();
      });
      if (token == added.end()) {
        fail(ErrorCode::kInvalid, "{}: eos_token is {}: expected an added token of {}",
             file->string(), text.dump(), name_);
      }
      return token->id;
    }
    return -1;
  }

  std::string name_;
  std::vector<fs::path> files_;
  std::optional<ByteLevelBpe> bpe_;
  std::string content_hash_;
  int eos_id_ = -1;
};

}  // namespace

std::unique_ptr<Tokenizer> load_byte_level_tokenizer(const fs::path& json,
                                                     std::vector<fs::path> files) {
  return std::make_unique<ByteLevelTokenizer>(json, std::move(files));
}

}  // namespace skein
