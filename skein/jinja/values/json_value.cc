#include "skein/jinja/values/json_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "skein/base/error.h"
#include "skein/base/text/python_json.h"

namespace skein::jinja {
namespace {

class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(std::vector<std::string> of_any_size) : integers(std::move(of_any_size)) {}

  const std::vector<std::string> integers;  // of PlainJson
  size_t next_integer = 0;
  Value root;
  std::string why;

  bool null() override { return put(Value::none()); }
  bool boolean(bool value) override { return put(Value::boolean(value)); }
  bool number_integer(number_integer_t value) override { return put(Value::integer(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > INT64_MAX) return put(Value::big_integer(std::to_string(value)));
    return put(Value::integer(static_cast<int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    if (text == kPlainInteger) return put(Value::big_integer(integers[next_integer++]));
    if (text == kPlainNan) return put(Value::number(std::numeric_limits<double>::quiet_NaN()));
    if (text == kPlainInfinity || text == kPlainMinusInfinity) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      return put(Value::number(text == kPlainInfinity ? kInfinity : -kInfinity));
    }
    const bool whole = text.find_first_of(".eE") == std::string::npos;
    return put(whole ? Value::big_integer(text) : Value::number(value));
  }
  bool string(string_t& value) override { return put(Value::string(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool key(string_t& value) override {
    open_.back().key = std::move(value);
    return true;
  }
  bool start_object(size_t) override { return begin(true); }
  bool start_array(size_t) override { return begin(false); }
  bool end_object() override {
    std::shared_ptr<Dict> dict = std::move(open_.back().dict);
    open_.pop_back();
    return put(Value::of(Kind::kDict, std::move(dict)));
  }
  bool end_array() override {
    std::vector<Value> items = std::move(open_.back().items);
    open_.pop_back();
    return put(Value::list(std::move(items)));
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string_view what = error.what();
    const size_t line = what.find("at line");
    why = line == std::string_view::npos ? what : what.substr(line);
    return false;
  }

 private:
  struct Open {
    std::shared_ptr<Dict> dict;  // null: a list
    std::vector<Value> items;
    std::string key;
  };

  bool begin(bool is_dict) {
    constexpr size_t kMaxDepth = 250;
    if (open_.size() >= kMaxDepth) {
      why = fmt::format("nested deeper than {} levels", kMaxDepth);
      return false;
    }
    open_.push_back({is_dict ? std::make_shared<Dict>() : nullptr, {}, {}});
    return true;
  }

  bool put(Value value) {
    if (open_.empty()) {
      root = std::move(value);
    } else if (open_.back().dict != nullptr) {
      open_.back().dict->set(Value::string(std::move(open_.back().key)), std::move(value));
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  std::vector<Open> open_;
};

}  // namespace

Value json_value(std::string_view text, const std::string& what) {
  PlainJson plain = plain_json(text, true);
  Builder builder(std::move(plain.integers));
  const bool read =
      text.find('\0') == std::string_view::npos && nlohmann::json::sax_parse(plain.text, &builder);
  if (!read) {
    fail(ErrorCode::kInvalid, "{}: not valid JSON: {}", what,
         builder.why.empty() ? "a NUL byte" : builder.why);
  }
  return std::move(builder.root);
}

}  // namespace skein::jinja
