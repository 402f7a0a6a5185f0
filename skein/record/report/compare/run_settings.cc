#include "skein/record/report/compare/run_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "skein/base/ending.h"
#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/toml.h"

namespace skein {
namespace {

struct PlacedSetting {
  uint32_t line, column;
  std::string key, value;
};

std::string nested_text(const toml::node& node);

// As TOML, in the fewest digits; a string without its quotes.
std::string text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  std::string list;
  if (const toml::array* array = node.as_array()) {
    for (const toml::node& one : *array) list += (list.empty() ? "" : ", ") + nested_text(one);
    return "[" + list + "]";
  }
  if (const toml::table* table = node.as_table()) {
    for (const auto& [name, one] : *table) {
      list += fmt::format("{}{} = {}", list.empty() ? "" : ", ", name.str(), nested_text(one));
    }
    return "{" + list + "}";
  }
  std::ostringstream stream;
  node.visit([&](const auto& value) { stream << value; });
  return stream.str();
}

std::string nested_text(const toml::node& node) {
  return node.is_string() ? json_text(Json(text_of(node))) : text_of(node);
}

void add_settings(const toml::table& table, const std::string& before,
                  std::vector<PlacedSetting>& settings) {
  for (const auto& [name, node] : table) {
    const std::string key = before + std::string(name.str());
    if (const toml::table* inner = node.as_table()) {
      add_settings(*inner, key + ".", settings);
    } else {
      const toml::source_position place = node.source().begin;
      settings.push_back({place.line, place.column, key, text_of(node)});
    }
  }
}

// The sizes of a model that config.toml names as a file: its copy in the run folder.
void add_model(const fs::path& path, RunSettings& settings) {
  if (!fs::exists(path)) return;
  const Json model = read_json(path.string());
  if (!model.is_object()) return;
  for (const auto& [key, value] : model.items()) {
    settings.values.emplace_back("model.json." + key,
                                 value.is_string() ? value.get<std::string>() : json_text(value));
  }
}

}  // namespace

const std::string* RunSettings::find(const std::string& key) const {
  for (const auto& [name, value] : values) {
    if (name == key) return &value;
  }
  return nullptr;
}

RunSettings read_settings(const fs::path& run_dir) {
  const fs::path path = run_dir / "config.toml";
  RunSettings result;
  const Result<bool> read = try_run([&] {
    std::vector<PlacedSetting> settings;
    add_settings(parse_toml(read_file(path), path.string()), "", settings);
    std::stable_sort(settings.begin(), settings.end(), [](const auto& a, const auto& b) {
      return std::pair(a.line, a.column) < std::pair(b.line, b.column);
    });
    for (PlacedSetting& setting : settings) {
      if (setting.key == "run.dir") continue;
      result.values.emplace_back(std::move(setting.key), std::move(setting.value));
    }
    add_model(run_dir / "model.json", result);
    return true;
  });
  if (!read.ok())
    result = {{}, read.error().what() + std::string(": its settings are not compared")};
  return result;
}

std::vector<SettingDifference> setting_differences(std::span<const RunSettings* const> runs) {
  std::vector<SettingDifference> differences;
  std::set<std::string> seen;
  for (const RunSettings* of : runs) {
    for (const auto& [key, unused] : of->values) {
      if (!seen.insert(key).second) continue;
      SettingDifference difference{key, {}};
      std::set<std::optional<std::string>> distinct;
      for (const RunSettings* run : runs) {
        const std::string* value = run->find(key);
        difference.values.push_back(value == nullptr ? std::nullopt : std::optional(*value));
        if (run->note.empty()) distinct.insert(difference.values.back());
      }
      if (distinct.size() > 1) differences.push_back(std::move(difference));
    }
  }
  return differences;
}

}  // namespace skein
