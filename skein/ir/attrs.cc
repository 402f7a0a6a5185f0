#include "skein/ir/attrs.h"

#include <fmt/ranges.h>

#include "skein/base/error.h"

namespace skein {
namespace {

template <typename T>
const T& get(const std::map<std::string, AttrValue, std::less<>>& entries, std::string_view name) {
  const auto found = entries.find(name);
  if (found == entries.end()) fail(ErrorCode::kInternal, "attr '{}' is missing", name);
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) fail(ErrorCode::kInternal, "attr '{}' has another type", name);
  return *value;
}

std::string to_text(const AttrValue& value) {
  struct Printer {
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(int64_t integer) const { return fmt::format("{}", integer); }
    std::string operator()(double real) const {
      std::string text = fmt::format("{}", real);
      // A real is always recognizable as one.
      return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
    }
    std::string operator()(const std::string& text) const { return fmt::format("\"{}\"", text); }
    std::string operator()(const std::vector<int64_t>& list) const {
      return fmt::format("[{}]", fmt::join(list, ", "));
    }
  };
  return std::visit(Printer{}, value);
}

}  // namespace

const Attrs::Entries& Attrs::entries() const {
  static const Entries none;
  return entries_ ? *entries_ : none;
}

void Attrs::set(const std::string& name, AttrValue value) {
  auto changed = std::make_shared<Entries>(entries());
  (*changed)[name] = std::move(value);
  entries_ = std::move(changed);
}

Attrs Attrs::without(std::span<const std::string_view> names) const {
  if (names.empty()) return *this;
  auto left = std::make_shared<Entries>(entries());
  for (const std::string_view name : names) {
    if (const auto found = left->find(name); found != left->end()) left->erase(found);
  }
  Attrs attrs;
  attrs.entries_ = std::move(left);
  return attrs;
}

bool Attrs::flag(std::string_view name) const { return get<bool>(entries(), name); }
int64_t Attrs::integer(std::string_view name) const { return get<int64_t>(entries(), name); }
double Attrs::real(std::string_view name) const { return get<double>(entries(), name); }
const std::string& Attrs::text(std::string_view name) const {
  return get<std::string>(entries(), name);
}
const std::vector<int64_t>& Attrs::integers(std::string_view name) const {
  return get<std::vector<int64_t>>(entries(), name);
}

std::string Attrs::to_string() const {
  std::string text = "{";
  for (const auto& [name, value] : entries()) {
    if (text.size() > 1) text += ", ";
    text += name + "=" + to_text(value);
  }
  return text + "}";
}

}  // namespace skein
