// Both ends over a socket pair or the loopback; strangers who know another key, another name, or
// only how to speak TLS.
#include "skein/replica/secure_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include "skein/base/error.h"

namespace skein {
namespace {

using testing::HasSubstr;

const ReplicaKey kKey = {'k', 'e', 'y'}, kOther = {'o', 't', 'h', 'e', 'r'};

SecureSocket::TimePoint soon() {
  return std::chrono::steady_clock::now() + std::chrono::minutes(1);
}

struct Ends {
  Ends() {
    int files[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, files), 0);
    asks = std::make_unique<SecureSocket>(FileDescriptor(files[0]), "asked");
    asked = std::make_unique<SecureSocket>(FileDescriptor(files[1]), "asking");
  }
  std::unique_ptr<SecureSocket> asks, asked;
};

// What both ends say where the one proves with `name` and `key` to node.1, which knows kKey; "": it
// is believed. An end that fails closes.
struct Said {
  std::string asks, asked;
};
Said proof(const std::string& name, const ReplicaKey& key) {
  Ends ends;
  Said said;
  const auto words = [](auto& end, const auto& call) {
    try {
      call();
      return std::string();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
      end.reset();
      return std::string(error.what());
    }
  };
  std::thread asked([&] {
    said.asked = words(ends.asked, [&] { ends.asked->expect_proof("node.1", kKey, soon()); });
  });
  said.asks = words(ends.asks, [&] { ends.asks->prove(name, key); });
  asked.join();
  return said;
}

TEST(SecureSocket, WhoKnowsTheKeyIsBelievedByBoth) {
  const Said said = proof("node.1", kKey);
  EXPECT_EQ(said.asks, "");
  EXPECT_EQ(said.asked, "");
}

TEST(SecureSocket, AnotherKeyOrAnotherNameIsNamedAtBothEnds) {
  for (const auto& [name, key] : {std::pair("node.1", kOther), std::pair("node.2", kKey)}) {
    const Said said = proof(name, key);
    EXPECT_THAT(said.asks, HasSubstr("asked: it does not know this run's secret")) << name;
    EXPECT_THAT(said.asked, HasSubstr("asking: ")) << name;
  }
}

// Speaks TLS 1.3 at `socket` as a program that knows no key would.
void speak_tls(int socket, bool asks, const std::function<void(SSL_CTX*)>& set = {}) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_method()),
                                                                  SSL_CTX_free);
  if (set) set(context.get());
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), SSL_free);
  SSL_set_fd(ssl.get(), socket);
  EXPECT_NE(asks ? SSL_connect(ssl.get()) : SSL_accept(ssl.get()), 1);
}

TEST(SecureSocket, WhoHasNoKeyIsNotBelieved) {
  Ends ends;
  std::thread stranger([&] { speak_tls(ends.asks->file(), /*asks=*/true); });
  EXPECT_THROW(ends.asked->expect_proof("node.1", kKey, soon()), Error);
  stranger.join();
}

// A certificate of its own, which whoever asks for one would have to check.
TEST(SecureSocket, ACertificateIsNoProof) {
  Ends ends;
  std::thread stranger([&] {
    speak_tls(ends.asked->file(), /*asks=*/false, [](SSL_CTX* context) {
      EVP_PKEY* const key = EVP_EC_gen("P-256");
      X509* const own = X509_new();
      X509_set_version(own, 2);
      X509_gmtime_adj(X509_getm_notBefore(own), 0);
      X509_gmtime_adj(X509_getm_notAfter(own), 3600);
      X509_set_pubkey(own, key);
      X509_sign(own, key, EVP_sha256());
      EXPECT_EQ(SSL_CTX_use_certificate(context, own), 1);
      EXPECT_EQ(SSL_CTX_use_PrivateKey(context, key), 1);
      X509_free(own);
      EVP_PKEY_free(key);
    });
  });
  try {
    ends.asks->prove("node.1", kKey);
    ADD_FAILURE() << "a stranger was believed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kPeerLost);
  }
  ends.asks.reset();
  stranger.join();
}

// Of another program, by the format's page alone (docs/rendezvous_format.md).
int offer_key_of_node_1(SSL* ssl, const EVP_MD*, const unsigned char** identity, size_t* size,
                        SSL_SESSION** session) {
  static const std::string name = "node.1", text = "skein replica tls13" + name;
  unsigned char key[32];
  unsigned int key_size = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  HMAC(EVP_sha256(), kKey.data(), static_cast<int>(kKey.size()), bytes, text.size(), key,
       &key_size);
  const unsigned char suite[] = {0x13, 0x01};
  *session = SSL_SESSION_new();
  SSL_SESSION_set1_master_key(*session, key, key_size);
  SSL_SESSION_set_cipher(*session, SSL_CIPHER_find(ssl, suite));
  SSL_SESSION_set_protocol_version(*session, TLS1_3_VERSION);
  *identity = reinterpret_cast<const unsigned char*>(name.data());
  *size = name.size();
  return 1;
}

