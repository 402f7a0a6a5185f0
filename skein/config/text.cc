#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <functional>

#include "skein/base/error.h"
#include "skein/base/machine/environment.h"
#include "skein/base/text/json_text.h"
#include "skein/config/evaluate_fields.h"
#include "skein/config/fields.h"

namespace skein {
namespace {

std::string toml_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// The shortest decimal that reads back to the same bits, always with a point or an exponent so that
// TOML reads a float.
std::string toml_float(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

struct ValueText {
  // The text of a path, which Place::parse() reads.
  std::function<std::string(const std::string&)> place_text;
  bool is_path = false;

  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
  std::string operator()(const int64_t* value) const { return fmt::format("{}", *value); }
  std::string operator()(const double* value) const { return toml_float(*value); }
  std::string operator()(const std::string* value) const {
    return toml_string(is_path ? place_text(*value) : *value);
  }
  std::string operator()(const std::vector<DataSource>* value) const {
    std::vector<std::string> tables;
    for (const DataSource& source : *value) {
      tables.push_back(fmt::format("{{path = {}, weight = {}, name = {}}}",
                                   toml_string(place_text(source.path)), toml_float(source.weight),
                                   toml_string(source.name)));
    }
    return fmt::format("[{}]", fmt::join(tables, ", "));
  }
};

}  // namespace

std::string type_name(const ConfigValue& value, const ConfigLimits& limits) {
  struct TypeName {
    std::string operator()(const bool*) const { return "true or false"; }
    std::string operator()(const int64_t*) const { return "whole number"; }
    std::string operator()(const double*) const { return "number"; }
    std::string operator()(const std::string*) const { return "string"; }
    std::string operator()(const std::vector<DataSource>*) const { return "list of tables"; }
  };
  if (!limits.choices.empty()) return fmt::format("`{}`", fmt::join(limits.choices, "`, `"));
  return std::visit(TypeName{}, value);
}

std::string toml_value(const ConfigValue& value, bool is_path) {
  return std::visit(ValueText{place_text, is_path}, value);
}

std::string toml_value(const ConfigField& field, const Config& config) {
  Config copy = config;
  return toml_value(field.value(copy), field.limits.is_path);
}

std::string toml_value(const Json& json) {
  if (json.is_string()) return toml_string(json.get_ref<const std::string&>());
  if (json.is_number_float()) return toml_float(json.get<double>());
  std::vector<std::string> parts;
  if (json.is_array()) {
    for (const Json& element : json) parts.push_back(toml_value(element));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  if (json.is_object()) {
    for (const auto& [key, element] : json.items()) {
      parts.push_back(fmt::format("{} = {}", toml_string(key), toml_value(element)));
    }
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  if (json.is_null()) fail(ErrorCode::kInternal, "configuration: TOML has no null");
  return json_text(json);  // a bool or a whole number
}

std::string config_text(const Config& config) {
  Config meant = config;
  meant.origin.places.clear();
  return config_text_as_written(meant);
}

std::string config_text_as_written(const Config& config) {
  std::string text;
  std::string_view section;
  for (const ConfigField& field : config_fields()) {
    if (field.section != section) {
      section = field.section;
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
      if (section == "model") {
        for (const auto& [key, value] : config.model.inline_keys.items()) {
          text += fmt::format("{} = {}\n", key, toml_value(value));
        }
      }
    }
    const std::string name = fmt::format("{}.{}", field.section, field.key);
    const auto as_written = [&](const std::string& meant) {
      const auto found = config.origin.places.find({name, absolute_path(meant)});
      return found == config.origin.places.end() ? place_text(meant) : found->second;
    };
    // Left out, the model file says it.
    const bool is_of_model = name == "model.init_std" && !config.origin.init_std_given &&
                             config.model.init_std == ModelConfig().init_std;
    if (is_of_model) continue;
    Config copy = config;
    const std::string value =
        std::visit(ValueText{as_written, field.limits.is_path}, field.value(copy));
    text += fmt::format("{} = {}\n", field.key, value);
  }
  return text + evaluations_text(config.evaluate);
}

std::string config_reference() {
  Config defaults;
  std::string text;
  std::string_view section;
  for (const ConfigField& field : config_fields()) {
    if (field.section != section) {
      section = field.section;
      text += fmt::format("{}### [{}]\n\n| key | type | default | |\n|---|---|---|---|\n",
                          text.empty() ? "" : "\n", section);
    }
    const std::string value =
        field.limits.required ? "required" : fmt::format("`{}`", toml_value(field, defaults));
    text += fmt::format("| `{}` | {} | {} | {} |\n", field.key,
                        type_name(field.value(defaults), field.limits), value, field.help);
  }
  text += evaluate_reference();
  text += "\n### Hugging Face keys in [model]\n\n| key | value | |\n|---|---|---|\n";
  for (const ModelKey& model_key : model_keys()) {
    text += fmt::format("| `{}` | {} | {} |\n", model_key.key,
                        describe_expected({.model_key = &model_key}), model_key.help);
  }
  text += "\n### Environment\n\n| variable | values | |\n|---|---|---|\n";
  for (const EnvironmentVariable& variable : environment_variables()) {
    text += fmt::format("| `{}` | {} | {} |\n", variable.name, variable.values, variable.help);
  }
  return text;
}

}  // namespace skein
