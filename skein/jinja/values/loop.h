// `loop` inside a for loop: index, index0, revindex, revindex0, first, last, length, previtem,
// nextitem, depth, depth0, cycle(…), changed(…).
//
// Items are tested (for … if …) when they are needed: one ahead of `last` and `nextitem`, all for
// `length`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "skein/jinja/values/value.h"

namespace skein::jinja {

struct Loop : Object {
  std::vector<Value> items;
  size_t next_item = 0;
  std::function<bool(const Value&)> test;  // empty: all pass

  int64_t index0 = -1;
  Value before, current;
  std::optional<Value> after;  // looked at ahead of its turn
  std::vector<Value> changed_values;
  bool has_changed_values = false;

  bool advance();                                         // to the next item; false at the end
  std::optional<Value> attribute(std::string_view name);  // none: there is no such attribute
  Value cycle(const Arguments& arguments) const;
  Value changed(const Arguments& arguments);

 private:
  std::optional<Value> pull();
  const std::optional<Value>& peek();
  int64_t length();
  bool at_end_ = false;
};

}  // namespace skein::jinja
