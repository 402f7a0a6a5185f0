#include "skein/jinja/library/cut_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "skein/base/text/utf8.h"
#include "skein/jinja/library/functions.h"
#include "skein/jinja/values/operators.h"
#include "skein/jinja/values/text.h"

namespace skein::jinja {
namespace {

// str.split() of whitespace: no empty parts.
std::vector<std::string_view> split_spaces(std::string_view text, int64_t most, bool from_right) {
  std::vector<std::string_view> parts;
  const Side front = from_right ? Side::kRight : Side::kLeft;
  for (;;) {
    text = strip(text, front, nullptr);
    if (text.empty()) break;
    if (most == 0) {
      parts.push_back(text);  // what is left keeps the blanks at its far end
      break;
    }
    --most;
    size_t begin = 0;
    size_t end = text.size();
    if (from_right) {
      while (begin < end) {
        const size_t start = utf8::character_start(text, end - 1);
        if (is_space(code_of(text.substr(start, end - start)))) break;
        end = start;
      }
      parts.push_back(text.substr(end));
      text = text.substr(0, end);
    } else {
      for (const std::string_view character : Characters(text)) {
        if (is_space(code_of(character))) break;
        begin += character.size();
      }
      parts.push_back(text.substr(0, begin));
      text.remove_prefix(begin);
    }
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_by(std::string_view text, std::string_view separator,
                                       int64_t most, bool from_right) {
  std::vector<std::string_view> parts;
  while (most != 0) {
    const size_t at = from_right ? text.rfind(separator) : text.find(separator);
    if (at == std::string_view::npos) break;
    const std::string_view before = text.substr(0, at);
    const std::string_view behind = text.substr(at + separator.size());
    parts.push_back(from_right ? behind : before);
    text = from_right ? before : behind;
    --most;
  }
  parts.push_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

Value texts(const std::vector<std::string_view>& parts, const String& of, Budget& budget,
            Flavor flavor = Flavor::kList) {
  std::vector<Value> items;
  for (const std::string_view part : parts) {
    budget.make(static_cast<int64_t>(part.size() + sizeof(Value) + sizeof(String)));
    items.push_back(Value::string(std::string(part), of.is_markup));
  }
  return Value::list(std::move(items), flavor);
}

}  // namespace

Value split_text(const String& of, const Arguments& given, Budget& budget, bool from_right) {
  const Bound bound("split", given, {"sep", "maxsplit"});
  const int64_t most = bound.integer(1, -1);
  budget.pass_over(static_cast<int64_t>(of.text.size()));
  if (!bound.has(0)) return texts(split_spaces(of.text, most, from_right), of, budget);
  const std::string separator = argument_text(*bound[0], of, "split");
  if (separator.empty()) throw Refusal("empty separator");
  return texts(split_by(of.text, separator, most, from_right), of, budget);
}

Value partitioned(const String& of, const Arguments& given, Budget& budget, bool last) {
  const Bound bound("partition", given, {"sep"}, 1);
  const std::string separator = argument_text(*bound[0], of, "partition");
  if (separator.empty()) throw Refusal("empty separator");
  budget.pass_over(static_cast<int64_t>(of.text.size()));
  const std::string_view text = of.text;
  const size_t at = last ? text.rfind(separator) : text.find(separator);
  std::vector<std::string_view> parts;
  if (at == std::string_view::npos) {
    parts = last ? std::vector<std::string_view>{"", "", text}
                 : std::vector<std::string_view>{text, "", ""};
  } else {
    parts = {text.substr(0, at), separator, text.substr(at + separator.size())};
  }
  return texts(parts, of, budget, Flavor::kTuple);
}

Value joined(const String& of, const Arguments& given, Budget& budget) {
  const Bound bound("join", given, {"iterable"}, 1);
  std::string made;
  bool first = true;
  int64_t i = 0;
  for (const Value& item : items_of(*bound[0], budget)) {
    if (!item.is_string()) {
      throw Refusal(
          fmt::format("sequence item {}: expected str instance, {} found", i, type_name(item)));
    }
    ++i;
    const std::string text = argument_text(item, of, "join");
    budget.make(static_cast<int64_t>(text.size() + of.text.size()));
    if (!first) made += of.text;
    first = false;
    made += text;
  }
  return Value::string(std::move(made), of.is_markup);
}

Value split_into_lines(const String& of, const Arguments& given, Budget& budget) {
  const Bound bound("splitlines", given, {"keepends"});
  budget.pass_over(static_cast<int64_t>(of.text.size()));
  return texts(split_lines(of.text, bound.truth(0, false)), of, budget);
}

Value without_affix(const String& of, const Arguments& given, Budget& budget, bool prefix) {
  const Bound bound("removeprefix", given, {"affix"}, 1);
  const std::string affix = argument_text(*bound[0], of, "removeprefix");
  std::string_view text = of.text;
  if (!affix.empty() && text.size() >= affix.size()) {
    if (prefix && text.substr(0, affix.size()) == affix)
      text.remove_prefix(affix.size());
    else if (!prefix && text.substr(text.size() - affix.size()) == affix)
      text.remove_suffix(affix.size());
  }
  return text_value(text, of, budget);
}

}  // namespace skein::jinja
