#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "skein/jinja/values/operators.h"
#include "skein/jinja/values/printed.h"
#include "skein/jinja/values/text.h"

namespace skein::jinja {
namespace {

Value no_element(const Value& value, const Value& key, Budget& budget) {
  if (key.is_string()) {
    return Value::undefined(
        fmt::format("'{} object' has no attribute {}", type_name(value), represented(key, budget)),
        budget.strict_undefined());
  }
  const bool plain = key.is_number() || key.is(Kind::kNone);
  return Value::undefined(fmt::format("{} object has no element {}", type_name(value),
                                      plain ? represented(key, budget) : type_name(key)),
                          budget.strict_undefined());
}

std::string character_at(const String& string, int64_t index) {
  if (string.is_ascii()) return string.text.substr(static_cast<size_t>(index), 1);
  const size_t begin = offset_of(string.text, index);
  const std::string_view rest = std::string_view(string.text).substr(begin);
  return std::string(rest.substr(0, offset_of(rest, 1)));
}

struct SliceRange {
  int64_t start, stop, step;
};

// slice.indices(length) of Python.
SliceRange indices(const Value& start, const Value& stop, const Value& step, int64_t length) {
  const auto missing = [](const Value& value) { return value.is(Kind::kNone); };
  const auto bound = [&](const Value& value, int64_t otherwise) {
    if (missing(value)) return otherwise;
    return integer_of(value, "slice indices must be integers or None");
  };
  SliceRange range{0, 0, bound(step, 1)};
  if (range.step == 0) throw Refusal("slice step cannot be zero");
  const bool back = range.step < 0;
  const auto clip = [&](int64_t at) {
    if (at < 0) at = std::max(at + length, back ? int64_t{-1} : int64_t{0});
    return std::min(at, back ? length - 1 : length);
  };
  range.start = missing(start) ? (back ? length - 1 : 0) : clip(bound(start, 0));
  range.stop = missing(stop) ? (back ? -1 : length) : clip(bound(stop, 0));
  return range;
}

int64_t num_items(const SliceRange& range) {
  if (range.step > 0 && range.start < range.stop) {
    return (range.stop - range.start - 1) / range.step + 1;
  }
  if (range.step < 0 && range.start > range.stop) {
    const int64_t step = range.step == std::numeric_limits<int64_t>::min()
                             ? std::numeric_limits<int64_t>::max()
                             : -range.step;
    return (range.start - range.stop - 1) / step + 1;
  }
  return 0;
}

Value slice_of_string(const String& string, const SliceRange& range, Budget& budget) {
  const int64_t count = num_items(range);
  std::string made;
  if (range.step == 1 && count > 0) {
    const size_t begin =
        string.is_ascii() ? static_cast<size_t>(range.start) : offset_of(string.text, range.start);
    const std::string_view rest = std::string_view(string.text).substr(begin);
    made = rest.substr(0, string.is_ascii() ? static_cast<size_t>(count) : offset_of(rest, count));
    budget.make(static_cast<int64_t>(made.size()));
  } else if (count > 0) {
    std::vector<std::string_view> characters;
    budget.make(string.characters() * static_cast<int64_t>(sizeof(std::string_view)));
    for (const std::string_view character : Characters(string.text)) {
      characters.push_back(character);
    }
    for (int64_t i = 0; i < count; ++i) {
      made += characters[static_cast<size_t>(range.start + i * range.step)];
    }
  }
  return Value::string(std::move(made), string.is_markup);
}

}  // namespace

Value item_of(const Value& value, const Value& key, Budget& budget) {
  need_defined(value);
  if (value.is(Kind::kDict)) {
    if (key.is(Kind::kSequence) || key.is(Kind::kDict)) {
      const bool tuple = key.is(Kind::kSequence) && key.as_sequence().flavor == Flavor::kTuple;
      if (!tuple) return no_element(value, key, budget);
    }
    const Value* found = value.as_dict().find(key);
    return found != nullptr ? *found : no_element(value, key, budget);
  }
  if (!key.is_integer()) return no_element(value, key, budget);
  const bool indexed = value.is_string() ||
                       (value.is(Kind::kSequence) && value.as_sequence().flavor <= Flavor::kRange);
  if (!indexed) return no_element(value, key, budget);
  const int64_t length = length_of(value);
  int64_t index = key.as_integer();
  if (index < 0) index += length;
  if (index < 0 || index >= length) return no_element(value, key, budget);
  if (!value.is_string()) return value.as_sequence().items[static_cast<size_t>(index)];
  if (!value.as_string().is_ascii()) budget.pass_over(index);
  return Value::string(character_at(value.as_string(), index), value.as_string().is_markup);
}

Value slice_of(const Value& value, const Value& start, const Value& stop, const Value& step,
               Budget& budget) {
  need_defined(value);
  const bool sliced = value.is_string() ||
                      (value.is(Kind::kSequence) && value.as_sequence().flavor <= Flavor::kRange);
  if (!sliced) {
    throw Refusal(fmt::format("'{}' object cannot be sliced", type_name(value)));
  }
  const SliceRange range = indices(start, stop, step, length_of(value));
  if (value.is_string()) return slice_of_string(value.as_string(), range, budget);
  const Sequence& sequence = value.as_sequence();
  std::vector<Value> items;
  const int64_t count = num_items(range);
  budget.make(count * static_cast<int64_t>(sizeof(Value)));
  for (int64_t i = 0; i < count; ++i) {
    items.push_back(sequence.items[static_cast<size_t>(range.start + i * range.step)]);
  }
  if (sequence.flavor != Flavor::kRange) return Value::list(std::move(items), sequence.flavor);
  auto made = std::make_shared<Sequence>();
  made->items = std::move(items);
  made->flavor = Flavor::kRange;
  const auto at = [&](int64_t index) {  // as far off as a slice may say: without overflow
    return static_cast<int64_t>(static_cast<uint64_t>(sequence.start) +
                                static_cast<uint64_t>(index) *
                                    static_cast<uint64_t>(sequence.step));
  };
  made->start = at(range.start);
  made->stop = at(range.stop);
  made->step = at(range.step) - sequence.start;
  return Value::of(Kind::kSequence, std::move(made));
}

}  // namespace skein::jinja
