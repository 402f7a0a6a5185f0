#include "skein/jinja/library/functions.h"

#include <fmt/format.h>

#include <algorithm>

#include "skein/jinja/values/operators.h"

namespace skein::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;
constexpr int64_t kMostOfRange = int64_t{1} << 40;

}  // namespace

Bound::Bound(std::string_view function, const Arguments& given,
             std::initializer_list<std::string_view> names, size_t num_required)
    : function_(function), values_(names.size(), nullptr) {
  if (given.positional.size() > names.size()) {
    throw Refusal(fmt::format("{}: {} arguments, at most {} are expected", function,
                              given.positional.size(), names.size()));
  }
  for (size_t i = 0; i < given.positional.size(); ++i) values_[i] = &given.positional[i];
  for (const auto& [name, value] : given.named) {
    const auto* at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) {
      throw Refusal(fmt::format("{}: unexpected argument '{}'", function, name));
    }
    const Value*& place = values_[static_cast<size_t>(at - names.begin())];
    if (place != nullptr) {
      throw Refusal(fmt::format("{}: the argument '{}' is given twice", function, name));
    }
    place = &value;
  }
  for (size_t i = 0; i < num_required; ++i) {
    if (values_[i] == nullptr) {
      throw Refusal(fmt::format("{}: the argument '{}' is missing", function, names.begin()[i]));
    }
  }
}

bool Bound::has(size_t index) const {
  return values_[index] != nullptr && !values_[index]->is(Kind::kNone);
}

Value Bound::value(size_t index, Value otherwise) const {
  return values_[index] != nullptr ? *values_[index] : std::move(otherwise);
}

int64_t Bound::integer(size_t index, int64_t otherwise) const {
  if (values_[index] == nullptr) return otherwise;
  return integer_of(*values_[index], std::string(function_).c_str());
}

bool Bound::truth(size_t index, bool otherwise) const {
  return values_[index] != nullptr ? is_true(*values_[index]) : otherwise;
}

std::string Bound::text(size_t index, std::string otherwise) const {
  if (values_[index] == nullptr) return otherwise;
  need_defined(*values_[index]);
  if (!values_[index]->is_string()) {
    throw Refusal(
        fmt::format("{}: expected text, found '{}'", function_, type_name(*values_[index])));
  }
  return values_[index]->text();
}

Value range_of(const Arguments& given, Budget& budget) {
  const Bound bound("range", given, {"start", "stop", "step"}, 1);
  if (!given.named.empty()) throw Refusal("range() takes no keyword arguments");
  int64_t start = bound.integer(0, 0);
  int64_t stop = bound.integer(1, 0);
  if (bound[1] == nullptr) std::swap(start, stop);
  const int64_t step = bound.integer(2, 1);
  if (step == 0) throw Refusal("range() arg 3 must not be zero");
  for (const int64_t number : {start, stop, step}) {
    if (number > kMostOfRange || number < -kMostOfRange)
      throw Refusal("range() of numbers so large");
  }
  const int64_t distance = step > 0 ? stop - start : start - stop;
  const int64_t size = step > 0 ? step : -step;
  const int64_t count = distance > 0 ? (distance - 1) / size + 1 : 0;
  if (count > kMaxRange) {
    throw Refusal(fmt::format("range() of {} items, at most {} are allowed", count, kMaxRange));
  }
  budget.make(count * static_cast<int64_t>(sizeof(Value)));
  auto made = std::make_shared<Sequence>();
  made->flavor = Flavor::kRange;
  made->start = start, made->stop = stop, made->step = step;
  for (int64_t i = 0; i < count; ++i) made->items.push_back(Value::integer(start + i * step));
  return Value::of(Kind::kSequence, std::move(made));
}

Value dict_of(const Arguments& given) {
  auto made = std::make_shared<Dict>();
  if (given.positional.size() > 1) {
    throw Refusal(fmt::format("dict expected at most 1 argument, got {}", given.positional.size()));
  }
  if (!given.positional.empty()) {
    const Value& from = given.positional[0];
    if (from.is(Kind::kDict)) {
      for (const auto& [key, value] : from.as_dict().entries) made->set(key, value);
    } else if (from.is(Kind::kSequence)) {
      for (const Value& pair : from.as_sequence().items) {
        if (!pair.is(Kind::kSequence) || pair.as_sequence().items.size() != 2) {
          throw Refusal("dict: expected pairs of a key and a value");
        }
        made->set(pair.as_sequence().items[0], pair.as_sequence().items[1]);
      }
    } else {
      throw Refusal(fmt::format("dict: expected a mapping or pairs, found '{}'", type_name(from)));
    }
  }
  for (const auto& [name, value] : given.named) made->set(Value::string(name), value);
  return Value::of(Kind::kDict, std::move(made));
}

Value time_text(const Arguments& given, const std::optional<std::tm>& now) {
  const Bound bound("strftime_now", given, {"format"}, 1);
  const std::string format = bound.text(0, "");
  constexpr size_t kMostFormat = 200;
  if (format.size() > kMostFormat) throw Refusal("strftime_now: the format is too long");
  std::tm time{};
  if (now) {
    time = *now;
  } else {
    const std::time_t seconds = std::time(nullptr);
    localtime_r(&seconds, &time);
  }
  // A leading character, since an empty result and one that does not fit look alike.
  char text[8192];
  const size_t size = std::strftime(text, sizeof text, ("x" + format).c_str(), &time);
  if (size == 0) throw Refusal("strftime_now: the text is too long");
  return Value::string(std::string(text + 1, size - 1));
}

}  // namespace skein::jinja
