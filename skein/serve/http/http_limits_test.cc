// What clients that are slow, greedy, many or gone can do to the server.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "skein/serve/http/http_client_testing.h"
#include "tests/sanitizers.h"

namespace skein {
namespace {

using std::chrono::milliseconds;

const std::string kGet = "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string kKept = "GET /kept HTTP/1.1\r\nHost: a\r\n\r\n";

// Sends a byte every 5 ms, as long as the server takes them; at most 10 s.
void trickle(HttpTestClient& client, std::string_view bytes) {
  for (int i = 0; i < 2000 && client.send(bytes); ++i) {
    std::this_thread::sleep_for(milliseconds(5));
  }
}

TEST(HttpLimits, AHeadThatTricklesInRunsOutOfTime) {
  HttpTestServer server({.header_timeout = milliseconds(100)});
  HttpTestClient client = server.connect();
  client.send("GET / HTTP/1.1\r\n");
  std::thread slow([&] { trickle(client, "X"); });
  const HttpTestAnswer answer = client.read_answer();
  slow.join();
  EXPECT_EQ(answer.status, 408);
  EXPECT_TRUE(answer.has("Connection: close"));
}

TEST(HttpLimits, ABodyThatTricklesInRunsOutOfTime) {
  HttpTestServer server({.body_timeout = milliseconds(100)});
  HttpTestClient client = server.connect();
  client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  std::thread slow([&] { trickle(client, "1\r\na\r\n"); });
  const HttpTestAnswer answer = client.read_answer();
  slow.join();
  EXPECT_EQ(answer.status, 408);
  EXPECT_NE(answer.body.find("body"), std::string::npos);
}

TEST(HttpLimits, ConnectionsWithoutARequestAreClosed) {
  HttpTestServer server({.header_timeout = milliseconds(50), .idle_timeout = milliseconds(150)});
  HttpTestClient silent = server.connect();
  EXPECT_TRUE(silent.is_closed_by_server());
  HttpTestClient idle = server.connect();
  EXPECT_EQ(idle.ask(kGet).status, 200);
  std::this_thread::sleep_for(milliseconds(100));  // more than the time for a head
  EXPECT_EQ(idle.ask(kGet).status, 200);
  EXPECT_TRUE(idle.is_closed_by_server());
  EXPECT_TRUE(comes_true([&] { return server->counts().connections_open == 0; }));
}

TEST(HttpLimits, ATimeLimitThatPassedUnusedEndsNothing) {
  HttpTestServer server({.header_timeout = milliseconds(50), .write_timeout = milliseconds(50)});
  HttpTestClient client = server.connect();
  client.send(kKept);
  const auto reply = server.next_reply();
  std::this_thread::sleep_for(milliseconds(200));
  reply->begin_stream(200, "text/plain");
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_TRUE(reply->write("late"));
  EXPECT_TRUE(reply->end());
  EXPECT_EQ(client.read_answer().body, "late");
}

TEST(HttpLimits, LargeHeadsAndBodiesAreRefusedBeforeTheyCome) {
  HttpTestServer server({.header_bytes = 1024, .body_bytes = 1000});
  EXPECT_EQ(server.connect().ask("GET /" + std::string(5000, 'a')).status, 431);
  EXPECT_EQ(
      server.connect().ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n").status,
      413);
  // A client that sends all the same gets its answer: the server reads on for a while.
  HttpTestClient greedy = server.connect();
  greedy.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n");
  greedy.send(std::string(1'000'000, 'x'));
  EXPECT_EQ(greedy.read_answer().status, 413);
  const std::string most(1000, 'x');
  EXPECT_EQ(server.connect()
                .ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + most)
                .body,
            "POST  " + most);
}

TEST(HttpLimits, BodiesOfAllConnectionsShareALimit) {
  HttpTestServer server({.all_bodies_bytes = 3000});
  const std::string most =
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n" + std::string(1999, 'x');
  HttpTestClient first = server.connect();
  first.send(most);
  ASSERT_TRUE(comes_true([&] { return server->counts().bytes_received == std::ssize(most); }));
  EXPECT_EQ(server.connect().ask(most).status, 503);
  EXPECT_EQ(first.ask("x").status, 200);
  EXPECT_EQ(server.connect().ask(most + "x").status, 200);
  HttpTestClient gone = server.connect();
  gone.send(most);
  gone.close();
  EXPECT_TRUE(comes_true([&] { return server.connect().ask(most + "x").status == 200; }));
}

TEST(HttpLimits, AChunkedBodyWithoutEndStopsAtTheLimit) {
  HttpTestServer server({.body_bytes = 1 << 20});
  HttpTestClient client = server.connect();
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
  for (int i = 0; i < 20 && client.send(chunk); ++i) {
  }
  EXPECT_EQ(client.read_answer().status, 413);
}

TEST(HttpLimits, AThousandConnectionsAtOnce) {
  rlimit former{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &former), 0);
  const rlimit wanted{.rlim_cur = std::min<rlim_t>(former.rlim_max, 4096),
                      .rlim_max = former.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &wanted), 0);
  if (wanted.rlim_cur < 2200) GTEST_SKIP() << "at most " << wanted.rlim_cur << " files";
  {
    constexpr int num_connections = 1000;
    HttpTestServer server({.connections = num_connections});
    std::vector<HttpTestClient> clients;
    for (int i = 0; i < num_connections; ++i) clients.push_back(server.connect());
    for (HttpTestClient& client : clients) client.send(kKept);
    std::vector<std::shared_ptr<HttpReply>> replies;
    for (int i = 0; i < num_connections; ++i) replies.push_back(server.next_reply());
    EXPECT_EQ(server->counts().connections_open, num_connections);

    HttpTestClient another = server.connect();
    const HttpTestAnswer refused = another.ask(kGet);
    EXPECT_EQ(refused.status, 503);
    EXPECT_TRUE(refused.has("Connection: close"));
    EXPECT_EQ(server->counts().connections_refused, 1);

    for (const auto& reply : replies) EXPECT_TRUE(reply->send(200, "text/plain", "all"));
    for (HttpTestClient& client : clients) EXPECT_EQ(client.read_answer().body, "all");
    clients.pop_back();
    EXPECT_TRUE(comes_true([&] { return server->counts().connections_open < num_connections; }));
    EXPECT_EQ(server.connect().ask(kGet).status, 200);
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &former), 0);
}

