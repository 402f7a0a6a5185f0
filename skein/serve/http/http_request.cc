#include "skein/serve/http/http_request.h"

#include <algorithm>

namespace skein {

bool equal_in_any_case(std::string_view left, std::string_view right) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [&](char a, char b) { return lower(a) == lower(b); });
}

const std::string* HttpRequest::header(std::string_view name) const {
  const auto header = std::find_if(headers.begin(), headers.end(), [&](const HttpHeader& other) {
    return equal_in_any_case(other.name, name);
  });
  return header == headers.end() ? nullptr : &header->value;
}

}  // namespace skein
