#include "skein/jinja/library/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "skein/jinja/library/functions.h"
#include "skein/jinja/values/loop.h"
#include "skein/jinja/values/operators.h"

namespace skein::jinja {
namespace {

constexpr std::string_view kOfText =
    " capitalize casefold center count encode endswith expandtabs find format format_map "
    "index isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric "
    "isprintable isspace istitle isupper join ljust lower lstrip maketrans partition "
    "removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split "
    "splitlines startswith strip swapcase title translate upper zfill ";
constexpr std::string_view kOfDict =
    " clear copy fromkeys get items keys pop popitem setdefault update values ";
constexpr std::string_view kOfList =
    " append clear copy count extend index insert pop remove reverse sort ";
constexpr std::string_view kOfTuple = " count index ";
constexpr std::string_view kOfNumber =
    " as_integer_ratio bit_count bit_length conjugate denominator fromhex from_bytes hex "
    "imag is_integer numerator real to_bytes ";
constexpr std::string_view kOfLoop = " changed cycle ";
constexpr std::string_view kChanging =
    " append clear extend insert pop popitem remove reverse setdefault sort update ";

bool names(std::string_view list, std::string_view name) {
  if (name.empty() || name.find(' ') != std::string_view::npos) return false;
  for (size_t at = list.find(name); at != list.npos; at = list.find(name, at + 1)) {
    if (list[at - 1] == ' ' && list[at + name.size()] == ' ') return true;
  }
  return false;
}

std::string_view methods_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kString:
      return kOfText;
    case Kind::kDict:
      return kOfDict;
    case Kind::kLoop:
      return kOfLoop;
    case Kind::kBool:
    case Kind::kInteger:
    case Kind::kBigInteger:
    case Kind::kFloat:
      return kOfNumber;
    case Kind::kSequence:
      if (value.as_sequence().flavor == Flavor::kList) return kOfList;
      return value.as_sequence().flavor <= Flavor::kRange ? kOfTuple : std::string_view();
    default:
      return {};
  }
}

Value pairs_of(const Dict& dict, Flavor flavor, Budget& budget) {
  budget.make(static_cast<int64_t>(dict.entries.size() * sizeof(Value) * 4));
  std::vector<Value> items;
  for (const auto& [key, value] : dict.entries) {
    if (flavor == Flavor::kKeys) items.push_back(key);
    if (flavor == Flavor::kValues) items.push_back(value);
    if (flavor == Flavor::kItems) items.push_back(Value::tuple({key, value}));
  }
  return Value::list(std::move(items), flavor);
}

bool call_dict_method(const Value& value, std::string_view name, const Arguments& given,
                      Budget& budget, Value& result) {
  const Dict& dict = value.as_dict();
  if (name == "get") {
    const Bound bound("get", given, {"key", "default"}, 1);
    if (!given.named.empty()) throw Refusal("dict.get() takes no keyword arguments");
    const Value* found = dict.find(*bound[0]);
    result = found != nullptr ? *found : bound.value(1, Value::none());
    return true;
  }
  const bool known = name == "items" || name == "keys" || name == "values" || name == "copy";
  if (!known) return false;
  const Bound bound(name, given, {});
  if (name == "copy") {
    result = value;
  } else {
    result = pairs_of(dict,
                      name == "items"  ? Flavor::kItems
                      : name == "keys" ? Flavor::kKeys
                                       : Flavor::kValues,
                      budget);
  }
  return true;
}

bool call_list_method(const Value& value, std::string_view name, const Arguments& given,
                      Budget& budget, Value& result) {
  const auto& items = value.as_sequence().items;
  if (name == "copy") {
    result = value;
    return true;
  }
  if (name == "count") {
    const Bound bound("count", given, {"value"}, 1);
    budget.step(static_cast<int64_t>(items.size()));
    result = Value::integer(std::count_if(
        items.begin(), items.end(), [&](const Value& item) { return equal(item, *bound[0]); }));
    return true;
  }
  if (name != "index") return false;
  const Bound bound("index", given, {"value", "start", "stop"}, 1);
  const auto size = static_cast<int64_t>(items.size());
  const auto place = [&](size_t i, int64_t otherwise) {
    const int64_t at = bound.integer(i, otherwise);
    return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
  };
  const int64_t stop = place(2, size);
  for (int64_t i = place(1, 0); i < stop; ++i) {
    budget.step();
    if (equal(items[static_cast<size_t>(i)], *bound[0])) {
      result = Value::integer(i);
      return true;
    }
  }
  throw Refusal("index: the value is not in the list");
}

}  // namespace

bool has_method(const Value& value, std::string_view name) {
  return names(methods_of(value), name);
}

Value call_method(const Value& value, std::string_view name, const Arguments& arguments,
                  Budget& budget) {
  budget.step();
  Value result;
  bool done = false;
  if (value.is_string()) done = call_text_method(value, name, arguments, budget, result);
  if (value.is(Kind::kDict)) done = call_dict_method(value, name, arguments, budget, result);
  if (value.is(Kind::kSequence)) done = call_list_method(value, name, arguments, budget, result);
  if (value.is(Kind::kLoop)) {
    result =
        name == "cycle" ? value.as_loop().cycle(arguments) : value.as_loop().changed(arguments);
    done = true;
  }
  if (done) return result;
  if (names(kChanging, name)) {
    throw Refusal(
        fmt::format("'{}' would change a {}, which a template may not", name, type_name(value)));
  }
  throw Refusal(fmt::format("the method '{}' of a {} is not supported", name, type_name(value)));
}

Value method_of(const Value& value, std::string_view name, Budget& budget) {
  auto made = std::make_shared<Callable>();
  made->name = name;
  made->call = [value, title = std::string(name), &budget](const Arguments& arguments) {
    return call_method(value, title, arguments, budget);
  };
  if (value.is_number() || value.is(Kind::kBigInteger)) {  // some of these are no functions
    throw Refusal(fmt::format("'{}' of a number is not supported", name));
  }
  return Value::of(Kind::kCallable, std::move(made));
}

}  // namespace skein::jinja
