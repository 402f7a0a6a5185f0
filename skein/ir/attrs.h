// The compile-time constants of a node, by name. They are ordered, so that equal attrs print
// equally. Copies share their entries until one of them is set: passes copy nodes far more often
// than they change them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace skein {

using AttrValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>>;

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<const std::string, AttrValue>> entries)
      : entries_(std::make_shared<Entries>(entries)) {}

  bool has(std::string_view name) const { return entries().find(name) != entries().end(); }
  void set(const std::string& name, AttrValue value);
  // Those that have none of these names.
  Attrs without(std::span<const std::string_view> names) const;

  // Each throws Error{kInternal} naming the attr where it is missing or of another type.
  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const std::vector<int64_t>& integers(std::string_view name) const;

  bool empty() const { return entries().empty(); }
  std::string to_string() const;  // "{causal=true, epsilon=1e-05, sizes=[4, 8]}"
  bool operator==(const Attrs& other) const {
    return entries_ == other.entries_ || entries() == other.entries();
  }

 private:
  using Entries = std::map<std::string, AttrValue, std::less<>>;
  const Entries& entries() const;

  std::shared_ptr<const Entries> entries_;  // null: none
};

}  // namespace skein
