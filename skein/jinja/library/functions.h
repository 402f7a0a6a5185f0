// The functions that every template has: range, dict, strftime_now; and how arguments are bound.
//
// Errors   Refusal
#pragma once

#include <ctime>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skein/jinja/values/budget.h"
#include "skein/jinja/values/value.h"

namespace skein::jinja {

// Arguments by the names of a function's parameters, as Python binds them.
class Bound {
 public:
  Bound(std::string_view function, const Arguments& given,
        std::initializer_list<std::string_view> names, size_t num_required = 0);

  // Null where the argument was not given.
  const Value* operator[](size_t index) const { return values_[index]; }
  Value value(size_t index, Value otherwise) const;
  int64_t integer(size_t index, int64_t otherwise) const;
  bool truth(size_t index, bool otherwise) const;
  std::string text(size_t index, std::string otherwise) const;  // must be a string
  bool has(size_t index) const;                                 // given, and not none

 private:
  std::string_view function_;
  std::vector<const Value*> values_;
};

// At most 100,000 items, as jinja2's sandbox.
Value range_of(const Arguments& given, Budget& budget);
Value dict_of(const Arguments& given);
Value time_text(const Arguments& given, const std::optional<std::tm>& now);

}  // namespace skein::jinja
