#include "skein/serve/http/response_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <iterator>
#include <utility>

#include "skein/base/error.h"

namespace skein {
namespace {

// Beast has the same table, behind 2 s of headers.
constexpr std::pair<int, std::string_view> kReasons[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {411, "Length Required"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

std::string_view reason(int status) {
  const auto* row = std::find_if(std::begin(kReasons), std::end(kReasons),
                                 [&](const auto& entry) { return entry.first == status; });
  return row == std::end(kReasons) ? std::string_view("Status") : row->second;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < '\x7f' &&
           std::string_view("\"(),/:;<=>?@[\\]{}").find(c) == std::string_view::npos;
  });
}

bool is_field_value(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < ' ' && c != '\t') || c == '\x7f';
  });
}

bool is_of_server(std::string_view name) {
  const std::string_view own[] = {"Connection", "Content-Length", "Content-Type", "Date",
                                  "Transfer-Encoding"};
  return std::any_of(std::begin(own), std::end(own),
                     [&](std::string_view other) { return equal_in_any_case(name, other); });
}

// Sun, 06 Nov 1994 08:49:37 GMT
std::string date(std::time_t time) {
  constexpr std::array days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", days[parts.tm_wday], parts.tm_mday,
                     months[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min,
                     parts.tm_sec);
}

}  // namespace

bool has_no_body(int status) { return status / 100 == 1 || status == 204 || status == 304; }

void check_response_head(int status, std::string_view content_type,
                         const std::vector<HttpHeader>& headers) {
  if (status < 200 || status > 599) {
    fail(ErrorCode::kInternal, "an answer has the status {}: expected 200 to 599", status);
  }
  if (!is_field_value(content_type)) {
    fail(ErrorCode::kInternal, "the content type of an answer has a control character");
  }
  for (const HttpHeader& header : headers) {
    if (!is_token(header.name) || !is_field_value(header.value)) {
      fail(ErrorCode::kInternal,
           "a header of an answer, {:?}, has a name that is no token, or a "
           "control character in its value",
           header.name);
    }
    if (is_of_server(header.name)) {
      fail(ErrorCode::kInternal, "an answer has the header {}, which the server gives",
           header.name);
    }
  }
}

std::string response_head(int status, std::string_view content_type,
                          const std::vector<HttpHeader>& headers, const ResponseFraming& framing) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\nDate: {}\r\n", status, reason(status),
                                 date(std::time(nullptr)));
  const auto add = [&](std::string_view name, std::string_view value) {
    head.append(name).append(": ").append(value).append("\r\n");
  };
  if (!has_no_body(status)) {
    if (!content_type.empty()) add("Content-Type", content_type);
    if (framing.body_bytes) {
      add("Content-Length", std::to_string(*framing.body_bytes));
    } else if (!framing.is_http10) {
      add("Transfer-Encoding", "chunked");
    }
  }
  if (!framing.keeps_alive) {
    add("Connection", "close");
  } else if (framing.is_http10) {
    add("Connection", "keep-alive");
  }
  for (const HttpHeader& header : headers) add(header.name, header.value);
  return head += "\r\n";
}

}  // namespace skein
