// The target of a request, "/v1/models?limit=3": its path and its query.
//
// Source   RFC 9112, 3.2; RFC 3986, 2.1
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace skein {

struct RequestTarget {
  std::string path, query;  // the path decoded, the query as sent
};

// Nothing unless `target` begins with "/", is of visible ASCII without "#", and each "%" of its
// path is followed by two hexadecimal digits other than 00.
std::optional<RequestTarget> parse_request_target(std::string_view target);

}  // namespace skein
