#include "skein/jinja/values/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "skein/jinja/values/text.h"

namespace skein::jinja {
namespace {

constexpr size_t kSmallDict = 8;

struct Reason : Object {
  std::string why;
  bool is_strict = false;
};

int deepest(const std::vector<Value>& items) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  if (depth >= kMaxNesting) {
    throw Refusal(fmt::format("a value is nested deeper than {} levels", kMaxNesting));
  }
  return depth + 1;
}

// A number without rounding: a long double holds 64 bits of an integer.
long double exact(const Value& value) {
  return value.is_integer() ? static_cast<long double>(value.as_integer())
                            : static_cast<long double>(value.as_float());
}

bool equal_sequences(const Sequence& a, const Sequence& b) {
  if (a.flavor != b.flavor) return false;
  if (a.flavor == Flavor::kValues) return &a == &b;
  if (a.flavor == Flavor::kKeys || a.flavor == Flavor::kItems) {  // sets, in Python
    return a.items.size() == b.items.size() &&
           std::all_of(a.items.begin(), a.items.end(), [&](const Value& item) {
             return std::any_of(b.items.begin(), b.items.end(),
                                [&](const Value& other) { return equal(item, other); });
           });
  }
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), equal);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
    const Value* other = b.find(entry.first);
    return other != nullptr && equal(entry.second, *other);
  });
}

}  // namespace

Value Value::of(Kind kind, std::shared_ptr<Object> object) {
  Value made(kind);
  made.object_ = std::move(object);
  return made;
}

Value Value::undefined(std::string why, bool is_strict) {
  auto reason = std::make_shared<Reason>();
  reason->why = std::move(why);
  reason->is_strict = is_strict;
  return of(Kind::kUndefined, std::move(reason));
}

Value Value::boolean(bool value) {
  Value made(Kind::kBool);
  made.integer_ = value ? 1 : 0;
  return made;
}

Value Value::integer(int64_t value) {
  Value made(Kind::kInteger);
  made.integer_ = value;
  return made;
}

Value Value::number(double value) {
  Value made(Kind::kFloat);
  made.float_ = value;
  return made;
}

Value Value::string(std::string text, bool is_markup) {
  auto made = std::make_shared<String>();
  made->text = std::move(text);
  made->is_markup = is_markup;
  return of(Kind::kString, std::move(made));
}

Value Value::big_integer(std::string digits) {
  Value made = string(std::move(digits));
  made.kind_ = Kind::kBigInteger;
  return made;
}

Value Value::list(std::vector<Value> items, Flavor flavor) {
  auto made = std::make_shared<Sequence>();
  made->depth = deepest(items);
  made->items = std::move(items);
  made->flavor = flavor;
  return of(Kind::kSequence, std::move(made));
}

Value Value::iterator(std::vector<Value> items) {
  auto made = std::make_shared<Iterator>();
  made->depth = deepest(items);
  made->items = std::move(items);
  return of(Kind::kIterator, std::move(made));
}

const std::string& Value::text() const {
  static const std::string nothing;
  if (kind_ == Kind::kUndefined) {
    return object_ == nullptr ? nothing : static_cast<const Reason&>(*object_).why;
  }
  return as_string().text;
}
bool Value::is_strict_undefined() const {
  return kind_ == Kind::kUndefined && object_ != nullptr &&
         static_cast<const Reason&>(*object_).is_strict;
}
const String& Value::as_string() const { return static_cast<const String&>(*object_); }
const Sequence& Value::as_sequence() const { return static_cast<const Sequence&>(*object_); }
const Dict& Value::as_dict() const { return static_cast<const Dict&>(*object_); }
Iterator& Value::as_iterator() const { return static_cast<Iterator&>(*object_); }
Namespace& Value::as_namespace() const { return static_cast<Namespace&>(*object_); }
const Callable& Value::as_callable() const { return static_cast<const Callable&>(*object_); }

int Value::depth() const {
  if (kind_ == Kind::kSequence) return as_sequence().depth;
  if (kind_ == Kind::kDict) return as_dict().depth;
  if (kind_ == Kind::kIterator) return as_iterator().depth;
  return 0;
}

int64_t String::characters() const {
  if (num_characters < 0) num_characters = count_characters(text);
  return num_characters;
}

Value* Namespace::find(std::string_view name) {
  for (auto& [key, value] : values) {
    if (key == name) return &value;
  }
  return nullptr;
}

int64_t Dict::place_of(const Value& key) const {
  const size_t hash = hash_of(key);
  if (entries.size() <= kSmallDict) {
    for (size_t i = 0; i < entries.size(); ++i) {
      if (equal(entries[i].first, key)) return static_cast<int64_t>(i);
    }
    return -1;
  }
  const auto [begin, end] = places_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    if (equal(entries[at->second].first, key)) return at->second;
  }
  return -1;
}

const Value* Dict::find(const Value& key) const {
  const int64_t place = place_of(key);
  return place < 0 ? nullptr : &entries[place].second;
}

const Value* Dict::find(std::string_view key) const {
  if (entries.size() <= kSmallDict) {
    for (const auto& [name, value] : entries) {
      if (name.is_string() && name.text() == key) return &value;
    }
    return nullptr;
  }
  return find(Value::string(std::string(key)));
}

