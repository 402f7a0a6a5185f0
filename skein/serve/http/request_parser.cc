#include "skein/serve/http/request_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <string_view>
#include <utility>

#include "skein/serve/http/request_target.h"

namespace skein {

namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr http::verb kMethods[] = {http::verb::get,    http::verb::head,  http::verb::post,
                                   http::verb::put,    http::verb::patch, http::verb::delete_,
                                   http::verb::options};

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

// "GET / HTTP/2.0": a version, but not ours. Beast has one error for this and for other words.
bool names_other_version(std::string_view line) {
  const size_t begin = line.find(" HTTP/");
  if (begin == line.npos) return false;
  const std::string_view version = line.substr(begin + 6);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return version.size() == 3 && is_digit(version[0]) && version[1] == '.' && is_digit(version[2]);
}

// Beast takes a header together with the first byte behind it, so that a fold is never cut in two.
bool is_folded(std::string_view head) {
  return head.find("\r\n ") != head.npos || head.find("\r\n\t") != head.npos;
}

bool is_host(std::string_view value) {
  return std::all_of(value.begin(), value.end(), [](char c) {
    return c > ' ' && c < '\x7f' &&
           std::string_view("/\\@,?#<>\"").find(c) == std::string_view::npos;
  });
}

}  // namespace

class RequestParser::Beast final : public http::basic_parser<true> {
 public:
  Beast(int64_t header_bytes, int64_t most_body_bytes)
      : header_bytes_(header_bytes), most_body_bytes_(most_body_bytes) {
    header_limit(static_cast<uint32_t>(header_bytes));
    body_limit(static_cast<uint64_t>(most_body_bytes));
  }

  size_t parse(std::string_view bytes) {
    size_t num_taken = 0;
    if (!got_some()) {
      while (bytes.substr(num_taken).starts_with("\r\n")) num_taken += 2;
      num_blank_ += num_taken;
      bytes.remove_prefix(num_taken);
      if (num_blank_ > kMostBlankBytes) refuse(400, "the request begins with empty lines");
      if (is_failed() || bytes.empty() || bytes == "\r") return num_taken;
    }
    // A chunk's header with what must follow has 5 bytes at least. Beast 1.81 to 1.83 asserts that
    // it gets as many if it has seen "0\r\n" before, and would end the process.
    if (is_before_chunk() && bytes.size() < 5) return num_taken;
    const bool was_head = !is_header_done();
    beast::error_code error;
    const size_t num_parsed = put({bytes.data(), bytes.size()}, error);
    num_taken += num_parsed;
    if (was_head) head_bytes_ += static_cast<int64_t>(num_parsed);
    const int64_t num_waiting = is_header_done() ? 0 : std::ssize(bytes.substr(num_parsed));
    // Beast has its limit for what it has not taken yet, but takes the head line by line.
    if (was_head && head_bytes_ + num_waiting > header_bytes_) refuse_long_head();
    if (was_head && is_folded(bytes.substr(0, num_parsed))) {
      refuse(400, "a header is folded over several lines");
    }
    if (error && error != http::error::need_more && !is_failed()) refuse(error, bytes);
    return num_taken;
  }

  void refuse(int status, std::string message) {
    if (is_failed()) return;
    problem_status = status;
    problem = std::move(message);
  }

  void refuse_long_head() {
    refuse(431,
           fmt::format("the request line and the headers have more than {} bytes", header_bytes_));
  }

  void refuse_long_line() {
    if (!is_header_done()) return refuse_long_head();
    refuse(400, fmt::format(
                    "a chunk's size with its extensions, or the trailers, have more than {} bytes",
                    header_bytes_));
  }

  bool is_failed() const { return problem_status != 0; }

  HttpRequest request;
  int problem_status = 0;
  std::string problem;
  bool is_http10 = false, expects_continue = false;

 private:
  static constexpr size_t kMostBlankBytes = 64;

  bool is_before_chunk() { return is_header_done() && chunked() && chunk_bytes_ == 0; }

  // Stops Beast: any error does, as refuse() has set ours.
  void stop(beast::error_code& error, int status, std::string message) {
    refuse(status, std::move(message));
    error = http::error::bad_field;
  }

  void refuse(const beast::error_code& error, std::string_view bytes) {
    if (error == http::error::header_limit) return refuse_long_line();
    if (error == http::error::body_limit) {
      return refuse(413, fmt::format("the body has more than {} bytes", most_body_bytes_));
    }
    if (error == http::error::bad_version) {
      if (names_other_version(bytes.substr(0, bytes.find('\r')))) {
        return refuse(505, "this server speaks HTTP/1.1 and HTTP/1.0");
      }
    }
    if (error == http::error::bad_content_length || error == http::error::multiple_content_length) {
      return refuse(400,
                    "Content-Length is not one decimal number, or stands beside Transfer-Encoding");
    }
    if (error == http::error::bad_transfer_encoding) {
      return refuse(400, "Transfer-Encoding is given twice, or beside Content-Length");
    }
    refuse(400, "this is no HTTP request: " + error.message());
  }

