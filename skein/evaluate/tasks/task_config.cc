#include "skein/evaluate/tasks/task_config.h"

#include <algorithm>

#include "skein/evaluate/yaml/yaml_value.h"

namespace skein {

std::optional<std::string> function_name(const jinja::Value& field) {
  if (!field.is(jinja::Kind::kCallable)) return std::nullopt;
  return field.as_callable().name;
}

std::optional<std::filesystem::path> function_file(const jinja::Value& field) {
  if (!field.is(jinja::Kind::kCallable)) return std::nullopt;
  const auto* const function = dynamic_cast<const YamlFunction*>(&field.as_callable());
  if (function == nullptr) return std::nullopt;
  std::string module = function->name.substr(0, function->name.rfind('.'));
  std::replace(module.begin(), module.end(), '.', '/');
  return std::filesystem::path(function->file).parent_path() / (module + ".py");
}

}  // namespace skein
