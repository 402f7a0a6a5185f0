#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "skein/jinja/library/filter_table.h"
#include "skein/jinja/library/filters.h"
#include "skein/jinja/library/functions.h"
#include "skein/jinja/library/methods.h"
#include "skein/jinja/values/operators.h"
#include "skein/jinja/values/printed.h"
#include "skein/jinja/values/text.h"

namespace skein::jinja {
namespace {

// environment.getitem: an item, else a method of that name.
Value item_or_method(const Value& value, const Value& key, Budget& budget) {
  need_defined(value);
  if (!key.is_string()) return item_of(value, key, budget);
  if (value.is(Kind::kDict)) {
    if (const Value* found = value.as_dict().find(key)) return *found;
  }
  if (value.is(Kind::kNamespace)) {
    if (const Value* found = value.as_namespace().find(key.text())) return *found;
  }
  if (has_method(value, key.text())) return method_of(value, key.text(), budget);
  return item_of(value, key, budget);
}

std::vector<Value> path_parts(const Value& path) {
  if (path.is(Kind::kNone)) return {};
  if (!path.is_string()) return {path};
  std::vector<Value> parts;
  std::string_view rest = path.text();
  for (;;) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool digits =
        !part.empty() && part.size() < 18 &&
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    parts.push_back(digits ? Value::integer(std::stoll(std::string(part)))
                           : Value::string(std::string(part)));
    if (dot == std::string_view::npos) return parts;
    rest.remove_prefix(dot + 1);
  }
}

Value at_parts(Value value, const std::vector<Value>& parts, Budget& budget) {
  for (const Value& part : parts) value = item_or_method(value, part, budget);
  return value;
}

// sorted(items, key, reverse): stable, also backwards.
template <typename Key>
std::vector<Value> sorted(const std::vector<Value>& items, bool reverse, Budget& budget, Key key) {
  std::vector<std::pair<Value, size_t>> keys;
  for (size_t i = 0; i < items.size(); ++i) keys.emplace_back(key(items[i]), i);
  std::stable_sort(keys.begin(), keys.end(), [&](const auto& a, const auto& b) {
    budget.step();
    return reverse ? less(b.first, a.first) : less(a.first, b.first);
  });
  std::vector<Value> made;
  for (const auto& [unused, i] : keys) made.push_back(items[i]);
  return made;
}

Value extreme(const char* name, bool largest, const Value& value, const Arguments& given,
              Budget& budget) {
  const Bound bound(name, given, {"case_sensitive", "attribute"});
  const std::vector<Value> items = items_of(value, budget);
  if (items.empty())
    return Value::undefined("No aggregated item, sequence was empty.", budget.strict_undefined());
  const auto key = [&](const Value& item) {
    Value at = bound.has(1) ? value_at(item, *bound[1], budget) : item;
    return bound.truth(0, false) ? at : without_case(at, budget);
  };
  size_t best = 0;
  Value best_key = key(items[0]);
  for (size_t i = 1; i < items.size(); ++i) {
    Value other = key(items[i]);
    if (largest ? less(best_key, other) : less(other, best_key)) {
      best = i;
      best_key = std::move(other);
    }
  }
  return items[best];
}

Value chosen(const Value& value, const Arguments& given, Budget& budget, bool by_attribute,
             bool wanted) {
  if (!is_true(value)) return Value::iterator({});
  std::vector<Value> path;
  size_t used = 0;
  if (by_attribute) {
    if (given.positional.empty()) throw Refusal("Missing parameter for attribute name");
    path = path_parts(given.positional[used++]);
  }
  std::string test;
  Arguments rest;
  const bool has_test = used < given.positional.size();
  if (has_test) {
    if (!given.positional[used].is_string()) throw Refusal("the name of a test must be a string");
    test = given.positional[used++].text();
    if (const std::string why = why_no_test(test); !why.empty()) throw Refusal(why);
    rest.positional.assign(given.positional.begin() + static_cast<int64_t>(used),
                           given.positional.end());
    rest.named = given.named;
  }
  std::vector<Value> made;
  for (const Value& item : items_of(value, budget)) {
    const Value at = at_parts(item, path, budget);
    const bool passes = has_test ? passes_test(test, at, rest, budget) : is_true(at);
    if (passes == wanted) made.push_back(item);
  }
  return Value::iterator(std::move(made));
}

}  // namespace

Value value_at(const Value& value, const Value& path, Budget& budget) {
  return at_parts(value, path_parts(path), budget);
}

