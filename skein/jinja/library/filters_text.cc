#include <fmt/format.h>

#include <algorithm>

#include "skein/jinja/library/filter_table.h"
#include "skein/jinja/library/functions.h"
#include "skein/jinja/library/methods.h"
#include "skein/jinja/values/operators.h"
#include "skein/jinja/values/printed.h"
#include "skein/jinja/values/text.h"

namespace skein::jinja {
namespace {

bool is_markup(const Value& value) { return value.is_string() && value.as_string().is_markup; }

// soft_str(value) through a function on text; what was escaped stays so.
template <typename Function>
Value text_through(const Value& value, Budget& budget, Function function) {
  std::string made = function(printed(value, budget));
  budget.make(static_cast<int64_t>(made.size()));
  return Value::string(std::move(made), is_markup(value));
}

void no_arguments(const char* name, const Arguments& given) { const Bound bound(name, given, {}); }

}  // namespace

Value filter_capitalize(const Value& value, const Arguments& given, Budget& budget) {
  no_arguments("capitalize", given);
  return text_through(value, budget, [](const std::string& text) { return capitalize(text); });
}

Value filter_lower(const Value& value, const Arguments& given, Budget& budget) {
  no_arguments("lower", given);
  return text_through(value, budget, [](const std::string& text) { return lower(text); });
}

Value filter_upper(const Value& value, const Arguments& given, Budget& budget) {
  no_arguments("upper", given);
  return text_through(value, budget, [](const std::string& text) { return upper(text); });
}

// Words begin behind blanks, '-' and opening brackets; not where str.title has them begin.
Value filter_title(const Value& value, const Arguments& given, Budget& budget) {
  no_arguments("title", given);
  const std::string text = printed(value, budget);
  const auto parts = [](char32_t code) {
    return code == '-' || code == '(' || code == '{' || code == '[' || code == '<' ||
           is_space(code);
  };
  std::string made;
  size_t begin = 0;
  const auto finish = [&](size_t end) {
    const std::string_view item = std::string_view(text).substr(begin, end - begin);
    if (item.empty()) return;
    const size_t first = (*Characters(item).begin()).size();
    made += upper(item.substr(0, first)) + lower(item.substr(first));
    begin = end;
  };
  bool inside_separator = false;
  for (const std::string_view character : Characters(text)) {
    const bool separates = parts(code_of(character));
    if (separates != inside_separator) finish(static_cast<size_t>(character.data() - text.data()));
    inside_separator = separates;
  }
  finish(text.size());
  budget.make(static_cast<int64_t>(made.size()));
  return Value::string(std::move(made));
}

Value filter_trim(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("trim", given, {"chars"});
  const bool by_characters = bound.has(0);
  const std::string characters = by_characters ? bound.text(0, "") : "";
  const std::string_view view = characters;
  return text_through(value, budget, [&](const std::string& text) {
    return std::string(strip(text, Side::kBoth, by_characters ? &view : nullptr));
  });
}

Value filter_string(const Value& value, const Arguments& given, Budget& budget) {
  no_arguments("string", given);
  return value.is_string() ? value : Value::string(printed(value, budget));
}

Value filter_safe(const Value& value, const Arguments& given, Budget& budget) {
  no_arguments("safe", given);
  return Value::string(printed(value, budget), true);
}

Value filter_escape(const Value& value, const Arguments& given, Budget& budget) {
  if (is_markup(value)) return value;
  return filter_force_escape(value, given, budget);
}

Value filter_force_escape(const Value& value, const Arguments& given, Budget& budget) {
  no_arguments("escape", given);
  std::string made = html_escaped(printed(value, budget));
  budget.make(static_cast<int64_t>(made.size()));
  return Value::string(std::move(made), true);
}

Value filter_replace(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("replace", given, {"old", "new", "count"}, 2);
  Arguments texts;  // str() of all: what was escaped is text again
  texts.positional = {Value::string(printed(*bound[0], budget)),
                      Value::string(printed(*bound[1], budget))};
  if (bound.has(2)) texts.positional.push_back(*bound[2]);
  const Value text = Value::string(printed(value, budget));
  return call_method(text, "replace", texts, budget);
}

Value filter_format(const Value& value, const Arguments& given, Budget& budget) {
  if (!given.positional.empty() && !given.named.empty()) {
    throw Refusal("format: can't handle positional and keyword arguments at the same time");
  }
  const Value text = value.is_string() ? value : Value::string(printed(value, budget));
  if (given.named.empty())
    return binary(Operator::kModulo, text, Value::tuple(given.positional), budget);
  return binary(Operator::kModulo, text, dict_of(given), budget);
}

Value filter_join(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("join", given, {"d", "attribute"});
  const std::string between = printed(bound.value(0, Value::string("")), budget);
  std::string made;
  bool first = true;
  for (const Value& item : items_of(value, budget)) {
    const std::string text =
        printed(bound.has(1) ? value_at(item, *bound[1], budget) : item, budget);
    budget.make(static_cast<int64_t>(text.size() + between.size()));
    if (!first) made += between;
    first = false;
    made += text;
  }
  return Value::string(std::move(made));
}

Value filter_center(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("center", given, {"width"});
  const Value text = Value::string(printed(value, budget));
  return call_method(text, "center", {{Value::integer(bound.integer(0, 80))}, {}}, budget);
}

Value filter_indent(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("indent", given, {"width", "first", "blank"});
  need_defined(value);
  if (!value.is_string()) {
    throw Refusal(fmt::format("indent: expected text, found '{}'", type_name(value)));
  }
  std::string indentation;
  if (bound[0] != nullptr && bound[0]->is_string()) {
    indentation = bound[0]->text();
  } else {
    const int64_t width = std::max<int64_t>(bound.integer(0, 4), 0);
    budget.make(width);
    indentation.assign(static_cast<size_t>(width), ' ');
  }
  const bool blank = bound.truth(2, false);
  const std::string text = value.text() + "\n";
  std::string made = bound.truth(1, false) ? indentation : "";
  bool first = true;
  for (const std::string_view line : split_lines(text)) {
    if (!first) made += '\n';
    if (!first && (blank || !line.empty())) made += indentation;
    first = false;
    made += line;
    budget.make(static_cast<int64_t>(line.size() + indentation.size()));
  }
  return Value::string(std::move(made), is_markup(value));
}

Value filter_word_count(const Value& value, const Arguments& given, Budget& budget) {
  no_arguments("wordcount", given);
  int64_t count = 0;
  bool inside = false;
  const std::string text = printed(value, budget);
  for (const std::string_view character : Characters(text)) {
    const char32_t code = code_of(character);
    const bool in_word = code == '_' || is_alphabetic(code) || is_digit(code);
    if (in_word && !inside) ++count;
    inside = in_word;
  }
  return Value::integer(count);
}

Value filter_to_json(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("tojson", given, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonForm form;
  form.ensure_ascii = bound.truth(0, false);
  form.sort_keys = bound.truth(3, false);
  if (bound.has(1)) {
    form.has_indent = true;
    form.item_separator = ",";
    if (bound[1]->is_string()) {
      form.indent = bound[1]->text();
    } else {
      const int64_t width = std::max<int64_t>(bound.integer(1, 0), 0);
      budget.make(width);
      form.indent.assign(static_cast<size_t>(width), ' ');
    }
  }
  if (bound.has(2)) {
    const std::vector<Value> pair = items_of(*bound[2], budget);
    if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) {
      throw Refusal("tojson: separators are a pair of texts");
    }
    form.item_separator = pair[0].text();
    form.key_separator = pair[1].text();
  }
  return Value::string(json_text(value, form, budget));
}

}  // namespace skein::jinja
