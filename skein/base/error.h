// Errors, for people: every message names the thing, what was found, what was expected, what to do.
//
// A mistake in a configuration, a model or a file that the user must fix throws `Error`. Failures
// on which recovery code branches (I/O, a lost peer, a corrupt shard) are returned as `Result<T>`.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace skein {

enum class ErrorCode {
  kUsage,        // the command line or a configuration is wrong            (exit code 2)
  kInvalid,      // an input (file, model, tensor) is not what it should be
  kNotFound,     // a file, tensor or key is missing
  kCorrupt,      // stored bytes do not verify
  kIo,           // the operating system refused a read or a write
  kNoSpace,      // a disk or an arena is full
  kBusy,         // another process holds it
  kUnsupported,  // valid, but not built or not written yet
  kPeerLost,     // another rank died or stalled
  kNotFinite,    // a loss, gradient or weight is NaN or infinite
  kWrongBits,    // memory or arithmetic gave other bits than it must
  kInternal,     // a broken invariant of Skein
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

// Throws Error{code, formatted message}.
template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(code, fmt::format(format, std::forward<Args>(args)...));
}

// Formats the current errno as "No space left on device (28)".
std::string errno_text(int error_number);

// kNoSpace for ENOSPC and EDQUOT, kNotFound for ENOENT, kIo otherwise.
ErrorCode errno_code(int error_number);

// A value, or the Error that explains why there is none.
template <typename T>
class Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }

  const Error& error() const { return std::get<Error>(state_); }

  // Returns the value; throws the error if there is none.
  T& value() & {
    if (!ok()) throw error();
    return std::get<T>(state_);
  }
  T&& value() && {
    if (!ok()) throw error();
    return std::get<T>(std::move(state_));
  }

 private:
  std::variant<T, Error> state_;
};

// Runs `body` and turns an Error that it throws into a Result.
template <typename Body>
auto try_run(Body&& body) -> Result<decltype(body())> {
  try {
    return body();
  } catch (const Error& error) {
    return error;
  }
}

}  // namespace skein
