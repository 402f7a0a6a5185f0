// A value of a template, with the meaning that Python gives it in jinja2.
//
//   kUndefined   prints as nothing, is false and empty; any other use of it is an error. If it is
//                strict, these are errors too, and only `is defined`, `default` and the like may
//                see it
//   kInteger     64 bits; kBigInteger is a number of JSON beyond them, which is only printed and
//                compared
//   kString      UTF-8; characters are code points; `is_markup`: what the filter escape gave
//   kSequence    a list, a tuple, a range, or the keys, values or items of a dict
//   kDict        in the order in which keys came; 1, 1.0 and true are one key, as in Python
//   kIterator    what filters such as map and select give: read once
//
// Values are immutable, but for a namespace and an iterator's place, and shared when copied. A
// namespace and a scope can hold each other: the renderer empties them when it ends.
// Threads: a value is of one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "skein/jinja/values/budget.h"

namespace skein::jinja {

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInteger,
  kBigInteger,
  kFloat,
  kString,
  kSequence,
  kDict,
  kIterator,
  kNamespace,
  kLoop,
  kCallable,
};
enum class Flavor : uint8_t { kList, kTuple, kRange, kKeys, kValues, kItems };

struct Object {
  virtual ~Object() = default;
};
struct String;
struct Sequence;
struct Dict;
struct Iterator;
struct Namespace;
struct Loop;
struct Callable;

class Value {
 public:
  Value() = default;  // undefined, without a name
  static Value undefined(std::string why, bool is_strict = false);
  static Value none() { return Value(Kind::kNone); }
  static Value boolean(bool value);
  static Value integer(int64_t value);
  static Value big_integer(std::string digits);
  static Value number(double value);
  static Value string(std::string text, bool is_markup = false);
  static Value list(std::vector<Value> items, Flavor flavor = Flavor::kList);
  static Value tuple(std::vector<Value> items) { return list(std::move(items), Flavor::kTuple); }
  static Value iterator(std::vector<Value> items);
  static Value of(Kind kind, std::shared_ptr<Object> object);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_undefined() const { return kind_ == Kind::kUndefined; }
  bool is_strict_undefined() const;
  bool is_string() const { return kind_ == Kind::kString; }
  // A bool is a number, as in Python.
  bool is_integer() const { return kind_ == Kind::kInteger || kind_ == Kind::kBool; }
  bool is_number() const { return is_integer() || kind_ == Kind::kFloat; }

  bool as_bool() const { return integer_ != 0; }
  int64_t as_integer() const { return integer_; }
  double as_float() const { return kind_ == Kind::kFloat ? float_ : static_cast<double>(integer_); }
  const std::string& text() const;  // of a string or a big integer
  const String& as_string() const;
  const Sequence& as_sequence() const;
  const Dict& as_dict() const;
  Iterator& as_iterator() const;
  Namespace& as_namespace() const;
  Loop& as_loop() const;
  const Callable& as_callable() const;

  const void* identity() const { return object_.get(); }
  int depth() const;  // 0, or of a container one more than what it holds

 private:
  explicit Value(Kind kind) : kind_(kind) {}

  Kind kind_ = Kind::kUndefined;
  union {
    int64_t integer_ = 0;
    double float_;
  };
  std::shared_ptr<Object> object_;
};

struct String : Object {
  std::string text;
  bool is_markup = false;
  mutable int64_t num_characters = -1;  // -1: not counted yet
  int64_t characters() const;
  bool is_ascii() const { return characters() == static_cast<int64_t>(text.size()); }
};

struct Sequence : Object {
  std::vector<Value> items;
  Flavor flavor = Flavor::kList;
  int depth = 1;
  int64_t start = 0, stop = 0, step = 1;  // of a range
};

struct Dict : Object {
  std::vector<std::pair<Value, Value>> entries;
  int depth = 1;

  const Value* find(const Value& key) const;  // throws Refusal where it cannot be a key
  const Value* find(std::string_view key) const;
  void set(Value key, Value value);

 private:
  int64_t place_of(const Value& key) const;
  std::unordered_multimap<size_t, int64_t> places_;  // by hash, of a dict that is not small
};

struct Iterator : Object {
  std::vector<Value> items;
  size_t next = 0;
  int depth = 1;
};

struct Namespace : Object {
  std::vector<std::pair<std::string, Value>> values;
  Value* find(std::string_view name);
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct Callable : Object {
  std::string name;
  std::function<Value(const Arguments&)> call;
};

// The name of a value's type in Python: "str", "dict", "NoneType".
std::string type_name(const Value& value);

// Throws Refusal, why it is undefined, where `value` is a strict undefined.
void refuse_strict(const Value& value);

bool is_true(const Value& value);
bool equal(const Value& a, const Value& b);

// Throws Refusal where `value` cannot be the key of a dict.
size_t hash_of(const Value& value);

// The items that a loop over `value` visits; an iterator is at its end afterwards. Throws Refusal.
std::vector<Value> items_of(const Value& value, Budget& budget);

// len(value). Throws Refusal where it has none.
int64_t length_of(const Value& value);

}  // namespace skein::jinja
