// The first lines of an answer, from "HTTP/1.1 200 OK" to the empty line.
//
// Errors   Error{kInternal}: what check_response_head refuses
// Source   RFC 9112, 4 and 6; RFC 9110, 5.5, 5.6.2, 6.6.1
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "skein/serve/http/http_request.h"

namespace skein {

struct ResponseFraming {
  std::optional<int64_t> body_bytes;  // none: a body of unknown length, chunked in HTTP/1.1
  bool is_http10 = false;             // of the request
  bool keeps_alive = true;
};

// 1xx, 204 and 304.
bool has_no_body(int status);

// A status outside 200 to 599; names that are no tokens; control characters in values; headers that
// the server gives.
void check_response_head(int status, std::string_view content_type,
                         const std::vector<HttpHeader>& headers);

std::string response_head(int status, std::string_view content_type,
                          const std::vector<HttpHeader>& headers, const ResponseFraming& framing);

}  // namespace skein
