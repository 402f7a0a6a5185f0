#include "skein/evaluate/requests/task_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "skein/base/error.h"
#include "skein/evaluate/metrics/python_regex.h"
#include "skein/jinja/library/functions.h"
#include "skein/jinja/values/printed.h"

namespace skein {
namespace {

using jinja::Arguments;
using jinja::Bound;
using jinja::Value;

Value regex_replace(const Value& text, const Arguments& arguments) {
  const Bound bound("regex_replace", arguments, {"pattern", "repl", "count"}, 2);
  if (!text.is_string()) {
    throw jinja::Refusal(fmt::format("regex_replace: expected text, found '{}'", type_name(text)));
  }
  try {
    const PythonRegex expression(bound.text(0, ""));
    return Value::string(
        expression.substitute(bound.text(1, ""), text.text(), bound.integer(2, 0)));
  } catch (const Error& error) {
    throw jinja::Refusal(error.what());
  }
}

Value to_json(const Value& value, const Arguments& arguments) {
  const Bound bound("tojson", arguments, {"indent"});
  jinja::JsonForm form;
  form.ensure_ascii = true;
  form.sort_keys = true;
  if (bound.has(0)) {
    constexpr int64_t kWidest = 100;
    form.has_indent = true;
    form.item_separator.assign(1, ',');
    form.indent.assign(static_cast<size_t>(std::clamp<int64_t>(bound.integer(0, 0), 0, kWidest)),
                       ' ');
  }
  jinja::Budget budget{jinja::Limits{}};
  std::string made;
  for (const char c : json_text(value, form, budget)) {
    const bool is_special = c == '<' || c == '>' || c == '&' || c == '\'';
    made += is_special ? fmt::format("\\u{:04x}", c) : std::string(1, c);
  }
  return Value::string(std::move(made), true);
}

}  // namespace

std::shared_ptr<const jinja::FilterMap> task_filters() {
  static const auto filters = std::make_shared<const jinja::FilterMap>(
      jinja::FilterMap{{"regex_replace", regex_replace}, {"tojson", to_json}});
  return filters;
}

}  // namespace skein
