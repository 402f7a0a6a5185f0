#include "skein/config/evaluate_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/text/name_list.h"
#include "skein/base/text/nearest.h"

namespace skein {
namespace {

using E = EvaluateConfig;

template <auto Key>
ConfigValue at(EvaluateConfig& evaluation) {
  return &(evaluation.*Key);
}

constexpr double kMaxCount = 1 << 24;

std::vector<EvaluateField> make_fields() {
  const ConfigLimits folder = {.is_path = true, .use = PlaceUse::kDisk};
  const auto between = [](double minimum, double maximum) {
    return ConfigLimits{{}, minimum, maximum};
  };
  return {
      {"tasks", at<&E::tasks>,
       "names of tasks, groups and tags of lm-evaluation-harness, patterns (`mmlu_*`) or files "
       "`.yaml`, with commas between, or a list of them; required"},
      {"every_steps", at<&E::every_steps>,
       "steps between evaluations; 0: none on the way. The end of the run evaluates in either case",
       between(0, static_cast<double>(kMaxSteps))},
      {"limit", at<&E::limit>, "documents of each task, the first ones; 0: all",
       between(0, kMaxCount)},
      {"num_fewshot", at<&E::num_fewshot>, "examples in each context; -1: as many as the task says",
       between(-1, kMaxCount)},
      {"data", at<&E::data>,
       "a folder with data sets, as `skein eval --data`; empty: Hugging Face's caches alone",
       folder},
      {"include_path", at<&E::include_path>,
       "a folder with task files, as `skein eval --include-path`; empty: `SKEIN_TASKS`, or those "
       "of an installed lm-eval",
       folder},
  };
}

const EvaluateField& find_field(std::string_view key, const std::string& where) {
  std::vector<std::string_view> keys;
  for (const EvaluateField& field : evaluate_fields()) {
    if (field.key == key) return field;
    keys.push_back(field.key);
  }
  const std::string_view nearest = nearest_name(key, keys);
  fail(ErrorCode::kUsage, "{}: unknown key {}: {}", where, key,
       nearest.empty() ? fmt::format("expected any of {}", fmt::join(keys, ", "))
                       : fmt::format("did you mean {}?", nearest));
}

// ["hellaswag", "piqa"] is "hellaswag,piqa".
bool store_list(const toml::node& node, std::string& names) {
  if (!node.is_array()) return false;
  std::vector<std::string> each;
  for (const toml::node& name : *node.as_array()) {
    if (!name.is_string()) return false;
    each.push_back(name.as_string()->get());
  }
  names = fmt::format("{}", fmt::join(each, ","));
  return true;
}

// Files among the names count from the working folder, as every path does, wherever the run
// continues.
std::string with_whole_paths(const std::string& names, const std::string& where) {
  if (names.find(kConfigDir) != std::string::npos) {
    fail(
        ErrorCode::kUsage,
        "{}: tasks has {}: expected it in include_path alone, a folder in which tasks are found by "
        "their names",
        where, kConfigDir);
  }
  std::vector<std::string> each;
  for (const std::string& name : names_of_list(names)) {
    const bool is_file =
        name.ends_with(".yaml") || name.ends_with(".jsonl") || name.ends_with(".jsonl.gz");
    each.push_back(is_file ? absolute_path(name) : name);
  }
  return fmt::format("{}", fmt::join(each, ","));
}

EvaluateConfig read_table(const toml::table& table, const std::string& where) {
  EvaluateConfig evaluation;
  for (const auto& [name, node] : table) {
    const EvaluateField& field = find_field(name.str(), where);
    const ConfigValue value = field.value(evaluation);
    const bool is_stored = store_value(node, field.limits, value) ||
                           (field.key == "tasks" && store_list(node, evaluation.tasks));
    if (!is_stored) {
      fail(ErrorCode::kUsage, "{}: {} is {}: expected {}", where, field.key, describe_found(node),
           describe_expected(value, field.limits));
    }
    if (field.limits.is_path) {
      std::string& path = *std::get<std::string*>(value);
      path = Place::parse(path, fmt::format("{}: {}", where, field.key), field.limits.use).text();
    }
  }
  evaluation.tasks = with_whole_paths(evaluation.tasks, where);
  if (evaluation.tasks.empty()) {
    fail(ErrorCode::kUsage, "{}: there are no tasks: expected names, such as \"hellaswag,piqa\"",
         where);
  }
  return evaluation;
}

}  // namespace

std::span<const EvaluateField> evaluate_fields() {
  static const std::vector<EvaluateField> fields = make_fields();
  return fields;
}

std::vector<EvaluateConfig> read_evaluate_tables(const toml::node& node, const std::string& where) {
  if (!node.is_array()) {
    fail(ErrorCode::kUsage,
         "{}: evaluate is {}: expected tables, each [[evaluate]] in a file, or --set "
         "'evaluate=[{{tasks = \"hellaswag\", every_steps = 1000}}]'",
         where, describe_found(node));
  }
  std::vector<EvaluateConfig> evaluations;
  for (const toml::node& table : *node.as_array()) {
    const std::string at =
        fmt::format("{}: [[evaluate]], number {}", where, evaluations.size() + 1);
    if (!table.is_table())
      fail(ErrorCode::kUsage, "{}: it is {}, not a table", at, describe_found(table));
    evaluations.push_back(read_table(*table.as_table(), at));
  }
  return evaluations;
}

std::string evaluations_text(const std::vector<EvaluateConfig>& evaluations) {
  std::string text;
  for (EvaluateConfig evaluation : evaluations) {
    text += "\n[[evaluate]]\n";
    for (const EvaluateField& field : evaluate_fields()) {
      text += fmt::format("{} = {}\n", field.key,
                          toml_value(field.value(evaluation), field.limits.is_path));
    }
  }
  return text;
}

std::string evaluate_reference() {
  EvaluateConfig defaults;
  std::string text = "\n### [[evaluate]]\n\n| key | type | default | |\n|---|---|---|---|\n";
  for (const EvaluateField& field : evaluate_fields()) {
    const ConfigValue value = field.value(defaults);
    const bool is_required = field.key == "tasks";
    text += fmt::format(
        "| `{}` | {} | {} | {} |\n", field.key, type_name(value, field.limits),
        is_required ? "required" : fmt::format("`{}`", toml_value(value, field.limits.is_path)),
        field.help);
  }
  return text;
}

}  // namespace skein
