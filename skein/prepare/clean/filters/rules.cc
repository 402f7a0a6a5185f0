#include "skein/prepare/clean/filters/rules.h"

#include <charconv>
#include <cmath>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/text/nearest.h"

namespace skein {
namespace {

constexpr RuleInfo kRules[] = {
#define CLEANING_RULE(id, name, filter, kind, threshold, is_on, meaning) \
  {Rule::id, name, Filter::filter, RuleKind::kind, threshold, is_on, meaning},
#include "skein/prepare/clean/filters/rules.def"
#undef CLEANING_RULE
};

constexpr Filter kFilters[] = {Filter::kLanguage, Filter::kGopherRepetition, Filter::kGopherQuality,
                               Filter::kC4, Filter::kFineWeb};

}  // namespace

const char* name_of(Filter filter) {
  switch (filter) {
    case Filter::kLanguage:
      return "language";
    case Filter::kGopherRepetition:
      return "gopher_repetition";
    case Filter::kGopherQuality:
      return "gopher_quality";
    case Filter::kC4:
      return "c4";
    case Filter::kFineWeb:
      return "fineweb";
  }
  return "";
}

std::span<const RuleInfo> cleaning_rules() { return kRules; }

const RuleInfo& info(Rule rule) { return kRules[static_cast<size_t>(rule)]; }

void RuleCounts::add(const RuleCounts& other) {
  for (size_t i = 0; i < size(); ++i) {
    (*this)[i].num_taken += other[i].num_taken;
    (*this)[i].num_bytes += other[i].num_bytes;
  }
}

CleanRules::CleanRules() {
  for (const RuleInfo& rule : kRules) {
    settings_[static_cast<size_t>(rule.rule)] = {rule.is_on, rule.threshold};
  }
}

bool CleanRules::is_on(Filter filter) const {
  for (const RuleInfo& rule : kRules) {
    if (rule.filter == filter && rule.kind != RuleKind::kMeasures && is_on(rule.rule)) return true;
  }
  return false;
}

std::string CleanRules::value_text(Rule rule) const {
  if (!is_on(rule)) return "off";
  return threshold(rule) == 0 ? "on" : fmt::format("{:g}", threshold(rule));
}

void CleanRules::set(std::string_view setting) {
  const size_t equals = setting.find('=');
  if (equals == std::string_view::npos) {
    fail(ErrorCode::kUsage, "--set {}: expected RULE=NUMBER, RULE=on or RULE=off", setting);
  }
  const std::string_view name = setting.substr(0, equals), value = setting.substr(equals + 1);
  const bool is_switch = value == "on" || value == "off";
  std::vector<std::string_view> names;
  // Rules first: the one rule of `language` has its filter's name.
  for (const RuleInfo& rule : kRules) {
    names.emplace_back(rule.name);
    if (name != rule.name) continue;
    RuleSetting& its = settings_[static_cast<size_t>(rule.rule)];
    if (is_switch) {
      its.is_on = value == "on";
      return;
    }
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), its.threshold);
    if (error != std::errc() || end != value.data() + value.size() || !(its.threshold >= 0) ||
        std::isinf(its.threshold)) {
      fail(ErrorCode::kUsage, "--set {}: \"{}\" is not a number from 0 on, and neither on nor off",
           setting, value);
    }
    its.is_on = true;
    return;
  }
  for (const Filter filter : kFilters) {
    names.emplace_back(name_of(filter));
    if (name != name_of(filter)) continue;
    if (!is_switch) {
      fail(ErrorCode::kUsage, "--set {}: {} is a filter of several rules: expected on or off",
           setting, name);
    }
    for (const RuleInfo& rule : kRules) {
      // What a filter has off by default stays off when the filter is on.
      RuleSetting& its = settings_[static_cast<size_t>(rule.rule)];
      if (rule.filter == filter) its.is_on = value == "on" && rule.is_on;
    }
    return;
  }
  const std::string_view nearest = nearest_name(name, names);
  fail(ErrorCode::kUsage,
       "--set {}: there is no rule {}{}; `skein data clean --list-rules` has all", setting, name,
       nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest));
}

Json CleanRules::to_json() const {
  Json json = Json::object();
  for (const RuleInfo& rule : kRules) {
    if (is_on(rule.rule)) json[rule.name] = threshold(rule.rule);
  }
  return json;
}

}  // namespace skein
