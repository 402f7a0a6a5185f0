#include "skein/data/tokenizer.h"

#include <sentencepiece_processor.h>

#include <optional>

#include "skein/base/error.h"
#include "skein/base/hash.h"
#include "skein/data/tokenizer_cuts.h"
#include "skein/data/tokenizer_model.h"

namespace skein {
namespace {

constexpr int64_t kMaxModelBytes = int64_t{256} << 20;

// What an exported Hugging Face folder takes along.
constexpr const char* kFolderFiles[] = {"tokenizer.model",       "tokenizer.json",
                                        "tokenizer_config.json", "special_tokens_map.json",
                                        "added_tokens.json",     "chat_template.jinja"};

// Set in a model by appending: protobuf merges a field that comes twice.
constexpr std::string_view kNoDummyPrefix{"\x1a\x02\x18\x00", 4};  // normalizer_spec { 3: false }

constexpr size_t kPartBytes = 2048;  // of text, encoded at a time where the model allows it

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string_view bytes, const std::string& name,
                         std::vector<fs::path> files)
      : name_(name),
        files_(std::move(files)),
        content_hash_(xxh3_128_hex(std::as_bytes(std::span(bytes)))) {
    const SentencePieceModel model = parse_sentencepiece_model(bytes, name);
    load(bytes, processor_);
    if (TokenizerCuts::allowed(model)) {
      cuts_.emplace(model);
      add_dummy_prefix_ = model.add_dummy_prefix;
      load(std::string(bytes).append(kNoDummyPrefix), part_processor_);
    }
  }

  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    if (!cuts_) return encode_with(processor_, text, out);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = cuts_->next(text, begin + kPartBytes);
      const std::string_view part = text.substr(begin, end - begin);
      if (begin == 0 && add_dummy_prefix_) {
        encode_with(part_processor_, std::string(" ").append(part), out);
      } else {
        encode_with(part_processor_, part, out);
      }
      begin = end;
    }
  }

  std::string decode(std::span<const int32_t> ids) const override {
    for (const int32_t id : ids) {
      if (id < 0 || id >= vocab_size()) {
        fail(ErrorCode::kInvalid, "{}: no token has id {}: expected 0 to {}", name_, id,
             vocab_size() - 1);
      }
    }
    std::string text;
    const std::vector<int> all(ids.begin(), ids.end());
    if (const auto status = processor_.Decode(all, &text); !status.ok()) {
      fail(ErrorCode::kInternal, "{}: cannot decode {} ids: {}", name_, ids.size(),
           status.ToString());
    }
    return text;
  }

  int vocab_size() const override { return processor_.GetPieceSize(); }
  int bos_id() const override { return processor_.bos_id(); }
  int eos_id() const override { return processor_.eos_id(); }
  std::string content_hash() const override { return content_hash_; }
  std::vector<fs::path> files() const override { return files_; }

 private:
  void load(std::string_view bytes, sentencepiece::SentencePieceProcessor& processor) const {
    if (const auto status = processor.LoadFromSerializedProto(bytes); !status.ok()) {
      fail(ErrorCode::kCorrupt, "{}: SentencePiece refuses the model: {}", name_,
           status.ToString());
    }
  }

  void encode_with(const sentencepiece::SentencePieceProcessor& processor, std::string_view text,
                   std::vector<int32_t>& out) const {
    std::vector<int> ids;
    if (const auto status = processor.Encode(text, &ids); !status.ok()) {
      fail(ErrorCode::kInternal, "{}: cannot encode {} bytes: {}", name_, text.size(),
           status.ToString());
    }
    out.insert(out.end(), ids.begin(), ids.end());
  }

  std::string name_;
  std::vector<fs::path> files_;
  std::string content_hash_;
  sentencepiece::SentencePieceProcessor processor_;
  // Where texts may be cut into parts: how, and what encodes them.
  std::optional<TokenizerCuts> cuts_;
  sentencepiece::SentencePieceProcessor part_processor_;  // adds no space before a text
  bool add_dummy_prefix_ = false;
};

// `tokenizer.model` of a folder, or the file itself.
fs::path model_file(const fs::path& path) {
  if (fs::is_regular_file(path)) return path;
  if (!fs::is_directory(path)) {
    fail(ErrorCode::kNotFound,
         "tokenizer {}: no such file or folder: expected a folder with tokenizer.model "
         "(`skein data tokenizer` makes one)",
         path.string());
  }
  if (fs::is_regular_file(path / "tokenizer.model")) return path / "tokenizer.model";
  if (fs::is_regular_file(path / "tokenizer.json")) {
    fail(ErrorCode::kUnsupported,
         "tokenizer {}: has tokenizer.json but no tokenizer.model: only SentencePiece models are "
         "supported so far",
         path.string());
  }
  fail(ErrorCode::kNotFound, "tokenizer {}: the folder has no tokenizer.model", path.string());
}

std::vector<fs::path> files_beside(const fs::path& model) {
  std::vector<fs::path> files;
  if (model.filename() != "tokenizer.model") return {model};
  for (const char* name : kFolderFiles) {
    const fs::path file = model.parent_path() / name;
    if (fs::is_regular_file(file)) files.push_back(file);
  }
  return files;
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::load(const fs::path& folder_or_file) {
  const fs::path path = model_file(folder_or_file);
  return from_model(read_file(path, kMaxModelBytes), path.string(), files_beside(path));
}

std::unique_ptr<Tokenizer> Tokenizer::from_model(std::string_view model, const std::string& name,
                                                 std::vector<fs::path> files) {
  return std::make_unique<SentencePieceTokenizer>(model, name, std::move(files));
}

}  // namespace skein
