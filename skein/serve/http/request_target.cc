#include "skein/serve/http/request_target.h"

#include <algorithm>

namespace skein {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_value(text[i + 1]), low = hex_value(text[i + 2]);
    if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

}  // namespace

std::optional<RequestTarget> parse_request_target(std::string_view target) {
  const auto is_plain = [](char c) { return c > ' ' && c < '\x7f' && c != '#'; };
  if (!target.starts_with('/') || !std::all_of(target.begin(), target.end(), is_plain)) {
    return std::nullopt;
  }
  const size_t question = std::min(target.find('?'), target.size());
  std::optional<std::string> path = percent_decoded(target.substr(0, question));
  if (!path) return std::nullopt;
  return RequestTarget{.path = std::move(*path),
                       .query = std::string(target.substr(std::min(question + 1, target.size())))};
}

}  // namespace skein
