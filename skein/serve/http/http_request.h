// One HTTP request, whole: the server calls the handler after the last byte of the body.
//
// Memory   of the one who holds it; at most HttpLimits::header_bytes + body_bytes
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace skein {

struct HttpHeader {
  std::string name, value;  // without blanks around the value
};

struct HttpRequest {
  std::string method;  // GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS; others never come here
  std::string path;    // begins with "/"; percent-decoded, free of NUL; "." and ".." stay as sent
  std::string query;   // behind "?", as sent; empty if there is none
  std::vector<HttpHeader> headers;  // as sent, in their order
  std::string body;                 // of a chunked request the chunks' contents
  std::string peer;                 // 127.0.0.1:40312, [::1]:40312

  // The value of the first header of that name in any case; nullptr if there is none.
  const std::string* header(std::string_view name) const;
};

// Whether two names of headers, or other ASCII texts, are equal in any case.
bool equal_in_any_case(std::string_view left, std::string_view right);

}  // namespace skein
