#include "skein/evaluate/metrics/filter_steps.h"

#include <algorithm>
#include <memory>

#include "skein/base/error.h"
#include "skein/jinja/values/text.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

constexpr std::string_view kDefaultPattern = R"(#### (\-?[0-9\.\,]+))";

std::string stripped(std::string_view text) {
  return std::string(jinja::strip(text, jinja::Side::kBoth, nullptr));
}

}  // namespace

std::string selected_match(std::span<const std::vector<std::string>> matches, int64_t select,
                           bool& is_all_empty) {
  const int64_t count = std::ssize(matches), at = select < 0 ? select + count : select;
  if (at < 0 || at >= count) {
    fail(ErrorCode::kInvalid, "group_select is {}, and the expression matches {} times", select,
         count);
  }
  const std::vector<std::string>& groups = matches[static_cast<size_t>(at)];
  is_all_empty = false;
  if (groups.size() == 1) return groups[0];
  for (const std::string& group : groups) {
    if (!group.empty()) return group;
  }
  is_all_empty = true;
  return "";
}

FilterStep regex_step(const Options& options) {
  options.allow({"regex_pattern", "group_select", "fallback"});
  const auto regex = std::make_shared<PythonRegex>(options.text("regex_pattern", kDefaultPattern));
  const int64_t select = options.integer("group_select", 0);
  const Value* const found = options.find("fallback");
  const Value fallback = found == nullptr ? Value::string("[invalid]") : *found;
  return [regex, select, fallback](const Value& answers, const FilteredDocument&) {
    std::vector<Value> filtered;
    for (const Value& answer : answers_of(answers)) {
      const auto matches = regex->find_all(answer.is_string() ? answer.text() : "");
      if (matches.empty()) {
        filtered.push_back(fallback);
        continue;
      }
      bool is_all_empty = false;
      std::string match = selected_match(matches, select, is_all_empty);
      if (is_all_empty) {
        if (!fallback.is_string()) {
          fail(ErrorCode::kInvalid,
               "all groups of a match are empty, and fallback is a {}: "
               "expected a text",
               jinja::type_name(fallback));
        }
        match = fallback.text();
      }
      filtered.push_back(Value::string(stripped(match)));
    }
    return Value::list(std::move(filtered));
  };
}

FilterStep regex_pos_step(const Options& options) {
  options.allow({"regex_pattern", "group_select", "fallback"});
  const PythonRegex unused(options.text("regex_pattern", R"(\['(.*?)'\])"));  // as in lm_eval
  const auto pairs = std::make_shared<PythonRegex>(R"(\('([^']*)', '([^']*)'\))");
  const Value* const found = options.find("fallback");
  const Value fallback =
      found == nullptr || found->is(Kind::kNone) ? Value::list({Value::string("invalid")}) : *found;
  return [pairs, fallback](const Value& answers, const FilteredDocument&) {
    std::vector<Value> filtered;
    for (const Value& answer : answers_of(answers)) {
      if (!answer.is_string()) {
        fail(ErrorCode::kInvalid, "an answer is a {}: expected a text", jinja::type_name(answer));
      }
      std::vector<Value> tags;
      for (const std::vector<std::string>& pair : pairs->find_all(answer.text())) {
        tags.push_back(Value::string(pair[1]));
      }
      filtered.push_back(tags.empty() ? fallback : Value::list(std::move(tags)));
    }
    return Value::list(std::move(filtered));
  };
}

FilterStep map_step(const Options& options) {
  options.allow({"mapping_dict", "default_value"});
  const Value* const mapping = options.find("mapping_dict");
  const bool has_mapping = mapping != nullptr && !mapping->is(Kind::kNone);
  if (has_mapping && !mapping->is(Kind::kDict)) {
    fail(ErrorCode::kUsage, "the option mapping_dict is a {}: expected a dict",
         jinja::type_name(*mapping));
  }
  const Value dict = has_mapping ? *mapping : Value();
  const Value* const found = options.find("default_value");
  const Value otherwise = found == nullptr ? Value::none() : *found;
  return [dict, otherwise](const Value& answers, const FilteredDocument&) {
    std::vector<Value> mapped;
    for (const Value& answer : answers_of(answers)) {
      jinja::hash_of(answer);  // refuses a list
      const Value* const value = dict.is(Kind::kDict) ? dict.as_dict().find(answer) : nullptr;
      mapped.push_back(value == nullptr ? otherwise : *value);
    }
    return Value::list(std::move(mapped));
  };
}

FilterStep take_first_k_step(const Options& options) {
  options.allow({"k"});
  if (options.find("k") == nullptr) fail(ErrorCode::kUsage, "it has no k: expected a number");
  const int64_t k = options.integer("k", 0);
  return [k](const Value& answers, const FilteredDocument& of) {
    const std::vector<Value> all = answers_of(answers);
    if (of.index == 0 && std::ssize(all) < k) {
      fail(ErrorCode::kInvalid, "k is {}, and there are {} answers: set `repeats` of the task", k,
           all.size());
    }
    const int64_t count = std::clamp<int64_t>(k < 0 ? k + std::ssize(all) : k, 0, std::ssize(all));
    if (answers.is_string()) {
      std::string text;
      for (int64_t i = 0; i < count; ++i) text += all[static_cast<size_t>(i)].text();
      return Value::string(std::move(text));
    }
    return Value::list({all.begin(), all.begin() + count});
  };
}

}  // namespace skein