TEST(HttpLimits, WithoutDescriptorsConnectionsWait) {
  if (kHasAddressSanitizer) GTEST_SKIP() << "the sanitizers open files of their own";
  HttpTestServer server;
  HttpTestClient open = server.connect();
  EXPECT_EQ(open.ask(kGet).status, 200);
  rlimit former{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &former), 0);
  const int next = ::dup(0);
  ASSERT_GE(next, 0);
  ::close(next);
  // The client's socket is the last that is to be had.
  const rlimit full{.rlim_cur = static_cast<rlim_t>(next) + 1, .rlim_max = former.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
  HttpTestClient waiting = server.connect();
  waiting.send(kGet);
  std::this_thread::sleep_for(milliseconds(150));
  EXPECT_EQ(open.ask(kGet).status, 200);
  EXPECT_EQ(server->counts().connections_total, 1);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &former), 0);
  EXPECT_EQ(waiting.read_answer().status, 200);
}

TEST(HttpLimits, AClientThatGoesAwayCancelsItsRequest) {
  HttpTestServer server;
  std::atomic<int> num_cancelled = 0;
  const auto expect_cancelled = [&](const std::shared_ptr<HttpReply>& reply) {
    EXPECT_TRUE(comes_true([&] { return reply->is_cancelled(); }));
    EXPECT_FALSE(reply->send(200, "text/plain", "nobody"));
    EXPECT_FALSE(reply->begin_stream(200, "text/plain"));
    EXPECT_FALSE(reply->write("nobody"));
    EXPECT_FALSE(reply->end());
    bool is_called = false;
    reply->on_cancel([&] { is_called = true; });
    EXPECT_TRUE(is_called);  // at once
  };
  // Before the answer; the callback may hold the reply.
  HttpTestClient before = server.connect();
  before.send(kKept);
  auto reply = server.next_reply();
  reply->on_cancel([&, reply] { num_cancelled += reply->is_cancelled(); });
  before.close();
  EXPECT_TRUE(comes_true([&] { return num_cancelled == 1; }));
  expect_cancelled(reply);

  // Within a stream, by RST.
  HttpTestClient within = server.connect();
  within.send(kKept);
  reply = server.next_reply();
  reply->on_cancel([&] { num_cancelled += 100; });
  reply->on_cancel([&] { ++num_cancelled; });  // in place of the former
  reply->begin_stream(200, "text/plain");
  reply->write("one");
  EXPECT_TRUE(within.read_until("one"));
  within.reset();
  EXPECT_TRUE(comes_true([&] { return num_cancelled == 2; }));
  expect_cancelled(reply);

  // By closing its sending half: whoever waits for an answer keeps it open.
  HttpTestClient half = server.connect();
  half.send(kKept);
  reply = server.next_reply();
  half.shut_down_sending();
  EXPECT_TRUE(half.is_closed_by_server());
  expect_cancelled(reply);
  EXPECT_EQ(server->counts().requests_cancelled, 3);

  // An answer that is complete is not cancelled.
  HttpTestClient done = server.connect();
  done.send(kKept);
  reply = server.next_reply();
  reply->on_cancel([&] { num_cancelled += 100; });
  reply->send(200, "text/plain", "done");
  EXPECT_EQ(done.read_answer().body, "done");
  done.reset();
  EXPECT_TRUE(comes_true([&] { return server->counts().connections_open == 0; }));
  EXPECT_EQ(num_cancelled, 2);
}

TEST(HttpLimits, RequestsBeforeAHalfThatIsClosedAreAnswered) {
  HttpTestServer server;
  HttpTestClient client = server.connect();
  client.send(kGet + kGet);
  client.shut_down_sending();
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_TRUE(client.is_closed_by_server());
}

