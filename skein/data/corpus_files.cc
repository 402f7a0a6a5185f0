#include "skein/data/corpus_files.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>

#include "skein/base/error.h"

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

}  // namespace

std::vector<fs::path> corpus_files(const fs::path& path) {
  if (path.native().starts_with("s3://")) {
    fail(ErrorCode::kUnsupported,
         "{}: corpora are not read from buckets yet: expected a file or folder; `skein data ingest "
         "--out corpus.arrow {}` makes one",
         path.string(), path.string());
  }
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& file = entry->path();
    if (file.extension() != ".arrow" || file.filename().string().starts_with('.')) continue;
    if (!entry->is_directory()) files.push_back(file);
  }
  if (error) {
    fail(errno_code(error.value()), "cannot read {}: {}", path.string(), errno_text(error.value()));
  }
  if (files.empty()) {
    fail(ErrorCode::kInvalid,
         "{}: a folder without .arrow files: expected a corpus, or a folder of those that `skein "
         "data ingest` writes",
         path.string());
  }
  std::sort(files.begin(), files.end());
  check_no_shard_is_missing(path, files);
  return files;
}

}  // namespace skein
