// What a template may use: steps, bytes, depth. A template comes from elsewhere, so each is
// bounded.
//
// A step is a node that is evaluated, an item that is visited, or 64 bytes that are read or
// written. Bytes are those of every value that is made, also of one that is gone again.
//
// Errors   Refusal, without a place: whoever evaluates a node puts the node's place before it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace skein::jinja {

struct Limits {
  int64_t max_steps = 50'000'000;
  int64_t max_bytes = int64_t{1} << 30;
  int64_t max_output_bytes = int64_t{256} << 20;
  int max_depth = 800;  // of nodes that are evaluated inside each other, macros included
};

// Lists in lists, as deep as a value may be.
inline constexpr int kMaxNesting = 260;

struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Budget {
 public:
  explicit Budget(const Limits& limits, bool strict_undefined = false)
      : limits_(limits), strict_undefined_(strict_undefined) {}
  const Limits& limits() const { return limits_; }
  // Whether undefined values are jinja2's StrictUndefined: Value::undefined.
  bool strict_undefined() const { return strict_undefined_; }

  void step(int64_t steps = 1) {
    steps_ += steps;
    if (steps_ > limits_.max_steps) refuse_steps();
  }
  // `bytes` are read, or written where they are counted already.
  void pass_over(int64_t bytes) { step(bytes / 64 + 1); }
  // A value of `bytes` is about to be made.
  void make(int64_t bytes) {
    if (bytes > limits_.max_bytes - bytes_) refuse_bytes();
    bytes_ += bytes;
    pass_over(bytes);
  }

 private:
  [[noreturn]] void refuse_steps() const;
  [[noreturn]] void refuse_bytes() const;

  Limits limits_;
  bool strict_undefined_;
  int64_t steps_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace skein::jinja