TEST(HttpLimits, ASlowReaderOfAStreamIsDisconnected) {
  HttpTestServer server({.stream_bytes = 100'000});
  HttpTestClient slow = server.connect(4096);
  HttpTestClient other = server.connect();
  slow.send(kKept);
  const auto reply = server.next_reply();
  std::atomic<bool> is_called = false;
  reply->on_cancel([&] { is_called = true; });
  reply->begin_stream(200, "text/event-stream");
  const std::string piece(10'000, 'x');
  int num_pieces = 0;  // the kernel has buffers of its own, of some MB
  while (num_pieces < 100'000 && reply->write(piece)) ++num_pieces;
  EXPECT_LT(num_pieces, 100'000);
  EXPECT_TRUE(reply->is_cancelled());
  EXPECT_TRUE(comes_true([&] { return is_called.load(); }));
  EXPECT_EQ(other.ask(kGet).status, 200);
  EXPECT_FALSE(slow.read_answer().is_whole);
}

TEST(HttpLimits, AReaderWhoStopsRunsOutOfTime) {
  HttpTestServer server({.write_timeout = milliseconds(200)});
  HttpTestClient stopped = server.connect(4096);
  stopped.send(kKept);
  const auto reply = server.next_reply();
  EXPECT_TRUE(reply->send(200, "text/plain", std::string(64 << 20, 'x')));
  EXPECT_TRUE(comes_true([&] { return server->counts().connections_open == 0; }));
  EXPECT_FALSE(stopped.read_answer().is_whole);
}

TEST(HttpLimits, APieceLargerThanTheLimitOfAStreamFits) {
  HttpTestServer server({.stream_bytes = 1000});
  HttpTestClient client = server.connect();
  client.send(kKept);
  const auto reply = server.next_reply();
  reply->begin_stream(200, "text/plain");
  EXPECT_TRUE(client.read_until("\r\n\r\n"));
  const std::string piece(100'000, 'x');
  // The head is on its way for a moment after the client has it.
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_TRUE(reply->write(piece));
  EXPECT_TRUE(client.read_until(piece));
}

TEST(HttpStop, LetsAnswersFinishAndClosesTheRest) {
  HttpTestServer server;
  HttpTestClient idle = server.connect();
  EXPECT_EQ(idle.ask(kGet).status, 200);
  HttpTestClient half_a_request = server.connect();
  half_a_request.send("GET /");
  HttpTestClient streaming = server.connect();
  streaming.send(kKept);
  const auto stream = server.next_reply();
  stream->begin_stream(200, "text/plain");
  stream->write("one");
  EXPECT_TRUE(streaming.read_until("one\r\n"));
  HttpTestClient waiting = server.connect();
  waiting.send(kKept);
  const auto answer = server.next_reply();

  std::thread stop([&] { server->stop(std::chrono::seconds(10)); });
  EXPECT_TRUE(idle.is_closed_by_server());
  EXPECT_TRUE(half_a_request.is_closed_by_server());
  EXPECT_TRUE(comes_true([&] { return server->counts().connections_open == 2; }));
  EXPECT_TRUE(stream->write("two"));
  EXPECT_TRUE(streaming.read_until("two"));
  EXPECT_TRUE(stream->end());
  EXPECT_TRUE(streaming.read_until("0\r\n\r\n"));
  EXPECT_TRUE(streaming.is_closed_by_server());
  EXPECT_TRUE(answer->send(200, "text/plain", "last"));
  const HttpTestAnswer last = waiting.read_answer();
  EXPECT_EQ(last.body, "last");
  EXPECT_TRUE(last.has("Connection: close"));
  stop.join();
  EXPECT_ANY_THROW(server.connect());
}

TEST(HttpStop, CutsWhatDoesNotFinish) {
  HttpTestServer server;
  HttpTestClient client = server.connect();
  client.send(kKept);
  const auto reply = server.next_reply();
  std::atomic<bool> is_called = false;
  reply->on_cancel([&] { is_called = true; });
  reply->begin_stream(200, "text/plain");
  reply->write("one");
  EXPECT_TRUE(client.read_until("one\r\n"));
  EXPECT_EQ(server->stop(milliseconds(50)), 1);
  EXPECT_EQ(server->stop(milliseconds(50)), 0);
  EXPECT_TRUE(is_called);
  EXPECT_TRUE(reply->is_cancelled());
  EXPECT_FALSE(reply->write("two"));
  EXPECT_TRUE(client.is_closed_by_server());
}

TEST(HttpStop, RepliesOutliveTheServer) {
  std::shared_ptr<HttpReply> reply;
  {
    HttpTestServer server;
    HttpTestClient client = server.connect();
    client.send(kKept);
    reply = server.next_reply();
  }
  EXPECT_TRUE(reply->is_cancelled());
  EXPECT_FALSE(reply->send(200, "text/plain", "late"));
}

}  // namespace
}  // namespace skein
