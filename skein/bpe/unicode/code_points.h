// A set of code points, as ranges in order.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

namespace skein::bpe {

class CodePoints {
 public:
  using Range = std::pair<char32_t, char32_t>;  // first and last
  static constexpr char32_t kLast = 0x10ffff;

  CodePoints() = default;
  CodePoints(std::initializer_list<Range> ranges);
  static CodePoints all() { return {{0, kLast}}; }
  static CodePoints of(std::vector<Range> ranges);  // in any order

  void add(char32_t first, char32_t last) { add(CodePoints{{first, last}}); }
  void add(const CodePoints& other);
  CodePoints complement() const;
  CodePoints both(const CodePoints& other) const;    // what is in this and in `other`
  CodePoints either(const CodePoints& other) const;  // what is in one of them alone
  bool contains(char32_t code) const;

  bool empty() const { return ranges_.empty(); }
  const std::vector<Range>& ranges() const { return ranges_; }
  bool operator==(const CodePoints&) const = default;

 private:
  std::vector<Range> ranges_;  // neither overlap nor touch
};

}  // namespace skein::bpe
