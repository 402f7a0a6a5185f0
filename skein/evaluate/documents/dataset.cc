#include "skein/evaluate/documents/dataset.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/text/json.h"
#include "skein/evaluate/documents/split_files.h"
#include "skein/evaluate/documents/table_file.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using jinja::Value;

// What a configuration is called where a data set has only one.
constexpr std::string_view kOnlyConfigurations[] = {"default", "main", "plain_text", "none"};

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

std::string replaced(std::string text, std::string_view with) {
  for (size_t at = 0; (at = text.find('/', at)) != text.npos; at += with.size()) {
    text.replace(at, 1, with);
  }
  return text;
}

bool is_only(std::string_view name) {
  return std::find(std::begin(kOnlyConfigurations), std::end(kOnlyConfigurations), name) !=
         std::end(kOnlyConfigurations);
}

// The folder with the splits of `name` below `folder`, or nothing. Without a name it is the folder
// itself, or the only folder in it, or that of a usual name.
fs::path configuration_in(const fs::path& folder, const std::string& name) {
  if (!is_folder(folder)) return {};
  if (!name.empty() && is_folder(folder / name)) return configuration_in(folder / name, "");
  if (!name.empty() && !is_only(name)) return {};
  if (has_splits(folder)) return folder;
  std::vector<fs::path> found;
  for (const fs::path& inside : folders_in(folder)) {
    if (has_splits(inside)) found.push_back(inside);
  }
  if (found.size() == 1) return found.front();
  for (const fs::path& inside : found) {
    if (is_only(inside.filename().string())) return inside;
  }
  return {};
}

// FOLDER/CONFIGURATION/VERSION/HASH of `datasets`.
fs::path in_datasets_cache(const fs::path& folder, const std::string& name) {
  for (const fs::path& configuration : folders_in(folder)) {
    const std::string stem = configuration.filename().string();
    if (!name.empty() && stem != name && !stem.starts_with(name + "-")) continue;
    for (const fs::path& version : folders_in(configuration)) {
      for (const fs::path& hash : folders_in(version)) {
        if (has_splits(hash)) return hash;
      }
    }
  }
  return {};
}

// The newest snapshot of `huggingface_hub`: refs/main names it.
fs::path in_hub_cache(const fs::path& folder, const std::string& name) {
  for (const fs::path& snapshot : folders_in(folder / "snapshots")) {
    if (fs::path found = configuration_in(snapshot, name); !found.empty()) return found;
  }
  return {};
}

std::vector<std::string> texts_of(const Value& value) {
  if (value.is_string()) return {value.text()};
  std::vector<std::string> texts;
  if (value.is(jinja::Kind::kSequence)) {
    for (const Value& item : value.as_sequence().items) {
      if (item.is_string()) texts.push_back(item.text());
    }
  }
  return texts;
}

const Value* option_of(const Value& kwargs, std::string_view key) {
  return kwargs.is(jinja::Kind::kDict) ? kwargs.as_dict().find(key) : nullptr;
}

// Of `dataset_path: json`.
bool is_format(const std::string& path) {
  return path == "json" || path == "parquet" || path == "arrow" || path == "csv";
}

fs::path below_one_of(const std::vector<fs::path>& roots, const std::string& name) {
  for (const fs::path& root : roots) {
    std::error_code error;
    if (fs::exists(root / name, error)) return root / name;
  }
  return name;
}

}  // namespace

std::vector<fs::path> hugging_face_caches() {
  std::vector<fs::path> caches;
  const auto add = [&](const char* variable, const char* below) {
    if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') {
      caches.push_back(fs::path(value) / below);
    }
  };
  add("HF_DATASETS_CACHE", "");
  add("HF_HUB_CACHE", "");
  for (const char* below : {"datasets", "hub"}) add("HF_HOME", below);
  for (const char* below : {".cache/huggingface/datasets", ".cache/huggingface/hub"}) {
    add("HOME", below);
  }
  std::erase_if(caches, [](const fs::path& path) { return !is_folder(path); });
  return caches;
}

Dataset::Dataset(DatasetName name, const std::vector<fs::path>& data_folders)
    : name_(std::move(name)), roots_(data_folders) {
  std::string path = name_.path;
  if (const Value* folder = option_of(name_.kwargs, "data_dir"); folder && folder->is_string()) {
    path = folder->text();
  }
  if (option_of(name_.kwargs, "data_files") != nullptr) return;
  if (is_format(path)) {
    fail(ErrorCode::kInvalid,
         "dataset_path {}: has no dataset_kwargs.data_files: expected the files of each split",
         path);
  }
  std::vector<std::string> looked;
  const std::string last = fs::path(path).filename().string();
  for (const fs::path& root : roots_) {
    for (const fs::path& folder : {root / path, root / last}) {
      folder_ = configuration_in(folder, name_.name);
      if (!folder_.empty()) return;
      looked.push_back((name_.name.empty() ? folder : folder / name_.name).string());
      if (path == last) break;
    }
  }
  if (fs::path(path).is_absolute()) return;
  for (const fs::path& cache : hugging_face_caches()) {
    const fs::path datasets = cache / replaced(path, "___");
    const fs::path hub = cache / ("datasets--" + replaced(path, "--"));
    folder_ = in_datasets_cache(datasets, name_.name);
    if (folder_.empty()) folder_ = in_hub_cache(hub, name_.name);
    if (!folder_.empty()) return;
    looked.push_back(cache.string());
  }
  fail(ErrorCode::kNotFound,
       "data set {}: not on this machine: looked for {}. Put it below a folder that --data names "
       "(a folder for each split as save_to_disk writes it, or .parquet, .jsonl, .arrow files)",
       title(),
       looked.empty() ? "it nowhere, since no folder is named (--data, evaluate.data)"
                      : fmt::format("{}", fmt::join(looked, ", ")));
}

std::string Dataset::title() const {
  return name_.name.empty() ? name_.path : fmt::format("{} of {}", name_.name, name_.path);
}

std::vector<fs::path> Dataset::files_of(const std::string& split) const {
  if (!folder_.empty()) return split_files(folder_, split);
  const Value& files = *option_of(name_.kwargs, "data_files");
  std::vector<std::string> names;
  if (files.is(jinja::Kind::kDict)) {
    if (const Value* of_split = files.as_dict().find(split)) names = texts_of(*of_split);
  } else if (split == "train") {
    names = texts_of(files);  // as `datasets` calls files without a split
  }
  std::vector<fs::path> paths;
  for (const std::string& name : names) paths.push_back(below_one_of(roots_, name));
  return paths;
}

Documents Dataset::split(const std::string& name) const {
  const std::vector<fs::path> files = files_of(name);
  if (files.empty()) {
    fail(ErrorCode::kNotFound,
         "data set {}: has no split {}{}: expected {}/ or {}.jsonl or the like", title(), name,
         folder_.empty() ? ""
                         : fmt::format(" in {} ({})", folder_.string(), split_names_text(folder_)),
         name, name);
  }
  Documents documents = read_table_files(files);
  if (documents.rows.empty()) {
    fail(ErrorCode::kInvalid, "data set {}: split {} is empty ({})", title(), name,
         files.front().string());
  }
  return documents;
}

}  // namespace skein
