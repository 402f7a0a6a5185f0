#include "skein/data/tokenizer/tokenizer.h"

#include "skein/base/error.h"
#include "skein/base/text/log.h"
#include "skein/data/tokenizer/byte_level_tokenizer.h"
#include "skein/data/tokenizer/folder/files.h"
#include "skein/data/tokenizer/folder/keys.h"
#include "skein/data/tokenizer/folder/sources.h"
#include "skein/data/tokenizer/sentencepiece_tokenizer.h"
#include "skein/objects/store.h"

namespace skein {

bool Tokenizer::begins_word(int32_t id) const {
  const std::string text = decode(std::span(&id, 1));
  return !text.empty() && (text[0] == ' ' || (text[0] >= '\t' && text[0] <= '\r'));
}

const AddedTokens& Tokenizer::special_tokens() const {
  static const AddedTokens none;
  return none;
}

std::unique_ptr<Tokenizer> Tokenizer::load(const fs::path& folder_or_file) {
  TokenizerFiles files = find_tokenizer_files(folder_or_file);
  const fs::path& path = files.vocabulary;
  if (path.extension() == ".json" || path.extension() == ".tiktoken") {
    return load_byte_level_tokenizer(path, std::move(files.all));
  }
  const std::string model = read_file_or_object(path, kMaxTokenizerBytes);
  if (is_tiktoken(model)) return load_byte_level_tokenizer(path, std::move(files.all));
  return from_model(model, path.string(), std::move(files.all));
}

std::unique_ptr<Tokenizer> Tokenizer::from_model(std::string_view model, const std::string& name,
                                                 std::vector<fs::path> files) {
  return load_sentencepiece_tokenizer(model, name, std::move(files));
}

std::vector<int32_t> tokens_with_bos(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> tokens;
  tokenizer.parse(text, tokens);
  const int bos = tokenizer.bos_id();
  if (bos >= 0 && (tokens.empty() || tokens.front() != bos)) tokens.insert(tokens.begin(), bos);
  return tokens;
}

std::vector<std::string> notes_of(const Tokenizer& tokenizer) {
  std::vector<std::string> notes(tokenizer.notes().begin(), tokenizer.notes().end());
  for (std::string& line : unknown_tokenizer_keys(tokenizer.files())) {
    notes.push_back(std::move(line));
  }
  return notes;
}

void warn_of(const Tokenizer& tokenizer) {
  for (const std::string& note : notes_of(tokenizer)) log::warn("{}", note);
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
