#include "skein/data/tokenizer.h"

#include <sentencepiece_processor.h>

#include <optional>

#include "skein/base/error.h"
#include "skein/base/hash.h"
#include "skein/base/hub_name.h"
#include "skein/base/json.h"
#include "skein/base/log.h"
#include "skein/data/sentencepiece_bpe.h"
#include "skein/data/tokenizer_byte_level.h"
#include "skein/data/tokenizer_hugging_face.h"
#include "skein/objects/object_store.h"

namespace skein {
namespace {

constexpr int64_t kMaxModelBytes = int64_t{256} << 20;

// The files that a run keeps beside its checkpoints.
constexpr const char* kFolderFiles[] = {"tokenizer.model",       "tokenizer.json",
                                        "tokenizer_config.json", "special_tokens_map.json",
                                        "added_tokens.json",     "chat_template.jinja"};

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string_view bytes, const std::string& name,
                         std::vector<fs::path> files)
      : name_(name),
        files_(std::move(files)),
        content_hash_(xxh3_128_hex(std::as_bytes(std::span(bytes)))),
        bytes_(bytes),
        model_(parse_sentencepiece_model(bytes, name)) {
    if (SentencePieceBpe::can_encode(model_)) {
      bpe_.emplace(model_);
    } else if (const auto status = processor_.LoadFromSerializedProto(bytes); !status.ok()) {
      fail(ErrorCode::kCorrupt, "{}: SentencePiece refuses the model: {}", name_,
           status.ToString());
    }
  }

  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    if (bpe_) return bpe_->encode(text, out);
    std::vector<int> ids;
    if (const auto status = processor_.Encode(text, &ids); !status.ok()) {
      fail(ErrorCode::kInternal, "{}: cannot encode {} bytes: {}", name_, text.size(),
           status.ToString());
    }
    out.insert(out.end(), ids.begin(), ids.end());
  }

  std::string decode(std::span<const int32_t> ids) const override {
    for (const int32_t id : ids) {
      if (id < 0 || id >= vocab_size()) {
        fail(ErrorCode::kInvalid, "{}: no token has id {}: expected 0 to {}", name_, id,
             vocab_size() - 1);
      }
    }
    if (bpe_) return bpe_->decode(ids);
    std::string text;
    const std::vector<int> all(ids.begin(), ids.end());
    if (const auto status = processor_.Decode(all, &text); !status.ok()) {
      fail(ErrorCode::kInternal, "{}: cannot decode {} ids: {}", name_, ids.size(),
           status.ToString());
    }
    return text;
  }

  int vocab_size() const override { return static_cast<int>(model_.pieces.size()); }
  int bos_id() const override { return control_id(model_, model_.bos_piece); }
  int eos_id() const override { return control_id(model_, model_.eos_piece); }
  std::string content_hash() const override { return content_hash_; }
  std::vector<fs::path> files() const override { return files_; }
  std::string why_not_exported() const override { return why_no_hugging_face_tokenizer(model_); }

  std::map<std::string, std::string> export_files() const override {
    std::string chat_template;
    for (const fs::path& file : files_) {
      if (file.filename() == "chat_template.jinja") {
        chat_template = read_file_or_object(file, kMaxModelBytes);
      }
      if (file.filename() == "tokenizer_config.json" && chat_template.empty()) {
        const Json config = parse_json(read_file_or_object(file), file.string());
        if (config.is_object() && config.contains("chat_template") &&
            config["chat_template"].is_string()) {
          chat_template = config["chat_template"];
        }
      }
      if (file.filename() == "added_tokens.json") {
        log::warn("{}: left out of the export: training knew the tokens of tokenizer.model alone",
                  file.string());
      }
    }
    if (!chat_template.empty()) {
      log::warn(
          "{}: has a chat template: in the export a text that spells a control token (\"<s>\") is "
          "that token, which it was not in training",
          name_);
    }
    auto files = hugging_face_tokenizer_files(model_, name_, chat_template);
    files["tokenizer.model"] = bytes_;
    return files;
  }

 private:
  std::string name_;
  std::vector<fs::path> files_;
  std::string content_hash_;
  std::string bytes_;
  SentencePieceModel model_;
  std::optional<SentencePieceBpe> bpe_;
  sentencepiece::SentencePieceProcessor processor_;  // for what that does not do
};

bool is_file(const fs::path& path) {
  return is_object_url(path) ? has_object(parse_object_url(path.native()))
                             : fs::is_regular_file(path);
}

// The file that decides: `tokenizer.model` in a folder, else `tokenizer.json`; or the file itself.
fs::path deciding_file(const fs::path& path) {
  if (is_file(path)) return path;
  if (!is_object_url(path) && !fs::is_directory(path)) {
    fail(ErrorCode::kNotFound,
         "{}: no such file or folder{}: expected a folder with tokenizer.model or tokenizer.json "
         "(`skein data tokenizer` makes one){}",
         path.string(),
         path.is_relative() ? fmt::format(", counted from the working folder {}; in a file, "
                                          "{{config_dir}}/… counts from where it lies",
                                          fs::current_path().string())
                            : "",
         hub_advice(path.native()));
  }
  for (const char* name : {"tokenizer.model", "tokenizer.json"}) {
    if (is_file(path / name)) return path / name;
  }
  fail(ErrorCode::kNotFound,
       "{}: the folder has neither tokenizer.model nor tokenizer.json: expected the folder of a "
       "tokenizer (`skein data tokenizer` makes one)",
       path.string());
}

std::vector<fs::path> files_beside(const fs::path& deciding) {
  std::vector<fs::path> files;
  if (!is_tokenizer_file(deciding.filename().string())) return {deciding};
  for (const char* name : kFolderFiles) {
    const fs::path file = deciding.parent_path() / name;
    if (is_file(file)) files.push_back(file);
  }
  return files;
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::load(const fs::path& folder_or_file) {
  const fs::path path = deciding_file(folder_or_file);
  if (path.extension() == ".json") return load_byte_level_tokenizer(path, files_beside(path));
  return from_model(read_file_or_object(path, kMaxModelBytes), path.string(), files_beside(path));
}

std::unique_ptr<Tokenizer> Tokenizer::from_model(std::string_view model, const std::string& name,
                                                 std::vector<fs::path> files) {
  return std::make_unique<SentencePieceTokenizer>(model, name, std::move(files));
}

std::span<const char* const> tokenizer_file_names() { return kFolderFiles; }

bool is_tokenizer_file(std::string_view name) {
  return name.ends_with(".model") || std::find(std::begin(kFolderFiles), std::end(kFolderFiles),
                                               name) != std::end(kFolderFiles);
}

std::unique_ptr<Tokenizer> load_tokenizer(const fs::path& path, const std::string& setting) {
  try {
    return Tokenizer::load(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound && error.code() != ErrorCode::kUnsupported) throw;
    fail(ErrorCode::kUsage, "{}: {}", setting, error.what());
  }
}

}  // namespace skein
