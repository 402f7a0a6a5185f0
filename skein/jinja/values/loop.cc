#include "skein/jinja/values/loop.h"

#include <algorithm>

namespace skein::jinja {

Loop& Value::as_loop() const { return static_cast<Loop&>(*object_); }

std::optional<Value> Loop::pull() {
  while (next_item < items.size()) {
    const Value& item = items[next_item++];
    if (!test || test(item)) return item;
  }
  at_end_ = true;
  return std::nullopt;
}

const std::optional<Value>& Loop::peek() {
  if (!after && !at_end_) after = pull();
  return after;
}

bool Loop::advance() {
  std::optional<Value> item = std::exchange(after, std::nullopt);
  if (!item && !at_end_) item = pull();
  if (!item) return false;
  ++index0;
  before = std::move(current);
  current = std::move(*item);
  return true;
}

int64_t Loop::length() {
  if (test) {  // what passes, from here on
    std::vector<Value> rest;
    if (after) rest.push_back(*std::exchange(after, std::nullopt));
    while (std::optional<Value> item = pull()) rest.push_back(std::move(*item));
    items.resize(static_cast<size_t>(index0 + 1));  // what was seen: its number alone counts
    next_item = items.size();
    items.insert(items.end(), rest.begin(), rest.end());
    test = nullptr;
    at_end_ = false;
  }
  return static_cast<int64_t>(items.size());
}

std::optional<Value> Loop::attribute(std::string_view name) {
  if (name == "index") return Value::integer(index0 + 1);
  if (name == "index0") return Value::integer(index0);
  if (name == "first") return Value::boolean(index0 == 0);
  if (name == "last") return Value::boolean(!peek());
  if (name == "length") return Value::integer(length());
  if (name == "revindex") return Value::integer(length() - index0);
  if (name == "revindex0") return Value::integer(length() - index0 - 1);
  if (name == "previtem") {
    return index0 == 0 ? Value::undefined("there is no previous item") : before;
  }
  if (name == "nextitem") {
    return peek() ? *peek() : Value::undefined("there is no next item");
  }
  if (name == "depth") return Value::integer(1);
  if (name == "depth0") return Value::integer(0);
  return std::nullopt;
}

Value Loop::cycle(const Arguments& arguments) const {
  if (arguments.positional.empty()) throw Refusal("no items for cycling given");
  return arguments.positional[static_cast<size_t>(index0) % arguments.positional.size()];
}

Value Loop::changed(const Arguments& arguments) {
  const bool same = has_changed_values &&
                    std::equal(changed_values.begin(), changed_values.end(),
                               arguments.positional.begin(), arguments.positional.end(), equal);
  if (same) return Value::boolean(false);
  changed_values = arguments.positional;
  has_changed_values = true;
  return Value::boolean(true);
}

}  // namespace skein::jinja
