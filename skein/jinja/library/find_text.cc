#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "skein/jinja/library/cut_text.h"
#include "skein/jinja/library/functions.h"
#include "skein/jinja/values/operators.h"
#include "skein/jinja/values/text.h"

namespace skein::jinja {
namespace {

// [begin, end) of the part that start and stop, in characters, leave; false where start lies behind
// the end.
bool part_of(const String& of, const Bound& bound, size_t first, size_t& begin, size_t& end) {
  const int64_t length = of.characters();
  const auto place = [&](size_t i, int64_t otherwise) {
    if (!bound.has(i)) return otherwise;
    const int64_t at = bound.integer(i, 0);
    return at < 0 ? std::max<int64_t>(at + length, 0) : at;
  };
  const int64_t start = place(first, 0);
  const int64_t stop = std::min(place(first + 1, length), length);
  if (start > length || start > stop) return false;
  begin = offset_of(of.text, start);
  end = offset_of(of.text, stop);
  return true;
}

}  // namespace

Value text_value(std::string_view text, const String& of, Budget& budget) {
  budget.make(static_cast<int64_t>(text.size()));
  return Value::string(std::string(text), of.is_markup);
}

// An argument of a method of what was escaped is escaped as well.
std::string argument_text(const Value& value, const String& of, std::string_view method) {
  need_defined(value);
  if (!value.is_string()) {
    throw Refusal(fmt::format("{}: expected a string, found '{}'", method, type_name(value)));
  }
  return of.is_markup && !value.as_string().is_markup ? html_escaped(value.text()) : value.text();
}

// Where `wanted` is found, in characters; -1.
int64_t found_at(const String& of, const Arguments& given, Budget& budget, const char* name,
                 bool last) {
  const Bound bound(name, given, {"sub", "start", "end"}, 1);
  const std::string wanted = argument_text(*bound[0], of, name);
  budget.pass_over(static_cast<int64_t>(of.text.size()));
  size_t begin = 0;
  size_t end = 0;
  if (!part_of(of, bound, 1, begin, end)) return -1;
  const std::string_view part = std::string_view(of.text).substr(begin, end - begin);
  const size_t at = last ? part.rfind(wanted) : part.find(wanted);
  if (at == std::string_view::npos) return -1;
  return count_characters(std::string_view(of.text).substr(0, begin + at));
}

Value index_or_refuse(int64_t at) {
  if (at < 0) throw Refusal("substring not found");
  return Value::integer(at);
}

bool starts_or_ends(const String& of, const Arguments& given, Budget& budget, const char* name,
                    bool starts) {
  const Bound bound(name, given, {"prefix", "start", "end"}, 1);
  need_defined(*bound[0]);
  size_t begin = 0;
  size_t end = 0;
  if (!part_of(of, bound, 1, begin, end)) return false;
  const std::string_view part = std::string_view(of.text).substr(begin, end - begin);
  const auto matches = [&](const Value& affix) {
    if (!affix.is_string()) {
      throw Refusal(fmt::format("{} first arg must be str or a tuple of str, not {}", name,
                                type_name(affix)));
    }
    budget.pass_over(static_cast<int64_t>(affix.text().size()));
    const std::string_view text = affix.text();
    return text.size() <= part.size() &&
           (starts ? part.substr(0, text.size()) : part.substr(part.size() - text.size())) == text;
  };
  if (bound[0]->is(Kind::kSequence) && bound[0]->as_sequence().flavor == Flavor::kTuple) {
    const auto& affixes = bound[0]->as_sequence().items;
    return std::any_of(affixes.begin(), affixes.end(), matches);
  }
  return matches(*bound[0]);
}

Value counted(const String& of, const Arguments& given, Budget& budget) {
  const Bound bound("count", given, {"sub", "start", "end"}, 1);
  const std::string wanted = argument_text(*bound[0], of, "count");
  budget.pass_over(static_cast<int64_t>(of.text.size()));
  size_t begin = 0;
  size_t end = 0;
  if (!part_of(of, bound, 1, begin, end)) return Value::integer(0);
  const std::string_view part = std::string_view(of.text).substr(begin, end - begin);
  if (wanted.empty()) return Value::integer(count_characters(part) + 1);
  int64_t count = 0;
  for (size_t at = part.find(wanted); at != part.npos; at = part.find(wanted, at + wanted.size())) {
    ++count;
  }
  return Value::integer(count);
}

Value replaced(const String& of, const Arguments& given, Budget& budget) {
  const Bound bound("replace", given, {"old", "new", "count"}, 2);
  const std::string old = argument_text(*bound[0], of, "replace");
  const std::string with = argument_text(*bound[1], of, "replace");
  int64_t left = bound.integer(2, -1);
  std::string made;
  const auto put = [&](std::string_view more) {
    budget.make(static_cast<int64_t>(more.size()));
    made += more;
  };
  if (old.empty()) {  // before each character and at the end
    for (const std::string_view character : Characters(of.text)) {
      if (left != 0) put(with), --left;
      put(character);
    }
    if (left != 0) put(with);
    return Value::string(std::move(made), of.is_markup);
  }
  size_t at = 0;
  while (left != 0) {
    const size_t found = of.text.find(old, at);
    if (found == std::string::npos) break;
    put(std::string_view(of.text).substr(at, found - at));
    put(with);
    at = found + old.size();
    --left;
  }
  put(std::string_view(of.text).substr(at));
  return Value::string(std::move(made), of.is_markup);
}

}  // namespace skein::jinja
