#include "skein/jinja/library/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "skein/jinja/library/filter_table.h"

namespace skein::jinja {
namespace {

struct NamedFilter {
  std::string_view name;
  Filter filter;
};
constexpr NamedFilter kFilters[] = {
    {"abs", filter_abs},
    {"attr", filter_attr},
    {"batch", filter_batch},
    {"capitalize", filter_capitalize},
    {"center", filter_center},
    {"count", filter_length},
    {"d", filter_default},
    {"default", filter_default},
    {"dictsort", filter_dict_sort},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"first", filter_first},
    {"float", filter_float},
    {"forceescape", filter_force_escape},
    {"format", filter_format},
    {"indent", filter_indent},
    {"int", filter_int},
    {"items", filter_items},
    {"join", filter_join},
    {"last", filter_last},
    {"length", filter_length},
    {"list", filter_list},
    {"lower", filter_lower},
    {"map", filter_map},
    {"max", filter_max},
    {"min", filter_min},
    {"reject", filter_reject},
    {"rejectattr", filter_reject_attr},
    {"replace", filter_replace},
    {"reverse", filter_reverse},
    {"round", filter_round},
    {"safe", filter_safe},
    {"select", filter_select},
    {"selectattr", filter_select_attr},
    {"slice", filter_slice},
    {"sort", filter_sort},
    {"string", filter_string},
    {"sum", filter_sum},
    {"title", filter_title},
    {"tojson", filter_to_json},
    {"trim", filter_trim},
    {"unique", filter_unique},
    {"upper", filter_upper},
    {"wordcount", filter_word_count},
};

constexpr std::array<std::string_view, 10> kNotHere = {
    "filesizeformat", "groupby",   "pprint", "random",   "striptags",
    "truncate",       "urlencode", "urlize", "wordwrap", "xmlattr"};

const NamedFilter* row_of(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFilters), std::end(kFilters),
                                   [&](const NamedFilter& row) { return row.name == name; });
  return found == std::end(kFilters) ? nullptr : found;
}

}  // namespace

std::string why_no_filter(std::string_view name) {
  if (row_of(name) != nullptr) return "";
  if (std::find(kNotHere.begin(), kNotHere.end(), name) != kNotHere.end()) {
    return fmt::format("the filter '{}' is not supported", name);
  }
  return fmt::format("there is no filter '{}'", name);
}

Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments,
                   Budget& budget) {
  budget.step();
  const NamedFilter* row = row_of(name);
  if (row == nullptr) throw Refusal(why_no_filter(name));
  return row->filter(value, arguments, budget);
}

}  // namespace skein::jinja
