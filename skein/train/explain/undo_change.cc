#include "skein/train/explain/undo_change.h"

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/config/run/change_text.h"
#include "skein/objects/url.h"

namespace skein {
namespace {

bool is_there(const std::string& path) {
  std::error_code ignored;
  return is_object_url(path) || fs::exists(path, ignored);
}

// The corpora that a configuration trains on.
std::vector<std::string> corpora_of(const Config& config) {
  std::vector<std::string> paths;
  if (!config.data.train.empty()) paths.push_back(config.data.train);
  for (const DataSource& source : config.data.source) paths.push_back(source.path);
  return paths;
}

// A corpus may have been moved since: then the file of its name that is read now.
std::string place_now(const std::string& path, const Config& now) {
  if (is_there(path)) return path;
  for (const std::string& other : corpora_of(now)) {
    if (fs::path(other).filename() == fs::path(path).filename()) return other;
  }
  return path;
}

std::string path_of_source(const std::string& name, const Config& now,
                           std::span<const Config> others) {
  const auto find = [&](const Config& config) -> std::string {
    for (const DataSource& source : config.data.source) {
      if (source.name == name) return place_now(source.path, now);
    }
    return "";
  };
  std::string path = find(now);
  for (size_t i = 0; path.empty() && i < others.size(); ++i) path = find(others[i]);
  if (path.empty()) {
    fail(ErrorCode::kUsage, "no configuration that is left says where the source {} lies", name);
  }
  return path;
}

void set_corpora(Config& config, const std::string& value, std::span<const Config> others) {
  const Config now = config;
  config.data.train.clear();
  config.data.source.clear();
  const auto sources = parse_sources(value);
  if (!sources) {
    config.data.train = place_now(path_in(value), now);
    return;
  }
  for (const SourceText& source : *sources) {
    config.data.source.push_back(
        {path_of_source(source.name, now, others), source.weight, source.name});
  }
}

}  // namespace

void set_recorded_value(Config& config, const std::string& key, const std::string& value,
                        std::span<const Config> others) {
  if (key == "data.source" || key == "data.train") return set_corpora(config, value, others);
  if (key == "data.tokenizer") {
    config.data.tokenizer = path_in(value);
    return;
  }
  const std::string override = key + "=" + value;
  config = parse_config(config_text(config), "the configuration", std::span(&override, 1));
}

}  // namespace skein