void Dict::set(Value key, Value value) {
  const int below = std::max(key.depth(), value.depth());
  if (below >= kMaxNesting) {
    throw Refusal(fmt::format("a value is nested deeper than {} levels", kMaxNesting));
  }
  depth = std::max(depth, below + 1);
  if (const int64_t place = place_of(key); place >= 0) {
    entries[place].second = std::move(value);
    return;
  }
  entries.emplace_back(std::move(key), std::move(value));
  const auto add = [&](size_t i) {
    places_.emplace(hash_of(entries[i].first), static_cast<int64_t>(i));
  };
  if (entries.size() == kSmallDict + 1) {
    for (size_t i = 0; i < kSmallDict; ++i) add(i);
  }
  if (entries.size() > kSmallDict) add(entries.size() - 1);
}

std::string type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInteger:
    case Kind::kBigInteger:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return value.as_string().is_markup ? "Markup" : "str";
    case Kind::kSequence: {
      static const char* const names[] = {"list",      "tuple",       "range",
                                          "dict_keys", "dict_values", "dict_items"};
      return names[static_cast<int>(value.as_sequence().flavor)];
    }
    case Kind::kDict:
      return "dict";
    case Kind::kIterator:
      return "generator";
    case Kind::kNamespace:
      return "namespace";
    case Kind::kLoop:
      return "loop";
    case Kind::kCallable:
      return "function";
  }
  return "object";
}

void refuse_strict(const Value& value) {
  if (value.is_strict_undefined()) throw Refusal(value.text());
}

bool is_true(const Value& value) {
  refuse_strict(value);
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInteger:
      return value.as_integer() != 0;
    case Kind::kFloat:
      return value.as_float() != 0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kSequence:
      return !value.as_sequence().items.empty();
    case Kind::kDict:
      return !value.as_dict().entries.empty();
    default:
      return true;
  }
}

bool equal(const Value& a, const Value& b) {
  refuse_strict(a);
  refuse_strict(b);
  if (a.is_number() && b.is_number()) {
    return exact(a) == exact(b);
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
    case Kind::kBigInteger:
      return a.text() == b.text();
    case Kind::kSequence:
      return equal_sequences(a.as_sequence(), b.as_sequence());
    case Kind::kDict:
      return equal_dicts(a.as_dict(), b.as_dict());
    default:
      return a.identity() == b.identity();
  }
}

size_t hash_of(const Value& value) {
  refuse_strict(value);
  if (value.is_integer()) return std::hash<int64_t>()(value.as_integer());
  switch (value.kind()) {
    case Kind::kFloat: {
      const double number = value.as_float();
      if (std::abs(number) < 9e18 && number == std::floor(number)) {
        return std::hash<int64_t>()(static_cast<int64_t>(number));
      }
      return std::hash<double>()(number);
    }
    case Kind::kString:
    case Kind::kBigInteger:
      return std::hash<std::string>()(value.text());
    case Kind::kSequence: {
      const Sequence& sequence = value.as_sequence();
      if (sequence.flavor != Flavor::kTuple && sequence.flavor != Flavor::kRange) break;
      size_t hash = sequence.items.size();
      for (const Value& item : sequence.items) hash = hash * 1000003 ^ hash_of(item);
      return hash;
    }
    case Kind::kDict:
      break;
    default:
      return std::hash<int>()(static_cast<int>(value.kind()));
  }
  throw Refusal(fmt::format("unhashable type: '{}'", type_name(value)));
}

std::vector<Value> items_of(const Value& value, Budget& budget) {
  refuse_strict(value);
  switch (value.kind()) {
    case Kind::kUndefined:
      return {};
    case Kind::kString: {
      budget.make(value.as_string().characters() * static_cast<int64_t>(sizeof(Value) * 3));
      std::vector<Value> items;
      for (const std::string_view character : Characters(value.text())) {
        items.push_back(Value::string(std::string(character), value.as_string().is_markup));
      }
      return items;
    }
    case Kind::kSequence:
      budget.make(static_cast<int64_t>(value.as_sequence().items.size() * sizeof(Value)));
      return value.as_sequence().items;
    case Kind::kDict: {
      const auto& entries = value.as_dict().entries;
      budget.make(static_cast<int64_t>(entries.size() * sizeof(Value)));
      std::vector<Value> keys;
      for (const auto& entry : entries) keys.push_back(entry.first);
      return keys;
    }
    case Kind::kIterator: {
      Iterator& iterator = value.as_iterator();
      budget.make(static_cast<int64_t>(iterator.items.size() * sizeof(Value)));
      std::vector<Value> rest(iterator.items.begin() + static_cast<int64_t>(iterator.next),
                              iterator.items.end());
      iterator.next = iterator.items.size();
      return rest;
    }
    default:
      throw Refusal(fmt::format("'{}' object is not iterable", type_name(value)));
  }
}

int64_t length_of(const Value& value) {
  refuse_strict(value);
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return value.as_string().characters();
    case Kind::kSequence:
      return static_cast<int64_t>(value.as_sequence().items.size());
    case Kind::kDict:
      return static_cast<int64_t>(value.as_dict().entries.size());
    default:
      throw Refusal(fmt::format("object of type '{}' has no len()", type_name(value)));
  }
}

}  // namespace skein::jinja