  void on_request_impl(http::verb method, beast::string_view name, beast::string_view target,
                       int version, beast::error_code& error) override {
    is_http10 = version == 10;
    if (std::find(std::begin(kMethods), std::end(kMethods), method) == std::end(kMethods)) {
      return stop(error, 501, "the method is not GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS");
    }
    request.method = view(name);
    if (method == http::verb::options && target == "*") {
      request.path = "*";
      return;
    }
    auto parsed = parse_request_target(view(target));
    if (!parsed) {
      return stop(error, 400,
                  "the target of the request is not a path as /v1/models, with a byte other than "
                  "visible ASCII as %20");
    }
    request.path = std::move(parsed->path);
    request.query = std::move(parsed->query);
  }

  void on_field_impl(http::field field, beast::string_view name, beast::string_view value,
                     beast::error_code& error) override {
    if (is_header_over_) return;  // a trailer
    if (field == http::field::host) {
      if (++num_hosts_ > 1) return stop(error, 400, "there is more than one Host header");
      if (!is_host(view(value))) return stop(error, 400, "the Host header is no name of a host");
    } else if (field == http::field::content_length) {
      if (++num_lengths_ > 1 || value.find(',') != value.npos) {
        return stop(error, 400, "there is more than one Content-Length");
      }
    } else if (field == http::field::transfer_encoding) {
      if (is_http10) return stop(error, 400, "HTTP/1.0 has no Transfer-Encoding");
      if (!equal_in_any_case(view(value), "chunked")) {
        return stop(error, 501, "the only Transfer-Encoding here is chunked");
      }
    } else if (field == http::field::expect && !is_http10) {
      if (!equal_in_any_case(view(value), "100-continue")) {
        return stop(error, 417, "the only expectation met here is 100-continue");
      }
      expects_continue = true;
    }
    request.headers.push_back({std::string(view(name)), std::string(view(value))});
  }

  void on_header_impl(beast::error_code& error) override {
    is_header_over_ = true;
    if (num_hosts_ == 0 && !is_http10) stop(error, 400, "there is no Host header");
  }

  size_t on_body_impl(beast::string_view bytes, beast::error_code&) override {
    request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(uint64_t size, beast::string_view, beast::error_code&) override {
    chunk_bytes_ = size;
  }
  size_t on_chunk_body_impl(uint64_t, beast::string_view bytes, beast::error_code& error) override {
    chunk_bytes_ -= bytes.size();
    return on_body_impl(bytes, error);
  }

  void on_response_impl(int, beast::string_view, int, beast::error_code&) override {}
  void on_body_init_impl(const boost::optional<uint64_t>&, beast::error_code&) override {}
  void on_finish_impl(beast::error_code&) override {}

  int64_t header_bytes_, most_body_bytes_;
  int64_t head_bytes_ = 0;    // taken of the head
  uint64_t chunk_bytes_ = 0;  // that are to come of this chunk
  size_t num_blank_ = 0;
  int num_hosts_ = 0, num_lengths_ = 0;
  bool is_header_over_ = false;
};

RequestParser::RequestParser(int64_t header_bytes, int64_t body_bytes)
    : beast_(std::make_unique<Beast>(header_bytes, body_bytes)) {}
RequestParser::~RequestParser() = default;
RequestParser::RequestParser(RequestParser&&) noexcept = default;
RequestParser& RequestParser::operator=(RequestParser&&) noexcept = default;

size_t RequestParser::parse(std::string_view bytes) {
  if (bytes.empty() || state() == State::kDone || state() == State::kFailed) return 0;
  return beast_->parse(bytes);
}

void RequestParser::refuse_long_line() { beast_->refuse_long_line(); }

RequestParser::State RequestParser::state() const {
  if (beast_->is_failed()) return State::kFailed;
  if (!beast_->is_header_done()) return State::kHead;
  return beast_->is_done() ? State::kDone : State::kBody;
}

bool RequestParser::has_begun() const { return beast_->got_some(); }
int RequestParser::problem_status() const { return beast_->problem_status; }
const std::string& RequestParser::problem() const { return beast_->problem; }
bool RequestParser::expects_continue() const { return beast_->expects_continue; }
bool RequestParser::keeps_alive() const { return beast_->keep_alive(); }
bool RequestParser::is_http10() const { return beast_->is_http10; }
bool RequestParser::is_head() const { return beast_->request.method == "HEAD"; }
int64_t RequestParser::body_bytes() const { return std::ssize(beast_->request.body); }
const HttpRequest& RequestParser::request() const { return beast_->request; }
HttpRequest RequestParser::take_request() { return std::move(beast_->request); }

}  // namespace skein
