#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "skein/base/error.h"
#include "skein/base/text/nearest.h"
#include "skein/config/fields.h"
#include "skein/config/other_words.h"

namespace skein {
namespace {

using Names = std::vector<std::string_view>;

Names section_names() {
  Names names;
  for (const ConfigField& field : config_fields()) {
    if (names.empty() || names.back() != field.section) names.push_back(field.section);
  }
  return names;
}

// The keys of a section; for [model], the Hugging Face keys as well.
Names key_names(std::string_view section) {
  Names names;
  for (const ConfigField& field : config_fields()) {
    if (field.section == section) names.push_back(field.key);
  }
  if (section == "model") {
    for (const ModelKey& model_key : model_keys()) names.push_back(model_key.key);
  }
  return names;
}

// Whether `name` is the first letters of the key's words, as lr is of learning_rate.
bool abbreviates(std::string_view name, std::string_view key) {
  std::string letters;
  for (size_t i = 0; i < key.size(); ++i) {
    if (i == 0 || key[i - 1] == '_') letters += key[i];
  }
  return letters.size() > 1 && name == letters;
}

// "did you mean ...?", or the list of keys where none is near.
std::string suggest_key(std::string_view section, std::string_view key) {
  const Names own = key_names(section);
  // A key whose name says little: "name" in [optimizer].
  if (const OtherWord* word = find_other_word(fmt::format("{}_{}", section, key))) {
    return explain_other_word(*word, section);
  }
  const auto meant = std::find_if(own.begin(), own.end(),
                                  [&](std::string_view one) { return abbreviates(key, one); });
  const std::string_view nearest = meant != own.end() ? *meant : nearest_name(key, own);
  if (meant == own.end()) {
    if (const OtherWord* word = find_other_word(key)) return explain_other_word(*word, section);
  }
  if (!nearest.empty()) return fmt::format("did you mean {}?", nearest);
  std::string_view best_section, best;
  for (const std::string_view other : section_names()) {
    const Names names = key_names(other);
    const std::string_view candidate = nearest_name(key, names);
    if (candidate.empty()) continue;
    if (best.empty() || edit_distance(key, candidate) < edit_distance(key, best)) {
      best_section = other;
      best = candidate;
    }
  }
  if (!best.empty()) return fmt::format("did you mean {} in [{}]?", best, best_section);
  return fmt::format("[{}] has {}", section, fmt::join(own, ", "));
}

// Where the first of these keys, of a section that is not known, stands here; "": nowhere.
std::string known_elsewhere(std::span<const std::string> keys) {
  for (const std::string& key : keys) {
    for (const ConfigField& field : config_fields()) {
      if (field.key == key) return fmt::format("did you mean {} in [{}]?", key, field.section);
    }
    if (const OtherWord* word = find_other_word(key)) {
      return fmt::format("{}: {}", key, explain_other_word(*word, ""));
    }
  }
  return "";
}

std::string number_text(double number) {
  return number == std::floor(number) ? fmt::format("{:.0f}", number) : fmt::format("{}", number);
}

std::string describe_limits(const ConfigLimits& limits) {
  if (std::isinf(limits.minimum)) return "";
  return fmt::format(" {} {} {} {}", limits.above_minimum ? "above" : "from",
                     number_text(limits.minimum), limits.below_maximum ? "to below" : "to",
                     number_text(limits.maximum));
}

struct DescribeType {
  const ConfigLimits& limits;
  std::string operator()(const bool*) const { return "true or false, without quotes"; }
  std::string operator()(const int64_t*) const {
    return "a whole number" + describe_limits(limits);
  }
  std::string operator()(const double*) const { return "a number" + describe_limits(limits); }
  std::string operator()(const std::string*) const {
    if (limits.choices.empty()) return "a string in quotes";
    return fmt::format("one of: {}", fmt::join(limits.choices, ", "));
  }
  std::string operator()(const std::vector<DataSource>*) const {
    return "a list of tables with path, weight (above 0) and name, such as "
           "[{path = \"web\", weight = 0.7}]";
  }
};

std::string describe_kind(ModelKey::Kind kind) {
  switch (kind) {
    case ModelKey::Kind::kInteger:
      return "a whole number";
    case ModelKey::Kind::kNumber:
      return "a number";
    case ModelKey::Kind::kBool:
      return "true or false, without quotes";
    case ModelKey::Kind::kString:
      return "a string in quotes";
    case ModelKey::Kind::kTable:
      return "a table, such as {rope_type = \"linear\", factor = 2.0}";
    case ModelKey::Kind::kIntegerOrList:
      return "a whole number or a list of them";
  }
  fail(ErrorCode::kInternal, "configuration: unknown kind of model key {}", static_cast<int>(kind));
}

}  // namespace

std::string describe_found(const toml::node& node) {
  if (const auto* value = node.as_string()) return fmt::format("\"{}\" (a string)", value->get());
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  if (const auto* value = node.as_integer()) return fmt::format("{}", value->get());
  if (const auto* value = node.as_floating_point())
    return fmt::format("{} (a float)", value->get());
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  return "a date or a time";
}

std::string scalar_text(const toml::node& node) {
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  if (const auto* value = node.as_integer()) return fmt::format("{}", value->get());
  return "";
}

std::string why_no_source(const toml::node& node) {
  static constexpr std::array<std::string_view, 3> kKeys = {"path", "weight", "name"};
  if (!node.is_table()) return fmt::format("{}, not a table", describe_found(node));
  const toml::table& table = *node.as_table();
  for (const auto& [name, value] : table) {
    const std::string_view key = name.str();
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
      const std::string_view nearest = nearest_name(key, kKeys);
      return fmt::format("unknown key {}: {}", key,
                         nearest.empty() ? "expected path, weight, name"
                                         : fmt::format("did you mean {}?", nearest));
    }
    if (key == "weight") {
      const double weight = value.value_or(0.0);
      if (std::isfinite(weight) && weight > 0) continue;
      return fmt::format("weight is {}: expected a number above 0", describe_found(value));
    }
    if (!value.is_string()) {
      return fmt::format("{} is {}: expected a string in quotes", key, describe_found(value));
    }
  }
  return table["path"].value_or(std::string()).empty() ? "there is no path" : "";
}