Value without_case(const Value& value, Budget& budget) {
  if (!value.is_string()) return value;
  budget.make(static_cast<int64_t>(value.text().size()));
  return Value::string(lower(value.text()));
}

Value filter_attr(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("attr", given, {"name"}, 1);
  const std::string name = bound.text(0, "");
  need_defined(value);
  if (value.is(Kind::kNamespace)) {
    if (const Value* found = value.as_namespace().find(name)) return *found;
  }
  if (has_method(value, name)) return method_of(value, name, budget);
  return Value::undefined(fmt::format("'{} object' has no attribute '{}'", type_name(value), name),
                          budget.strict_undefined());
}

Value filter_length(const Value& value, const Arguments& given, Budget&) {
  const Bound bound("length", given, {});
  return Value::integer(length_of(value));
}

Value filter_list(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("list", given, {});
  return Value::list(items_of(value, budget));
}

Value filter_first(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("first", given, {});
  if (value.is(Kind::kIterator)) {
    Iterator& iterator = value.as_iterator();
    if (iterator.next < iterator.items.size()) return iterator.items[iterator.next++];
  } else if (value.is_string() && !value.text().empty()) {
    return item_of(value, Value::integer(0), budget);
  } else if (value.is(Kind::kSequence) && !value.as_sequence().items.empty()) {
    return value.as_sequence().items.front();
  } else {
    const std::vector<Value> items = items_of(value, budget);
    if (!items.empty()) return items.front();
  }
  return Value::undefined("No first item, sequence was empty.", budget.strict_undefined());
}

Value filter_last(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("last", given, {});
  if (value.is(Kind::kIterator)) throw Refusal("'generator' object is not reversible");
  if (value.is_string() && !value.text().empty()) return item_of(value, Value::integer(-1), budget);
  const std::vector<Value> items = items_of(value, budget);
  if (items.empty())
    return Value::undefined("No last item, sequence was empty.", budget.strict_undefined());
  return items.back();
}

Value filter_reverse(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("reverse", given, {});
  if (value.is_string()) {
    return slice_of(value, Value::none(), Value::none(), Value::integer(-1), budget);
  }
  std::vector<Value> items = items_of(value, budget);
  std::reverse(items.begin(), items.end());
  // reversed() of what has an order; of a generator and of nothing, a list.
  if (value.is(Kind::kIterator) || value.is_undefined()) return Value::list(std::move(items));
  return Value::iterator(std::move(items));
}

Value filter_items(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("items", given, {});
  if (value.is_undefined()) return Value::iterator({});
  if (!value.is(Kind::kDict)) throw Refusal("Can only get item pairs from a mapping.");
  return Value::iterator(items_of(call_method(value, "items", {}, budget), budget));
}

Value filter_dict_sort(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("dictsort", given, {"case_sensitive", "by", "reverse"});
  const std::string by = bound.text(1, "key");
  if (by != "key" && by != "value")
    throw Refusal("You can only sort by either \"key\" or \"value\"");
  need_defined(value);
  if (!value.is(Kind::kDict)) {
    throw Refusal(fmt::format("dictsort: expected a dict, found '{}'", type_name(value)));
  }
  const std::vector<Value> pairs = items_of(call_method(value, "items", {}, budget), budget);
  const size_t which = by == "key" ? 0 : 1;
  return Value::list(sorted(pairs, bound.truth(2, false), budget, [&](const Value& pair) {
    const Value& at = pair.as_sequence().items[which];
    return bound.truth(0, false) ? at : without_case(at, budget);
  }));
}

