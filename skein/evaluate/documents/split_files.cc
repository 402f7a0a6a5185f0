#include "skein/evaluate/documents/split_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/evaluate/documents/table_file.h"

namespace skein {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    paths.push_back(it->path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<fs::path> tables_in(const fs::path& folder) {
  std::vector<fs::path> tables;
  for (const fs::path& inside : {folder, folder / "data"}) {
    for (const fs::path& path : entries_of(inside)) {
      std::error_code error;
      if (is_table_file(path) && fs::is_regular_file(path, error)) tables.push_back(path);
    }
    if (!tables.empty()) break;
  }
  return tables;
}

bool is_saved(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "state.json", error);
}

std::vector<fs::path> saved_files(const fs::path& folder) {
  const std::string path = (folder / "state.json").string();
  const Json state = read_json(path);
  std::vector<fs::path> files;
  if (!state.is_object() || !state.contains("_data_files") || !state["_data_files"].is_array()) {
    fail(ErrorCode::kInvalid, "{}: has no list _data_files: expected what save_to_disk writes",
         path);
  }
  for (const Json& file : state["_data_files"]) {
    const std::string name = file.is_object() ? file.value("filename", "") : "";
    if (name.empty() || name.find('/') != name.npos) {
      fail(ErrorCode::kInvalid, "{}: names no file of its folder: {}", path, json_text(file));
    }
    files.push_back(folder / name);
  }
  return files;
}

// Whether `word` stands in `name` between characters that are no letters or digits.
bool has_word(std::string_view name, std::string_view word) {
  const auto is_letter = [&](size_t at) {
    return at < name.size() && std::isalnum(static_cast<unsigned char>(name[at])) != 0;
  };
  for (size_t at = 0; (at = name.find(word, at)) != name.npos; ++at) {
    if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) return true;
  }
  return false;
}

std::vector<std::string_view> other_names(std::string_view split) {
  if (split == "train") return {"training"};
  if (split == "validation") return {"valid", "val", "dev"};
  if (split == "test") return {"testing", "eval", "evaluation"};
  return {};
}

std::vector<fs::path> named_files(const std::vector<fs::path>& tables, std::string_view word) {
  std::vector<fs::path> files;
  for (const fs::path& table : tables) {
    if (has_word(table.filename().string(), word)) files.push_back(table);
  }
  return files;
}

}  // namespace

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders = entries_of(folder);
  std::erase_if(folders, [](const fs::path& path) {
    std::error_code error;
    return !fs::is_directory(path, error);
  });
  return folders;
}

bool has_splits(const fs::path& folder) {
  const std::vector<fs::path> inside = folders_in(folder);
  return std::any_of(inside.begin(), inside.end(), is_saved) || !tables_in(folder).empty();
}

std::vector<fs::path> split_files(const fs::path& folder, const std::string& split) {
  if (is_saved(folder / split)) return saved_files(folder / split);
  const std::vector<fs::path> tables = tables_in(folder);
  std::vector<fs::path> files = named_files(tables, split);
  for (const std::string_view other : other_names(split)) {
    if (files.empty()) files = named_files(tables, other);
  }
  return files;
}

std::string split_names_text(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& inside : folders_in(folder)) {
    if (is_saved(inside)) names.push_back(inside.filename().string());
  }
  for (const fs::path& table : tables_in(folder)) names.push_back(table.filename().string());
  constexpr size_t kShown = 12;
  if (names.size() > kShown) names.resize(kShown);
  return fmt::format("there are {}", fmt::join(names, ", "));
}

}  // namespace skein
