// An error as OpenAI's API tells it: {"error": {"message", "type", "param", "code"}}.
//
// Source   platform.openai.com/docs/guides/error-codes, and the bodies that its API answers
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace skein {

class ApiError : public std::runtime_error {
 public:
  // `param`: the field of the request that is wrong; "" for none. `code`: a word for programs; "".
  ApiError(int status, const std::string& message, std::string param = "", std::string code = "")
      : std::runtime_error(message),
        status_(status),
        param_(std::move(param)),
        code_(std::move(code)) {}

  int status() const { return status_; }
  std::string body() const;

 private:
  int status_;
  std::string param_, code_;
};

// The body of an error with nothing but a sentence.
std::string api_error_body(int status, std::string_view message);

}  // namespace skein