Value filter_sort(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("sort", given, {"reverse", "case_sensitive", "attribute"});
  std::vector<std::vector<Value>> paths;
  if (bound.has(2) && bound[2]->is_string()) {
    std::string_view rest = bound[2]->text();
    for (;;) {
      const size_t comma = rest.find(',');
      paths.push_back(path_parts(Value::string(std::string(rest.substr(0, comma)))));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  } else {
    paths.push_back(path_parts(bound.value(2, Value::none())));
  }
  const bool case_sensitive = bound.truth(1, false);
  const std::vector<Value> items = items_of(value, budget);
  return Value::list(sorted(items, bound.truth(0, false), budget, [&](const Value& item) {
    std::vector<Value> keys;
    for (const auto& path : paths) {
      Value at = at_parts(item, path, budget);
      keys.push_back(case_sensitive ? at : without_case(at, budget));
    }
    return Value::list(std::move(keys));
  }));
}

Value filter_unique(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("unique", given, {"case_sensitive", "attribute"});
  Dict seen;
  std::vector<Value> made;
  for (const Value& item : items_of(value, budget)) {
    Value key = bound.has(1) ? value_at(item, *bound[1], budget) : item;
    if (!bound.truth(0, false)) key = without_case(key, budget);
    budget.step();
    if (seen.find(key) != nullptr) continue;
    seen.set(std::move(key), Value::none());
    made.push_back(item);
  }
  return Value::iterator(std::move(made));
}

Value filter_min(const Value& value, const Arguments& given, Budget& budget) {
  return extreme("min", false, value, given, budget);
}

Value filter_max(const Value& value, const Arguments& given, Budget& budget) {
  return extreme("max", true, value, given, budget);
}

Value filter_map(const Value& value, const Arguments& given, Budget& budget) {
  std::vector<Value> made;
  if (given.positional.empty() && !given.named.empty()) {
    const Bound bound("map", given, {"attribute", "default"});
    if (bound[0] == nullptr) throw Refusal("map requires a filter argument");
    const std::vector<Value> path = path_parts(*bound[0]);
    for (Value item : items_of(value, budget)) {
      for (const Value& part : path) {
        item = item_or_method(item, part, budget);
        if (bound.has(1) && item.is_undefined()) item = *bound[1];
      }
      made.push_back(std::move(item));
    }
    return Value::iterator(std::move(made));
  }
  if (given.positional.empty()) throw Refusal("map requires a filter argument");
  if (!given.positional[0].is_string()) throw Refusal("the name of a filter must be a string");
  const std::string name = given.positional[0].text();
  if (const std::string why = why_no_filter(name); !why.empty()) throw Refusal(why);
  const Arguments rest{{given.positional.begin() + 1, given.positional.end()}, given.named};
  if (name == "map") throw Refusal("map of map is not supported");
  for (const Value& item : items_of(value, budget)) {
    made.push_back(apply_filter(name, item, rest, budget));
  }
  return Value::iterator(std::move(made));
}

Value filter_select(const Value& value, const Arguments& given, Budget& budget) {
  return chosen(value, given, budget, false, true);
}
Value filter_reject(const Value& value, const Arguments& given, Budget& budget) {
  return chosen(value, given, budget, false, false);
}
Value filter_select_attr(const Value& value, const Arguments& given, Budget& budget) {
  return chosen(value, given, budget, true, true);
}
Value filter_reject_attr(const Value& value, const Arguments& given, Budget& budget) {
  return chosen(value, given, budget, true, false);
}

Value filter_batch(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("batch", given, {"linecount", "fill_with"}, 1);
  const int64_t size = bound.integer(0, 1);
  std::vector<Value> made;
  std::vector<Value> row;
  for (const Value& item : items_of(value, budget)) {
    if (static_cast<int64_t>(row.size()) == size) {
      made.push_back(Value::list(std::exchange(row, {})));
    }
    row.push_back(item);
  }
  if (!row.empty()) {
    if (bound.has(1) && static_cast<int64_t>(row.size()) < size) {
      budget.make((size - static_cast<int64_t>(row.size())) * static_cast<int64_t>(sizeof(Value)));
      row.resize(static_cast<size_t>(size), *bound[1]);
    }
    made.push_back(Value::list(std::move(row)));
  }
  return Value::iterator(std::move(made));
}

Value filter_slice(const Value& value, const Arguments& given, Budget& budget) {
  const Bound bound("slice", given, {"slices", "fill_with"}, 1);
  const int64_t count = bound.integer(0, 1);
  if (count <= 0) throw Refusal("slice: expected at least one slice");
  const std::vector<Value> items = items_of(value, budget);
  budget.make(count * static_cast<int64_t>(sizeof(Value)));
  const auto length = static_cast<int64_t>(items.size());
  const int64_t per_slice = length / count;
  const int64_t longer = length % count;
  std::vector<Value> made;
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t end = at + per_slice + (i < longer ? 1 : 0);
    std::vector<Value> part(items.begin() + at, items.begin() + end);
    at = end;
    if (bound.has(1) && i >= longer) part.push_back(*bound[1]);
    made.push_back(Value::list(std::move(part)));
  }
  return Value::iterator(std::move(made));
}

}  // namespace skein::jinja
