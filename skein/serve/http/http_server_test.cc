#include "skein/serve/http/http_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "skein/base/error.h"
#include "skein/serve/http/http_client_testing.h"

namespace skein {
namespace {

const std::string kGet = "GET /echo?x=1 HTTP/1.1\r\nHost: a\r\n\r\n";

std::string post(std::string_view body, std::string_view headers = "") {
  return fmt::format("POST /echo HTTP/1.1\r\nHost: a\r\n{}Content-Length: {}\r\n\r\n{}", headers,
                     body.size(), body);
}

TEST(HttpServer, AnswersOneRequestAfterTheOtherOnAConnection) {
  HttpTestServer server;
  HttpTestClient client = server.connect();
  for (int i = 0; i < 3; ++i) {
    const HttpTestAnswer answer = client.ask(kGet);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "GET x=1 ");
    EXPECT_TRUE(answer.has("Content-Type: text/plain"));
    EXPECT_EQ(answer.head.find("Connection:"), std::string::npos);
    EXPECT_NE(answer.head.find(" GMT\r\n"), std::string::npos);
    EXPECT_EQ(client.ask(post("hello")).body, "POST  hello");
  }
  const std::string large(3 << 20, 'x');
  EXPECT_EQ(client.ask(post(large)).body, "POST  " + large);
  const HttpCounts counts = server->counts();
  EXPECT_EQ(counts.connections_open, 1);
  EXPECT_EQ(counts.connections_total, 1);
  EXPECT_GT(counts.bytes_received, 3 << 20);
  EXPECT_GT(counts.bytes_sent, 3 << 20);
  EXPECT_TRUE(comes_true([&] { return server->counts().answers_of_status[200] == 7; }));
}

TEST(HttpServer, RequestsThatComeAtOnceAreAnsweredInOrder) {
  HttpTestServer server;
  HttpTestClient client = server.connect();
  client.send("GET /kept HTTP/1.1\r\nHost: a\r\n\r\n" + post("second") + kGet);
  const auto reply = server.next_reply();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(server->counts().bytes_sent, 0);
  reply->send(404, "text/plain", "first");
  EXPECT_EQ(client.read_answer().body, "first");
  EXPECT_EQ(client.read_answer().body, "POST  second");
  EXPECT_EQ(client.read_answer().body, "GET x=1 ");
}

TEST(HttpServer, StreamsInChunks) {
  HttpTestServer server;
  HttpTestClient client = server.connect();
  const HttpTestAnswer answer = client.ask("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(answer.has("Transfer-Encoding: chunked"));
  EXPECT_TRUE(answer.has("Content-Type: text/event-stream"));
  EXPECT_EQ(answer.body, "onetwothree");
  EXPECT_TRUE(answer.is_whole);
  EXPECT_EQ(client.ask(kGet).status, 200);
}

TEST(HttpServer, APieceOfAStreamGoesOutAtOnce) {
  HttpTestServer server;
  HttpTestClient client = server.connect();
  client.send("GET /kept HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto reply = server.next_reply();
  EXPECT_TRUE(reply->begin_stream(200, "text/event-stream", {{"X-Model", "tiny"}}));
  EXPECT_TRUE(client.read_until("\r\nX-Model: tiny\r\n\r\n"));
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(reply->write(fmt::format("data: {}\n\n", i)));
    EXPECT_TRUE(client.read_until(fmt::format("data: {}\n\n\r\n", i)));
  }
  EXPECT_TRUE(reply->end());
  EXPECT_TRUE(client.read_until("0\r\n\r\n"));
}

TEST(HttpServer, SpeaksHttp10) {
  HttpTestServer server;
  HttpTestClient once = server.connect();
  const HttpTestAnswer answer = once.ask("GET /echo HTTP/1.0\r\n\r\n");
  EXPECT_EQ(answer.body, "GET  ");
  EXPECT_TRUE(answer.has("Connection: close"));
  EXPECT_TRUE(once.is_closed_by_server());

  HttpTestClient kept = server.connect();
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(kept.ask("GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
                    .has("Connection: keep-alive"));
  }
  // A stream has no chunks: the connection's end is its end.
  const HttpTestAnswer stream = kept.ask("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_TRUE(stream.has("Connection: close"));
  EXPECT_FALSE(stream.has("Transfer-Encoding: chunked"));
  EXPECT_EQ(stream.body, "onetwothree");
}

TEST(HttpServer, ClosesWhenTheClientWantsIt) {
  HttpTestServer server;
  HttpTestClient client = server.connect();
  const HttpTestAnswer answer =
      client.ask("GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.has("Connection: close"));
  EXPECT_TRUE(client.is_closed_by_server());
}

TEST(HttpServer, HeadHasTheHeadOfGetAlone) {
  HttpTestServer server;
  HttpTestClient client = server.connect();
  client.send("HEAD /echo HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(client.read_answer(false).has("Content-Length: 6"));
  client.send("HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(client.read_answer(false).has("Transfer-Encoding: chunked"));
  EXPECT_EQ(client.ask(kGet).body, "GET x=1 ");
}

TEST(HttpServer, OptionsOfTheServerAndOfAPath) {
  HttpTestServer server;
  HttpTestClient client = server.connect();
  const HttpTestAnswer answer = client.ask("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(answer.status, 204);
  EXPECT_TRUE(answer.has("Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
  EXPECT_EQ(answer.head.find("Content-Length"), std::string::npos);
  EXPECT_EQ(client.ask("OPTIONS /echo HTTP/1.1\r\nHost: a\r\n\r\n").body, "OPTIONS  ");
}

TEST(HttpServer, ContinuesWhereTheClientWaitsForIt) {
  HttpTestServer server;
  HttpTestClient client = server.connect();
  const std::string head =
      "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n";
  EXPECT_EQ(client.ask(head).status, 100);
  EXPECT_EQ(client.ask("hello").body, "POST  hello");
  EXPECT_EQ(client.ask(head + "again").body, "POST  again");  // it did not wait
  EXPECT_EQ(client
                .ask("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                     "Content-Length: 100000000\r\n\r\n")
                .status,
            413);
}

TEST(HttpServer, RefusesWithTheFormOfTheCaller) {
  HttpTestServer server({}, 1, [](int status, std::string_view message) {
    return HttpErrorBody{"application/json", fmt::format("{} {}", status, message)};
  });
  HttpTestClient client = server.connect();
  const HttpTestAnswer answer = client.ask(
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(answer.status, 400);
  EXPECT_TRUE(answer.has("Content-Type: application/json"));
  EXPECT_TRUE(answer.has("Connection: close"));
  EXPECT_EQ(answer.body, "400 Transfer-Encoding is given twice, or beside Content-Length");
  EXPECT_TRUE(client.is_closed_by_server());
  EXPECT_TRUE(comes_true([&] { return server->counts().answers_of_status[400] == 1; }));
}

TEST(HttpServer, WhatFollowsARefusedRequestIsNeverHandled) {
  HttpTestServer server;
  HttpTestClient client = server.connect();
  client.send("GET / HTTP/1.1\r\n\r\n" + kGet);
  EXPECT_EQ(client.read_answer().status, 400);
  EXPECT_TRUE(client.is_closed_by_server());
  EXPECT_EQ(server->counts().answers_of_status.count(200), 0U);
}

TEST(HttpServer, AHandlerThatThrowsOrForgetsGives500) {
  HttpTestServer server;
  HttpTestClient client = server.connect();
  const HttpTestAnswer answer = client.ask("GET /throw HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.body.find("secret"), std::string::npos);
  EXPECT_EQ(client.ask("GET /forget HTTP/1.1\r\nHost: a\r\n\r\n").status, 500);
  EXPECT_EQ(client.ask(kGet).status, 200);
}

TEST(HttpServer, AStreamThatIsGivenUpIsCutOff) {
  HttpTestServer server;
  HttpTestClient client = server.connect();
  client.send("GET /kept HTTP/1.1\r\nHost: a\r\n\r\n");
  auto reply = server.next_reply();
  reply->begin_stream(200, "text/plain");
  reply->write("one");
  EXPECT_TRUE(client.read_until("one\r\n"));
  reply = nullptr;
  EXPECT_TRUE(client.is_closed_by_server());
}

TEST(HttpServer, AnAnswerIsGivenOnceAndWithAPlainHead) {
  HttpTestServer server;
  HttpTestClient client = server.connect();
  client.send("GET /kept HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto reply = server.next_reply();
  EXPECT_THROW(reply->write("a"), Error);
  EXPECT_THROW(reply->end(), Error);
  EXPECT_THROW(reply->send(100, "", ""), Error);
  EXPECT_THROW(reply->send(200, "a\r\nX: b", ""), Error);
  EXPECT_THROW(reply->send(200, "", "", {{"X", "a\nb"}}), Error);
  EXPECT_THROW(reply->send(200, "", "", {{"X:", "a"}}), Error);
  EXPECT_THROW(reply->send(200, "", "", {{"content-length", "1"}}), Error);
  EXPECT_TRUE(reply->send(204, "text/plain", "dropped"));
  EXPECT_THROW(reply->send(200, "", ""), Error);
  EXPECT_THROW(reply->begin_stream(200, ""), Error);
  EXPECT_EQ(client.read_answer().head.find("Content-"), std::string::npos);
  EXPECT_EQ(client.ask(kGet).status, 200);
}

TEST(HttpServer, ListensWhereItIsToldOrSaysWhyNot) {
  const HttpHandler handler = [](HttpRequest, std::shared_ptr<HttpReply> reply) {
    reply->send(200, "", "");
  };
  const auto message = [&](const HttpServerOptions& options, ErrorCode code) {
    try {
      HttpServer server(options, handler);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return std::string(error.what());
    }
    return std::string("no error");
  };
  HttpServer server({}, handler);
  EXPECT_EQ(server.url(), fmt::format("http://127.0.0.1:{}", server.port()));
  EXPECT_EQ(message({.port = server.port()}, ErrorCode::kBusy),
            fmt::format("cannot listen on 127.0.0.1:{}: the port is in use by another process; "
                        "choose another one, or 0 for any that is free",
                        server.port()));
  EXPECT_NE(message({.address = "nowhere"}, ErrorCode::kUsage).find("numeric"), std::string::npos);
  EXPECT_NE(message({.address = "192.0.2.1"}, ErrorCode::kUsage).find("does not have the address"),
            std::string::npos);
  EXPECT_NE(message({.port = 65536}, ErrorCode::kUsage).find("65536"), std::string::npos);
  EXPECT_NE(message({.num_threads = 0}, ErrorCode::kUsage).find("threads"), std::string::npos);
  const int port = server.port();
  server.stop(std::chrono::milliseconds(0));
  HttpServer next({.address = "localhost", .port = port}, handler);  // at once
  EXPECT_EQ(HttpTestClient(port).ask(kGet).status, 200);
}

TEST(HttpServer, ListensToIpv6) {
  try {
    HttpServer server({.address = "::"}, [](HttpRequest request, std::shared_ptr<HttpReply> reply) {
      reply->send(200, "", request.peer);
    });
    EXPECT_EQ(server.url(), fmt::format("http://[::]:{}", server.port()));
    HttpTestClient client(server.port());  // of IPv4
    EXPECT_TRUE(client.ask(kGet).body.starts_with("[::ffff:127.0.0.1]:"));
  } catch (const Error& error) {
    GTEST_SKIP() << "this machine has no IPv6: " << error.what();
  }
}

TEST(HttpServer, ManyThreadsServeManyClients) {
  HttpTestServer server({}, 4);
  std::atomic<int> num_right = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      HttpTestClient client = server.connect();
      for (int i = 0; i < 50; ++i) {
        num_right += client.ask(post(std::to_string(i))).body == fmt::format("POST  {}", i);
        num_right += client.ask("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n").body == "onetwothree";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_right, 400);
}

}  // namespace
}  // namespace skein
