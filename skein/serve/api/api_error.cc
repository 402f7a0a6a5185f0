#include "skein/serve/api/api_error.h"

#include "skein/base/text/json_text.h"

namespace skein {
namespace {

const char* type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

std::string ApiError::body() const {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? OrderedJson(nullptr) : OrderedJson(text);
  };
  OrderedJson error;
  error["message"] = what();
  error["type"] = type_of(status_);
  error["param"] = or_null(param_);
  error["code"] = or_null(code_);
  OrderedJson body;
  body["error"] = std::move(error);
  return json_text(body) + "\n";
}

std::string api_error_body(int status, std::string_view message) {
  return ApiError(status, std::string(message)).body();
}

}  // namespace skein
