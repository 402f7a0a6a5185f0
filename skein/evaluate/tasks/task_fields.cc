#include "skein/evaluate/tasks/task_fields.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "skein/base/text/nearest.h"

namespace skein {

using jinja::Kind;
using jinja::Value;

Fields::Fields(const Value& dict, std::string where) : value_(dict), where_(std::move(where)) {
  if (!dict.is(Kind::kDict))
    fail(ErrorCode::kInvalid, "{}: a {}; expected a dict", where_, jinja::type_name(dict));
}

void Fields::refuse(std::string_view key, const std::string& why, ErrorCode code) const {
  fail(code, "{}: {}: {}", where_, key, why);
}

void Fields::refuse_kind(std::string_view key, const Value& value,
                         std::string_view expected) const {
  fail(ErrorCode::kInvalid, "{}: {} is a {}; expected {}", where_, key, jinja::type_name(value),
       expected);
}

Value Fields::value(std::string_view key) const {
  const Value* const found = dict().find(key);
  return found == nullptr || found->is(Kind::kNone) ? Value() : *found;
}

std::optional<std::string> Fields::text(std::string_view key) const {
  const Value found = value(key);
  if (found.is_undefined()) return std::nullopt;
  if (!found.is_string()) refuse_kind(key, found, "text; a number needs quotes");
  return found.text();
}

std::string Fields::text_or(std::string_view key, std::string otherwise) const {
  const Value* const found = dict().find(key);
  if (found == nullptr) return otherwise;
  if (!found->is_string()) refuse_kind(key, *found, "text");
  return found->text();
}

std::optional<bool> Fields::boolean(std::string_view key) const {
  const Value found = value(key);
  if (found.is_undefined()) return std::nullopt;
  if (!found.is(Kind::kBool)) refuse_kind(key, found, "true or false");
  return found.as_bool();
}

std::optional<int64_t> Fields::integer(std::string_view key) const {
  const Value found = value(key);
  if (found.is_undefined()) return std::nullopt;
  if (!found.is(Kind::kInteger)) refuse_kind(key, found, "a whole number");
  return found.as_integer();
}

void Fields::allow(std::span<const std::string_view> known) const {
  for (const auto& [key, value] : dict().entries) {
    if (!key.is_string())
      fail(ErrorCode::kInvalid, "{}: a key that is a {}; expected names", where_,
           jinja::type_name(key));
    if (std::find(known.begin(), known.end(), key.text()) != known.end()) continue;
    const std::string_view near = nearest_name(key.text(), known);
    fail(ErrorCode::kInvalid, "{}: unknown key {}{}", where_, key.text(),
         near.empty() ? "; remove it" : fmt::format(": did you mean {}?", near));
  }
}

Value Fields::others(std::span<const std::string_view> known) const {
  auto rest = std::make_shared<jinja::Dict>();
  for (const auto& [key, value] : dict().entries) {
    const bool is_known =
        key.is_string() && std::find(known.begin(), known.end(), key.text()) != known.end();
    if (!is_known) rest->set(key, value);
  }
  return Value::of(Kind::kDict, std::move(rest));
}

std::vector<Value> dicts_of(const Fields& fields, std::string_view key) {
  const Value value = fields.value(key);
  if (value.is_undefined()) return {};
  if (!value.is(Kind::kSequence)) fields.refuse_kind(key, value, "a list of dicts");
  for (const Value& item : value.as_sequence().items) {
    if (!item.is(Kind::kDict)) fields.refuse_kind(key, item, "dicts as its items");
  }
  return value.as_sequence().items;
}

}  // namespace skein
