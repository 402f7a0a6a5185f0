// The tests of jinja2: value is name(arguments).
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "skein/jinja/library/filters.h"
#include "skein/jinja/library/functions.h"
#include "skein/jinja/values/operators.h"
#include "skein/jinja/values/printed.h"
#include "skein/jinja/values/text.h"

namespace skein::jinja {
namespace {

using Test = bool (*)(const Value&, const Value&, Budget&);

struct NamedTest {
  std::string_view name;
  size_t num_arguments;  // behind the value
  Test test;
};

bool leaves(const Value& value, const Value& by, int64_t rest, Budget& budget) {
  return equal(binary(Operator::kModulo, value, by, budget), Value::integer(rest));
}

template <Operator op>
bool compares(const Value& a, const Value& b, Budget& budget) {
  return compare(op, a, b, budget);
}

bool is_case(const Value& value, Budget& budget, bool (*wanted)(char32_t),
             bool (*other)(char32_t)) {
  bool found = false;
  const std::string text = printed(value, budget);
  for (const std::string_view character : Characters(text)) {
    const char32_t code = code_of(character);
    if (other(code)) return false;
    found |= wanted(code);
  }
  return found;
}

bool is_same(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is(Kind::kNone)) return true;
  if (a.is(Kind::kBool)) return a.as_bool() == b.as_bool();
  if (a.identity() != nullptr && a.identity() == b.identity()) return true;
  if (a.is(Kind::kSequence) || a.is(Kind::kDict) || a.is(Kind::kNamespace)) return false;
  throw Refusal("sameas of numbers and texts is not supported: Python does not promise an answer");
}

constexpr NamedTest kTests[] = {
    {"odd", 0,
     [](const Value& v, const Value&, Budget& b) { return leaves(v, Value::integer(2), 1, b); }},
    {"even", 0,
     [](const Value& v, const Value&, Budget& b) { return leaves(v, Value::integer(2), 0, b); }},
    {"divisibleby", 1,
     [](const Value& v, const Value& by, Budget& b) { return leaves(v, by, 0, b); }},
    {"defined", 0, [](const Value& v, const Value&, Budget&) { return !v.is_undefined(); }},
    {"undefined", 0, [](const Value& v, const Value&, Budget&) { return v.is_undefined(); }},
    {"filter", 0,
     [](const Value& v, const Value&, Budget&) {
       return v.is_string() && why_no_filter(v.text()).empty();
     }},
    {"test", 0,
     [](const Value& v, const Value&, Budget&) {
       return v.is_string() && why_no_test(v.text()).empty();
     }},
    {"none", 0, [](const Value& v, const Value&, Budget&) { return v.is(Kind::kNone); }},
    {"boolean", 0, [](const Value& v, const Value&, Budget&) { return v.is(Kind::kBool); }},
    {"false", 0,
     [](const Value& v, const Value&, Budget&) { return v.is(Kind::kBool) && !v.as_bool(); }},
    {"true", 0,
     [](const Value& v, const Value&, Budget&) { return v.is(Kind::kBool) && v.as_bool(); }},
    {"integer", 0,
     [](const Value& v, const Value&, Budget&) {
       return v.is(Kind::kInteger) || v.is(Kind::kBigInteger);
     }},
    {"float", 0, [](const Value& v, const Value&, Budget&) { return v.is(Kind::kFloat); }},
    {"lower", 0,
     [](const Value& v, const Value&, Budget& b) { return is_case(v, b, is_lower, is_upper); }},
    {"upper", 0,
     [](const Value& v, const Value&, Budget& b) { return is_case(v, b, is_upper, is_lower); }},
    {"string", 0, [](const Value& v, const Value&, Budget&) { return v.is_string(); }},
    {"mapping", 0, [](const Value& v, const Value&, Budget&) { return v.is(Kind::kDict); }},
    {"number", 0,
     [](const Value& v, const Value&, Budget&) {
       return v.is_number() || v.is(Kind::kBigInteger);
     }},
    {"sequence", 0,
     [](const Value& v, const Value&, Budget&) {
       return (v.is_undefined() && !v.is_strict_undefined()) || v.is_string() ||
              v.is(Kind::kDict) ||
              (v.is(Kind::kSequence) && v.as_sequence().flavor <= Flavor::kRange);
     }},
    {"iterable", 0,
     [](const Value& v, const Value&, Budget&) {
       refuse_strict(v);
       return v.is_undefined() || v.is_string() || v.is(Kind::kDict) || v.is(Kind::kSequence) ||
              v.is(Kind::kIterator) || v.is(Kind::kLoop);
     }},
    {"callable", 0,
     [](const Value& v, const Value&, Budget&) {
       return v.is(Kind::kCallable) || v.is_undefined();
     }},
    {"sameas", 1, [](const Value& v, const Value& other, Budget&) { return is_same(v, other); }},
    {"escaped", 0,
     [](const Value& v, const Value&, Budget&) {
       return v.is_string() && v.as_string().is_markup;
     }},
    {"in", 1, [](const Value& v, const Value& seq, Budget& b) { return contains(seq, v, b); }},
    {"==", 1, compares<Operator::kEqual>},
    {"eq", 1, compares<Operator::kEqual>},
    {"equalto", 1, compares<Operator::kEqual>},
    {"!=", 1, compares<Operator::kNotEqual>},
    {"ne", 1, compares<Operator::kNotEqual>},
    {">", 1, compares<Operator::kGreater>},
    {"gt", 1, compares<Operator::kGreater>},
    {"greaterthan", 1, compares<Operator::kGreater>},
    {">=", 1, compares<Operator::kGreaterEqual>},
    {"ge", 1, compares<Operator::kGreaterEqual>},
    {"<", 1, compares<Operator::kLess>},
    {"lt", 1, compares<Operator::kLess>},
    {"lessthan", 1, compares<Operator::kLess>},
    {"<=", 1, compares<Operator::kLessEqual>},
    {"le", 1, compares<Operator::kLessEqual>},
};

const NamedTest* row_of(std::string_view name) {
  const auto* found = std::find_if(std::begin(kTests), std::end(kTests),
                                   [&](const NamedTest& row) { return row.name == name; });
  return found == std::end(kTests) ? nullptr : found;
}

}  // namespace

std::string why_no_test(std::string_view name) {
  return row_of(name) != nullptr ? "" : fmt::format("there is no test '{}'", name);
}

bool passes_test(std::string_view name, const Value& value, const Arguments& arguments,
                 Budget& budget) {
  budget.step();
  const NamedTest* row = row_of(name);
  if (row == nullptr) throw Refusal(why_no_test(name));
  if (!arguments.named.empty() || arguments.positional.size() != row->num_arguments) {
    throw Refusal(fmt::format("the test '{}' takes {} argument{}, found {}", name,
                              row->num_arguments, row->num_arguments == 1 ? "" : "s",
                              arguments.positional.size() + arguments.named.size()));
  }
  static const Value nothing{};
  return row->test(value, row->num_arguments > 0 ? arguments.positional[0] : nothing, budget);
}

}  // namespace skein::jinja
