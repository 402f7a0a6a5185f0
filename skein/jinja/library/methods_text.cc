// Methods of Python's str.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "skein/jinja/library/cut_text.h"
#include "skein/jinja/library/functions.h"
#include "skein/jinja/library/methods.h"
#include "skein/jinja/values/text.h"

namespace skein::jinja {
namespace {

using Method = Value (*)(const String&, const Arguments&, Budget&);

template <typename Function>
Value cased(const String& of, const Arguments& given, Budget& budget, Function function) {
  const Bound bound("a method of text", given, {});
  budget.make(static_cast<int64_t>(of.text.size()));
  return Value::string(function(of.text), of.is_markup);
}

Value stripped(const String& of, const Arguments& given, Budget& budget, Side side) {
  const Bound bound("strip", given, {"chars"});
  if (!bound.has(0)) return text_value(strip(of.text, side, nullptr), of, budget);
  const std::string characters = argument_text(*bound[0], of, "strip");
  const std::string_view view = characters;
  budget.step(static_cast<int64_t>(view.size()));
  return text_value(strip(of.text, side, &view), of, budget);
}

bool all_are(const String& of, const Arguments& given, Budget& budget, bool (*is)(char32_t)) {
  const Bound bound("a test of text", given, {});
  budget.pass_over(static_cast<int64_t>(of.text.size()));
  for (const std::string_view character : Characters(of.text)) {
    if (!is(code_of(character))) return false;
  }
  return !of.text.empty();
}

bool is_cased_so(const String& of, const Arguments& given, bool (*wanted)(char32_t),
                 bool (*other)(char32_t)) {
  const Bound bound("a test of text", given, {});
  bool found = false;
  for (const std::string_view character : Characters(of.text)) {
    const char32_t code = code_of(character);
    if (other(code)) return false;
    found |= wanted(code);
  }
  return found;
}

Value padded(const String& of, const Arguments& given, Budget& budget, const char* name,
             int where) {
  const Bound bound(name, given, {"width", "fillchar"}, 1);
  const std::string fill = bound[1] != nullptr ? argument_text(*bound[1], of, name) : " ";
  if (count_characters(fill) != 1) {
    throw Refusal(fmt::format("{}: the fill character must be one character", name));
  }
  const int64_t width = bound.integer(0, 0);
  const int64_t missing = std::max<int64_t>(width - of.characters(), 0);
  budget.make(static_cast<int64_t>(of.text.size()));
  if (missing > 0) budget.make(missing < (int64_t{1} << 40) ? missing * 4 : missing);
  // CPython puts the odd blank of center to the left where the width is odd.
  const int64_t left = where < 0 ? 0 : where > 0 ? missing : missing / 2 + (missing & width & 1);
  std::string made;
  for (int64_t i = 0; i < left; ++i) made += fill;
  made += of.text;
  for (int64_t i = left; i < missing; ++i) made += fill;
  return Value::string(std::move(made), of.is_markup);
}

Value zero_filled(const String& of, const Arguments& given, Budget& budget) {
  const Bound bound("zfill", given, {"width"}, 1);
  const int64_t missing = std::max<int64_t>(bound.integer(0, 0) - of.characters(), 0);
  budget.make(missing);
  const bool is_signed = !of.text.empty() && (of.text[0] == '-' || of.text[0] == '+');
  std::string made = of.text;
  made.insert(is_signed ? 1 : 0, static_cast<size_t>(missing), '0');
  return text_value(made, of, budget);
}

bool is_titled(const String& of) {
  bool inside = false;
  bool found = false;
  for (const std::string_view character : Characters(of.text)) {
    const char32_t code = code_of(character);
    if (is_upper(code)) {
      if (inside) return false;
      inside = found = true;
    } else if (is_lower(code)) {
      if (!inside) return false;
    } else {
      inside = false;
    }
  }
  return found;
}

bool is_alphanumeric(char32_t code) { return is_alphabetic(code) || is_digit(code); }
bool is_ascii_code(char32_t code) { return code < 0x80; }

#define SKEIN_JINJA_METHOD [](const String& s, const Arguments& a, Budget& b) -> Value

struct NamedMethod {
  std::string_view name;
  Method method;
};
constexpr NamedMethod kMethods[] = {
    {"capitalize", SKEIN_JINJA_METHOD{return cased(s, a, b, capitalize);
}  // namespace
}  // namespace skein::jinja
, {"lower", SKEIN_JINJA_METHOD{return cased(s, a, b, lower);
}
}
, {"upper", SKEIN_JINJA_METHOD{return cased(s, a, b, upper);
}
}
, {"title", SKEIN_JINJA_METHOD{return cased(s, a, b, title);
}
}
, {"swapcase", SKEIN_JINJA_METHOD{return cased(s, a, b, swap_case);
}
}
, {"strip", SKEIN_JINJA_METHOD{return stripped(s, a, b, Side::kBoth);
}
}
, {"lstrip", SKEIN_JINJA_METHOD{return stripped(s, a, b, Side::kLeft);
}
}
, {"rstrip", SKEIN_JINJA_METHOD{return stripped(s, a, b, Side::kRight);
}
}
, {"split", SKEIN_JINJA_METHOD{return split_text(s, a, b, false);
}
}
, {"rsplit", SKEIN_JINJA_METHOD{return split_text(s, a, b, true);
}
}
, {"splitlines", split_into_lines},
    {"partition", SKEIN_JINJA_METHOD{return partitioned(s, a, b, false);
}
}
, {"rpartition", SKEIN_JINJA_METHOD{return partitioned(s, a, b, true);
}
}
, {"replace", replaced}, {"join", joined}, {"count", counted},
    {"find", SKEIN_JINJA_METHOD{return Value::integer(found_at(s, a, b, "find", false));
}
}
, {"rfind", SKEIN_JINJA_METHOD{return Value::integer(found_at(s, a, b, "rfind", true));
}
}
, {"index", SKEIN_JINJA_METHOD{return index_or_refuse(found_at(s, a, b, "index", false));
}
}
, {"rindex", SKEIN_JINJA_METHOD{return index_or_refuse(found_at(s, a, b, "rindex", true));
}
}
, {"startswith",
   SKEIN_JINJA_METHOD{return Value::boolean(starts_or_ends(s, a, b, "startswith", true));
}
}
, {"endswith", SKEIN_JINJA_METHOD{return Value::boolean(starts_or_ends(s, a, b, "endswith", false));
}
}
, {"removeprefix", SKEIN_JINJA_METHOD{return without_affix(s, a, b, true);
}
}
, {"removesuffix", SKEIN_JINJA_METHOD{return without_affix(s, a, b, false);
}
}
, {"center", SKEIN_JINJA_METHOD{return padded(s, a, b, "center", 0);
}
}
, {"ljust", SKEIN_JINJA_METHOD{return padded(s, a, b, "ljust", -1);
}
}
, {"rjust", SKEIN_JINJA_METHOD{return padded(s, a, b, "rjust", 1);
}
}
, {"zfill", zero_filled},
    {"isalnum", SKEIN_JINJA_METHOD{return Value::boolean(all_are(s, a, b, is_alphanumeric));
}
}
, {"isalpha", SKEIN_JINJA_METHOD{return Value::boolean(all_are(s, a, b, is_alphabetic));
}
}
, {"isascii",
   SKEIN_JINJA_METHOD{return Value::boolean(s.text.empty() || all_are(s, a, b, is_ascii_code));
}
}
, {"isdecimal", SKEIN_JINJA_METHOD{return Value::boolean(all_are(s, a, b, is_decimal));
}
}
, {"isdigit", SKEIN_JINJA_METHOD{return Value::boolean(all_are(s, a, b, is_digit));
}
}
, {"isnumeric", SKEIN_JINJA_METHOD{return Value::boolean(all_are(s, a, b, is_digit));
}
}
, {"isspace", SKEIN_JINJA_METHOD{return Value::boolean(all_are(s, a, b, is_space));
}
}
, {"isprintable",
   SKEIN_JINJA_METHOD{return Value::boolean(s.text.empty() || all_are(s, a, b, is_printable));
}
}
, {"islower", SKEIN_JINJA_METHOD{b.pass_over(static_cast<int64_t>(s.text.size()));
return Value::boolean(is_cased_so(s, a, is_lower, is_upper));
}
}
, {"isupper", SKEIN_JINJA_METHOD{b.pass_over(static_cast<int64_t>(s.text.size()));
return Value::boolean(is_cased_so(s, a, is_upper, is_lower));
}
}
, {"istitle", SKEIN_JINJA_METHOD{b.pass_over(static_cast<int64_t>(s.text.size()));
const Bound none("istitle", a, {});
return Value::boolean(is_titled(s));
}
}
,
}
;

#undef SKEIN_JINJA_METHOD

}  // namespace

bool call_text_method(const Value& text, std::string_view name, const Arguments& arguments,
                      Budget& budget, Value& result) {
  const auto* row = std::find_if(std::begin(kMethods), std::end(kMethods),
                                 [&](const NamedMethod& known) { return known.name == name; });
  if (row == std::end(kMethods)) return false;
  result = row->method(text.as_string(), arguments, budget);
  return true;
}

}  // namespace skein::jinja