void check_section(std::string_view section, const std::string& where,
                   std::span<const std::string> keys) {
  const Names names = section_names();
  for (const std::string_view name : names) {
    if (name == section) return;
  }
  if (section == "evaluate") {
    fail(ErrorCode::kUsage,
         "{}: evaluate is a list of tables: expected --set 'evaluate=[{{tasks = \"hellaswag\", "
         "every_steps = 1000}}]', which replaces those of the file",
         where);
  }
  const std::string_view nearest = nearest_name(section, names);
  if (!nearest.empty()) {
    fail(ErrorCode::kUsage, "{}: unknown section [{}]: did you mean [{}]?", where, section,
         nearest);
  }
  const OtherWord* word = find_other_word(section);
  const std::string of_section = word == nullptr ? "" : explain_other_word(*word, "");
  const std::string known = of_section.empty() ? known_elsewhere(keys) : of_section;
  if (!known.empty())
    fail(ErrorCode::kUsage, "{}: unknown section [{}]: {}", where, section, known);
  fail(ErrorCode::kUsage, "{}: unknown section [{}]: expected one of {}", where, section,
       fmt::join(names, ", "));
}

KnownKey find_key(std::string_view section, std::string_view key, const std::string& where) {
  const std::string name(key);
  check_section(section, where, std::span(&name, 1));
  for (const ConfigField& field : config_fields()) {
    if (field.section == section && field.key == key) return {.field = &field};
  }
  for (const ModelKey& model_key : model_keys()) {
    if (section == "model" && model_key.key == key) return {.model_key = &model_key};
  }
  fail(ErrorCode::kUsage, "{}: unknown key {} in [{}]: {}", where, key, section,
       suggest_key(section, key));
}

std::string describe_expected(const KnownKey& known) {
  if (known.model_key) return describe_kind(known.model_key->kind);
  Config probe;
  return describe_expected(known.field->value(probe), known.field->limits);
}

std::string describe_expected(const ConfigValue& value, const ConfigLimits& limits) {
  return std::visit(DescribeType{limits}, value);
}

std::span<const std::string_view> acceptable_changes() {
  static const std::vector<std::string> kKeys = [] {
    // Those of the model under which the weights keep their shapes.
    std::vector<std::string> keys = {
        "model.num_attention_heads",    "model.num_key_value_heads", "model.head_dim",
        "model.rms_norm_eps",           "model.rope_theta",          "model.rope_scaling",
        "model.max_position_embeddings"};
    for (const ConfigField& field : config_fields()) {
      const OnChange then = field.change.then;
      if (then != OnChange::kAsk && then != OnChange::kByContentAsk) continue;
      keys.push_back(fmt::format("{}.{}", field.section, field.key));
    }
    return keys;
  }();
  static const std::vector<std::string_view> kViews(kKeys.begin(), kKeys.end());
  return kViews;
}

std::vector<std::string> parse_accepted_changes(std::string_view text) {
  std::vector<std::string> keys;
  const auto known = acceptable_changes();
  constexpr std::string_view kBetween = ", \t\n";
  for (size_t begin = 0; (begin = text.find_first_not_of(kBetween, begin)) != text.npos;) {
    const size_t end = std::min(text.find_first_of(kBetween, begin), text.size());
    const std::string_view key = text.substr(begin, end - begin);
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      if (key == "optimizer.name") {
        fail(ErrorCode::kUsage,
             "[run] accept_changes names \"{}\": another optimizer keeps another state, which the "
             "checkpoint does not have. To begin a new run with its weights, name another run.dir "
             "and set model.init_from",
             key);
      }
      const std::string_view nearest = nearest_name(key, known);
      fail(ErrorCode::kUsage, "[run] accept_changes names \"{}\": {}", key,
           nearest.empty() ? fmt::format("expected any of {}", fmt::join(known, ", "))
                           : fmt::format("did you mean {}?", nearest));
    }
    keys.emplace_back(key);
    begin = end;
  }
  return keys;
}

}  // namespace skein
