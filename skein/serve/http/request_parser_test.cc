#include "skein/serve/http/request_parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "skein/serve/http/request_target.h"

namespace skein {
namespace {

using namespace std::string_literals;

using State = RequestParser::State;

// Feeds `bytes` in pieces of at most `piece` bytes, as a connection does that has a buffer of
// `header_bytes`; returns how many were taken.
size_t feed(RequestParser& parser, std::string_view bytes, size_t piece, size_t header_bytes) {
  size_t begin = 0, end = 0;
  while (parser.state() != State::kDone && parser.state() != State::kFailed) {
    const size_t num_taken = parser.parse(bytes.substr(begin, end - begin));
    begin += num_taken;
    if (num_taken > 0 && begin < end) continue;
    if (end - begin == header_bytes) parser.refuse_long_line();
    if (end == bytes.size()) break;
    end = std::min({bytes.size(), end + piece, begin + header_bytes});
  }
  return begin;
}

RequestParser parsed(std::string_view bytes, size_t piece = 1 << 20, size_t header_bytes = 512) {
  RequestParser parser(static_cast<int64_t>(header_bytes), 100);
  feed(parser, bytes, piece, header_bytes);
  return parser;
}

TEST(RequestParser, ReadsARequestInAnyPieces) {
  const std::string text =
      "\r\nPOST /v1/a%20b%2Fc?x=%31&y HTTP/1.1\r\nHost: localhost:8000\r\nX-Two:  a \t b \r\n"
      "content-LENGTH: 5\r\n\r\nhelloGET / HTTP/1.1\r\n";
  for (const size_t piece : {1, 2, 3, 7, 1000}) {
    RequestParser parser(512, 100);
    const size_t num_taken = feed(parser, text, piece, 512);
    ASSERT_EQ(parser.state(), State::kDone) << piece << ": " << parser.problem();
    EXPECT_EQ(text.substr(num_taken), "GET / HTTP/1.1\r\n");
    EXPECT_TRUE(parser.keeps_alive());
    const HttpRequest request = parser.take_request();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/v1/a b/c");
    EXPECT_EQ(request.query, "x=%31&y");
    EXPECT_EQ(request.body, "hello");
    ASSERT_NE(request.header("x-tWO"), nullptr);
    EXPECT_EQ(*request.header("x-tWO"), "a \t b");
    EXPECT_EQ(request.header("X-Three"), nullptr);
  }
}

TEST(RequestParser, ReadsChunksAndDropsTheirExtensionsAndTrailers) {
  const std::string text =
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "5;name=value;quoted=\"a;b\"\r\nhello\r\n0A\r\n0123456789\r\n000\r\nX-Trailer: 1\r\n\r\nGET";
  for (const size_t piece : {1, 2, 3, 7, 1000}) {
    RequestParser parser(512, 100);
    const size_t num_taken = feed(parser, text, piece, 512);
    ASSERT_EQ(parser.state(), State::kDone) << piece << ": " << parser.problem();
    EXPECT_EQ(text.substr(num_taken), "GET");
    EXPECT_EQ(parser.request().body, "hello0123456789");
    EXPECT_EQ(parser.request().header("X-Trailer"), nullptr);
  }
}

struct Refusal {
  std::string text;
  int status;
};

const std::string kChunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

// nginx 1.22 got 29 of these: it refuses all but two blanks in the request line, lines without
// carriage returns, absolute targets and expectations. Where this server says 431 it says 400, for
// TRACE 405, for a method in lower case 400.
const Refusal kRefusals[] = {
    {"nonsense\r\n\r\n", 400},
    {"GET /\r\n\r\n", 400},                        // HTTP/0.9
    {"GET / HTTP/1.1\nHost: a\n\n\r\n\r\n", 400},  // without carriage returns
    {"GET / HTTP/1.1\r\nHost: a\r\nX: a\nb\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400},
    {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: one\r\n two\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\tone\r\nY: 1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n: a\r\n\r\n", 400},
    {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
    {"GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505},
    {"GET / FOOO/1.1\r\nHost: a\r\n\r\n", 400},
    {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 400},  // TLS
    {"get / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
    {"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
    {"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
    {"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 501},
    {"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET v1 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET /%2 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"s, 400},
    {"GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n"s, 400},
    {"GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n"s, 400},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x1\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551617\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n", 413},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400},
    {kChunked.substr(0, kChunked.size() - 2) + "Transfer-Encoding: chunked\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0b"
     "chunked\r\n\r\n",
     400},
    {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\nHost: a\r\nExpect: coffee\r\n\r\n", 417},
    {kChunked + "-1\r\n\r\n", 400},
    {kChunked + "+1\r\na\r\n0\r\n\r\n", 400},
    {kChunked + "0x1\r\na\r\n0\r\n\r\n", 400},
    {kChunked + "\r\n\r\n\r\n", 400},
    {kChunked + "10000000000000000\r\n", 400},  // 2^64
    {kChunked + "ffffffffffffffff\r\n", 413},
    {kChunked + "65\r\na", 413},
    {kChunked + "60\r\n" + std::string(0x60, 'a') + "\r\n5\r\n", 413},
    {kChunked + "1\r\nab\r\n0\r\n\r\n", 400},  // longer than its size
    {kChunked + "1\na\n0\n\n\r\n", 400},
    {kChunked + "1;=\r\na\r\n0\r\n\r\n", 400},
    {kChunked + "1;" + std::string(600, 'a') + "\r\n", 400},
    {kChunked + "0\r\nContent-Length: 1\r\n\r\n", 400},
    {kChunked + "0\r\nX: " + std::string(600, 'a') + "\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(600, 'a') + "\r\n\r\n", 431},
    {"GET /" + std::string(600, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n", 431},
    {std::string(600, 'A'), 431},
};

TEST(RequestParser, RefusesWhatIsMalformedOrAmbiguous) {
  for (const auto& [text, status] : kRefusals) {
    for (const size_t piece : {1, 5, 1000}) {
      const RequestParser parser = parsed(text, piece);
      EXPECT_EQ(parser.state(), State::kFailed) << text;
      EXPECT_EQ(parser.problem_status(), status)
          << text << "\nin pieces of " << piece << ": " << parser.problem();
      EXPECT_FALSE(parser.problem().empty());
    }
  }
}

// Beast has a limit for what it has not taken yet: lines that come one by one never reach it.
TEST(RequestParser, LimitsTheSumOfAHeadThatComesLineByLine) {
  RequestParser parser(512, 100);
  EXPECT_EQ(parser.parse("GET / HTTP/1.1\r\n"), 16U);
  int num_lines = 0;
  for (; parser.state() == State::kHead && num_lines < 1000; ++num_lines) {
    std::string_view rest = "X-Line: 1234567890\r\nX";
    while (parser.state() == State::kHead) {
      const size_t num_taken = parser.parse(rest);
      if (num_taken == 0) break;
      rest.remove_prefix(num_taken);
    }
  }
  EXPECT_EQ(parser.problem_status(), 431);
  EXPECT_LT(num_lines, 30);
}

// Also of one whose end is there: it is the head that is long, not a chunk.
TEST(RequestParser, LimitsTheSumOfAWholeHead) {
  std::string head = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 40; ++i) head += "X: 1234567890\r\n";
  for (const size_t piece : {7, 100, 10000}) {
    const RequestParser parser = parsed(head + "\r\n", piece);
    EXPECT_EQ(parser.problem_status(), 431) << piece;
    EXPECT_NE(parser.problem().find("the request line and the headers"), std::string::npos);
  }
}

TEST(RequestParser, LimitsEmptyLinesBeforeARequest) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "\r\n";
  EXPECT_EQ(parsed(lines).problem_status(), 400);
  EXPECT_EQ(parsed(lines, 1).problem_status(), 400);
}

// Beast would end the process at the fourth byte of the chunk.
TEST(RequestParser, ReadsAnEmptyChunkedBodyByteByByte) {
  for (const size_t piece : {1, 2, 3, 4}) {
    const RequestParser parser = parsed(kChunked + "0\r\n\r\n", piece);
    EXPECT_EQ(parser.state(), State::kDone);
    EXPECT_EQ(parser.request().body, "");
  }
}

TEST(RequestParser, KnowsWhetherTheConnectionStays) {
  const auto keeps = [](std::string_view text) {
    const RequestParser parser = parsed(text);
    EXPECT_EQ(parser.state(), State::kDone) << text << parser.problem();
    return parser.keeps_alive();
  };
  EXPECT_TRUE(keeps("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

TEST(RequestTarget, IsAPathAndAQuery) {
  const auto target = parse_request_target("/a%2fb//../%E4?");
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->path, "/a/b//../\xe4");
  EXPECT_EQ(target->query, "");
  EXPECT_EQ(parse_request_target("/?a?b%")->query, "a?b%");
  EXPECT_FALSE(parse_request_target("").has_value());
}

}  // namespace
}  // namespace skein
