#include "skein/data/tokenizer/folder/files.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "skein/base/error.h"
#include "skein/base/text/hub_name.h"
#include "skein/data/tokenizer/folder/sources.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

constexpr const char* kFolderFiles[] = {"tokenizer.model",
                                        "tokenizer.json",
                                        "tekken.json",
                                        "vocab.json",
                                        "merges.txt",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "chat_template.jinja"};
constexpr size_t kNumVocabularies = 5;  // of them, merges.txt among them
constexpr std::string_view kVersioned = "tokenizer.model.v";

// Sorted; none of a folder that is not there.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  if (is_object_url(folder)) {
    for (const StoredObject& object : objects_in(folder)) {
      if (object.name.find('/') == object.name.npos) names.push_back(object.name);
    }
  }
  if (is_object_url(folder) || !fs::is_directory(folder)) return names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "tokenizer.model.v3"
bool is_versioned(std::string_view name) {
  if (!name.starts_with(kVersioned)) return false;
  const std::string_view version = name.substr(kVersioned.size());
  return !version.empty() && std::all_of(version.begin(), version.end(),
                                         [](unsigned char c) { return std::isdigit(c); });
}

// A vocabulary whose name says what it is; empty: there is none.
fs::path find_by_ending(const fs::path& folder) {
  std::vector<std::string> found;
  for (const std::string& name : names_in(folder)) {
    const bool is_one = name.ends_with(".tiktoken") || is_versioned(name);
    if (is_one && is_file_or_object(folder / name)) found.push_back(name);
  }
  if (found.empty()) return {};
  if (found.size() == 1) return folder / found.front();
  fail(ErrorCode::kInvalid, "{}: the folder has {}: expected one of them, or the file by its name",
       folder.string(), fmt::join(found, ", "));
}

bool has_tiktoken_model(const fs::path& folder) {
  return is_tiktoken(read_file_or_object(folder / "tokenizer.model", kMaxTokenizerBytes));
}

// Of a folder that exists; empty: there is none.
fs::path vocabulary_in(const fs::path& folder) {
  const auto is_there = [&](const char* name) { return is_file_or_object(folder / name); };
  const bool has_json = is_there("tokenizer.json");
  if (is_there("tokenizer.model") && !(has_json && has_tiktoken_model(folder))) {
    return folder / "tokenizer.model";
  }
  if (has_json) return folder / "tokenizer.json";
  if (is_there("tekken.json")) return folder / "tekken.json";
  if (is_there("vocab.json") && is_there("merges.txt")) return folder / "vocab.json";
  return find_by_ending(folder);
}

std::string what_is_in(const fs::path& folder) {
  std::vector<std::string> names = names_in(folder);
  if (names.empty()) return "";
  const bool is_cut = names.size() > 12;
  if (is_cut) names.resize(12);
  return fmt::format(" (there is {}{})", fmt::join(names, ", "), is_cut ? " …" : "");
}

// Of a vocabulary: its own parts, and what counts beside any.
std::vector<fs::path> with_files_beside(const fs::path& vocabulary, bool is_named) {
  std::vector<fs::path> files = {vocabulary};
  const std::string own = vocabulary.filename().string();
  if (!is_tokenizer_file(own)) return files;
  const auto add = [&](const char* name) {
    const fs::path file = vocabulary.parent_path() / name;
    if (is_file_or_object(file)) files.push_back(file);
  };
  if (own == "vocab.json") add("merges.txt");
  if (own == "tokenizer.model" && !is_named) add("tokenizer.json");
  for (const char* name : std::span(kFolderFiles).subspan(kNumVocabularies)) add(name);
  const fs::path templates = vocabulary.parent_path() / kNamedTemplates;
  for (const std::string& name : names_in(templates)) {
    if (name.ends_with(".jinja")) files.push_back(templates / name);
  }
  return files;
}

}  // namespace

TokenizerFiles find_tokenizer_files(const fs::path& path) {
  if (is_file_or_object(path)) return {path, with_files_beside(path, true)};
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
  const fs::path vocabulary = vocabulary_in(path);
  if (vocabulary.empty()) {
    fail(ErrorCode::kNotFound,
         "{}: the folder has neither tokenizer.model nor tokenizer.json, tekken.json, vocab.json "
         "with merges.txt or a .tiktoken file{}: expected the folder of a tokenizer (`skein data "
         "tokenizer` makes one)",
         path.string(), what_is_in(path));
  }
  return {vocabulary, with_files_beside(vocabulary, false)};
}

bool has_tokenizer(const fs::path& folder) {
  return (is_object_url(folder) || fs::is_directory(folder)) && !vocabulary_in(folder).empty();
}

std::span<const char* const> tokenizer_file_names() { return kFolderFiles; }

bool is_tokenizer_file(std::string_view name) {
  return name.ends_with(".model") || name.ends_with(".tiktoken") || is_versioned(name) ||
         name == kGenerationConfig ||
         std::find(std::begin(kFolderFiles), std::end(kFolderFiles), name) !=
             std::end(kFolderFiles);
}

std::string kept_tokenizer_name(const fs::path& file) {
  std::string name = file.filename().string();
  if (file.parent_path().filename() == kNamedTemplates)
    return (kNamedTemplates / file.filename()).string();
  if (file.extension() == ".model") return "tokenizer.model";
  if (is_tokenizer_file(name)) return name;
  if (file.extension() != ".json") return "tokenizer.model";
  return is_tekken_name(name) ? "tekken.json" : "tokenizer.json";
}

}  // namespace skein
