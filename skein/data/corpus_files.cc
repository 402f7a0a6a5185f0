#include "skein/data/corpus_files.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>

#include "skein/base/error.h"
#include "skein/objects/object_store.h"

namespace skein {
namespace {

// "<stem>-00003-of-00016.arrow"
struct ShardName {
  std::string stem;
  int64_t index = 0;
  int64_t count = 0;
};

std::optional<ShardName> shard_name(const fs::path& path) {
  const std::string name = path.stem().string();
  const size_t of = name.rfind("-of-");
  const size_t dash =
      of == std::string::npos || of == 0 ? std::string::npos : name.rfind('-', of - 1);
  if (dash == std::string::npos) return std::nullopt;
  ShardName shard{name.substr(0, dash)};
  const auto number = [&](size_t begin, size_t end, int64_t& value) {
    const auto result = std::from_chars(name.data() + begin, name.data() + end, value);
    return result.ec == std::errc() && result.ptr == name.data() + end;
  };
  if (!number(dash + 1, of, shard.index) || !number(of + 4, name.size(), shard.count)) {
    return std::nullopt;
  }
  return shard;
}

void check_no_shard_is_missing(const fs::path& folder, const std::vector<fs::path>& files) {
  std::map<std::pair<std::string, int64_t>, std::set<int64_t>> found;
  for (const fs::path& file : files) {
    if (const auto shard = shard_name(file))
      found[{shard->stem, shard->count}].insert(shard->index);
  }
  for (const auto& [key, indices] : found) {
    const auto& [stem, count] = key;
    if (static_cast<int64_t>(indices.size()) >= count) continue;
    int64_t missing = 0;
    while (indices.contains(missing)) ++missing;
    fail(
        ErrorCode::kInvalid,
        "{}: holds {} of the {} files {}-…-of-{:05}.arrow, number {} is not there: expected all of "
        "them; is the machine that writes them done?",
        folder.string(), indices.size(), count, stem, count, missing);
  }
}

bool is_of_corpus(const fs::path& file) {
  return file.extension() == ".arrow" && !file.filename().string().starts_with('.');
}

std::vector<fs::path> files_in_folder(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_of_corpus(entry->path()) && !entry->is_directory()) files.push_back(entry->path());
  }
  if (error) {
    fail(errno_code(error.value()), "cannot read {}: {}", folder.string(),
         errno_text(error.value()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<fs::path> objects_of(const ObjectUrl& url) {
  std::vector<fs::path> objects;
  for (const ObjectInfo& object : list_objects(url)) {
    if (object.named) return {object.url};
    const bool is_inside = object.url.find('/', url.text().size() + 1) != std::string::npos;
    if (!is_inside && is_of_corpus(object.url)) objects.emplace_back(object.url);
  }
  return objects;
}

}  // namespace

std::vector<fs::path> corpus_files(const fs::path& path) {
  check_path_or_object_url(path);
  std::error_code error;
  const bool is_object = is_object_url(path);
  if (!is_object && !fs::is_directory(path, error)) return {path};
  const std::vector<fs::path> files =
      is_object ? objects_of(parse_object_url(path.native())) : files_in_folder(path);
  if (files.empty()) {
    fail(ErrorCode::kInvalid,
         "{}: a folder without .arrow files: expected a corpus, or a folder of those that `skein "
         "data ingest` writes",
         path.string());
  }
  check_no_shard_is_missing(path, files);
  return files;
}

}  // namespace skein