// What a program says that knows the key and speaks `protocol`; "": it is believed.
std::string answer_to(const std::string& protocol) {
  Ends ends;
  std::string said;
  std::thread asked([&] {
    try {
      ends.asked->expect_proof("node.1", kKey, soon());
    } catch (const Error& error) {
      said = error.what();
      ends.asked.reset();
    }
  });
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_method()),
                                                                  SSL_CTX_free);
  SSL_CTX_set_psk_use_session_callback(context.get(), offer_key_of_node_1);
  const std::string list = static_cast<char>(protocol.size()) + protocol;
  SSL_CTX_set_alpn_protos(context.get(), reinterpret_cast<const unsigned char*>(list.data()),
                          static_cast<unsigned int>(list.size()));
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), SSL_free);
  SSL_set_fd(ssl.get(), ends.asks->file());
  (void)SSL_connect(ssl.get());
  asked.join();
  return said;
}

TEST(SecureSocket, AVersionWithAnotherProtocolIsNamed) {
  EXPECT_EQ(answer_to("skein-replica/3"), "");
  EXPECT_THAT(answer_to("skein-replica/4"), HasSubstr("of another version"));
}

TEST(SecureSocket, AProofHasADeadline) {
  Ends ends;
  std::thread stranger([&] {
    for (int i = 0; i < 40; ++i) {  // the beginning of a ClientHello, a byte at a time
      const char bytes[] = {22, 3, 1, 2, 0, 1};
      const char byte = i < 6 ? bytes[i] : '\0';
      if (::send(ends.asks->file(), &byte, 1, MSG_NOSIGNAL) != 1) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  const auto now = std::chrono::steady_clock::now();
  try {
    ends.asked->expect_proof("node.1", kKey, now + std::chrono::milliseconds(300));
    ADD_FAILURE() << "a stranger was believed";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("silent for too long"));
  }
  stranger.join();
}

class Connected : public testing::Test {
 protected:
  Connected() {
    std::thread asked([&] { ends_.asked->expect_proof("node.1", kKey, soon()); });
    ends_.asks->prove("node.1", kKey);
    asked.join();
  }
  static std::vector<std::byte> bytes(size_t count) {
    std::vector<std::byte> bytes(count);
    for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * i >> 3);
    return bytes;
  }
  Ends ends_;
};

TEST_F(Connected, BytesArriveAsTheyWereInBothDirections) {
  for (const size_t count : {1u, 17u, 16384u, 16385u, 5u << 20}) {
    for (const bool back : {false, true}) {
      SecureSocket &from = back ? *ends_.asked : *ends_.asks,
                   &to = back ? *ends_.asks : *ends_.asked;
      const auto sent = bytes(count);
      std::vector<std::byte> found(count);
      std::thread sends([&] {
        from.send(std::span(sent).first(count / 2), /*more=*/true);
        from.renew_key();
        from.send(std::span(sent).subspan(count / 2));
      });
      to.wait();
      EXPECT_TRUE(to.receive(found));
      sends.join();
      EXPECT_TRUE(found == sent) << count;
    }
  }
}

TEST_F(Connected, WhatWasReadAheadIsNotWaitedFor) {
  ends_.asks->send(bytes(100));
  std::vector<std::byte> found(50);
  ends_.asked->wait();
  EXPECT_TRUE(ends_.asked->receive(found));
  ends_.asked->wait();  // nothing more comes
  EXPECT_TRUE(ends_.asked->receive(found));
}

TEST_F(Connected, AnEndBetweenMessagesIsNoErrorAndInsideOneIs) {
  std::vector<std::byte> found(100);
  ends_.asks->send(bytes(150));
  ends_.asks.reset();
  EXPECT_TRUE(ends_.asked->receive(found));
  EXPECT_THROW(ends_.asked->receive(found), Error);
  EXPECT_FALSE(ends_.asked->receive(found));
}

// Whoever sits on the way passes on other bytes than were sent.
TEST_F(Connected, ABitThatSomebodyChangedEndsTheConnection) {
  const std::string secret = "the weights of a model that nobody else has";
  ends_.asks->send(std::as_bytes(std::span(secret)));
  std::vector<char> passed(4096);
  const ssize_t got = ::recv(ends_.asked->file(), passed.data(), passed.size(), 0);
  ASSERT_GT(got, ssize_t{20});
  EXPECT_EQ(std::string(passed.data(), got).find("weights"), std::string::npos);
  passed[got / 2] ^= 1;
  ASSERT_EQ(::send(ends_.asks->file(), passed.data(), got, 0), got);
  std::vector<std::byte> found(secret.size());
  EXPECT_THROW(ends_.asked->receive(found), Error);
}

}  // namespace
}  // namespace skein
