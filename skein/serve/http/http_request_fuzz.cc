// Any bytes as the requests of one connection, as the server reads them: each is refused with a
// status and a sentence, or is one within the limits. In other pieces the same bytes are the same
// requests.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skein/serve/http/request_parser.h"

namespace {

using skein::HttpRequest;
using skein::RequestParser;
using State = RequestParser::State;

constexpr size_t kHeaderBytes = 512, kBodyBytes = 300;

void expect(bool condition) {
  if (!condition) __builtin_trap();
}

void check(const HttpRequest& request) {
  expect(request.path == "*" || request.path.starts_with('/'));
  expect(request.path.find('\0') == std::string::npos);
  expect(request.body.size() <= kBodyBytes);
  size_t num_bytes = request.path.size() + request.query.size();
  for (const auto& [name, value] : request.headers) {
    num_bytes += name.size() + value.size();
    expect(!name.empty() &&
           value.find_first_of(std::string_view("\0\r\n", 3)) == std::string::npos);
  }
  expect(num_bytes <= kHeaderBytes);
  const std::string* length = request.header("Content-Length");
  const std::string* coding = request.header("Transfer-Encoding");
  expect(!length || !coding);
  if (length) expect(std::stoull(*length) == request.body.size());
  if (!length && !coding) expect(request.body.empty());
}

std::string text(const HttpRequest& request) {
  std::string all = request.method + ' ' + request.path + '?' + request.query + '\n';
  for (const auto& [name, value] : request.headers) all.append(name + ':' + value + '\n');
  return all + request.body;
}

// The requests in `bytes`, which come in pieces of `piece`; of the last one that is refused, its
// status.
std::vector<std::string> read(std::string_view bytes, size_t piece) {
  std::vector<std::string> requests;
  RequestParser parser(kHeaderBytes, kBodyBytes);
  size_t begin = 0, end = 0;
  while (true) {
    const size_t num_taken = parser.parse(bytes.substr(begin, end - begin));
    expect(num_taken <= end - begin);
    begin += num_taken;
    if (num_taken == 0 && end - begin == kHeaderBytes) parser.refuse_long_line();
    if (parser.state() == State::kFailed) {
      expect(parser.problem_status() >= 400 && !parser.problem().empty());
      requests.push_back(std::to_string(parser.problem_status()));
      return requests;
    }
    if (parser.state() == State::kDone) {
      check(parser.request());
      requests.push_back(text(parser.take_request()) + (parser.keeps_alive() ? "" : "|"));
      parser = RequestParser(kHeaderBytes, kBodyBytes);
      continue;
    }
    if (num_taken > 0 && begin < end) continue;
    if (end == bytes.size()) return requests;
    end = std::min({bytes.size(), end + piece, begin + kHeaderBytes});
  }
}

// Refused is refused: which of two faults is seen first may depend on the pieces.
void blur_refusal(std::vector<std::string>& requests) {
  if (!requests.empty() && requests.back().size() == 3) requests.back() = "refused";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> at_once = read(bytes, kHeaderBytes), by_byte = read(bytes, 1);
  blur_refusal(at_once);
  blur_refusal(by_byte);
  // Beast looks at an unfinished head again only at its end, and then refuses it.
  if (at_once.size() == by_byte.size() + 1 && at_once.back() == "refused") at_once.pop_back();
  if (by_byte.size() == at_once.size() + 1 && by_byte.back() == "refused") by_byte.pop_back();
  expect(at_once == by_byte);
  return 0;
}
