// A TCP connection between two machines of a run, encrypted, whose ends have proved to each other
// that they know the run's secret: TLS 1.3 with a key that both know before (RFC 8446, 4.2.11).
//
//   identity  the name of the machine that is asked (HostRecord::host), readable by whoever listens
//   key       HMAC-SHA256(ReplicaKey, "skein replica tls13" and the identity)
//   session   psk_dhe_ke with X25519, TLS_AES_128_GCM_SHA256, ALPN "skein-replica/3"; no tickets,
//             no certificates, no early data, keys renewed every kBytesOfAKey
//
// So neither the secret nor anything that would serve a second time is ever sent; who knows the
// secret later cannot read what was sent before; bytes that somebody changed, left out or sent
// again end the connection. There is no form without encryption that could be fallen back to.
//
// Errors   Error{kPeerLost} naming the address: not there, silent for kPatienceSeconds, no proof
// Threads  one; another one may end all calls by ::shutdown of the socket
// Source   OpenSSL's libssl, SSL_CTX_set_psk_use_session_callback(3)
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "skein/base/files/file.h"

namespace skein {

// What all machines of a run, and nobody else, can compute: launch/place/replica_address.h.
using ReplicaKey = std::array<char, 32>;

class SecureSocket {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr int kPatienceSeconds = 20;
  static constexpr const char* kSilent = "silent for too long";
  static constexpr int64_t kBytesOfAKey = int64_t{1} << 36;  // of 2^38 that AES-GCM may protect

  // `address` is for errors. `socket` need not be connected yet.
  SecureSocket(FileDescriptor socket, std::string address);
  ~SecureSocket();
  SecureSocket(const SecureSocket&) = delete;
  SecureSocket& operator=(const SecureSocket&) = delete;

  int file() const { return socket_.get(); }
  const std::string& address() const { return address_; }

  // The proof, at the end that asks and at the end that is asked; `host`: the latter's name.
  void prove(const std::string& host, const ReplicaKey& key);
  void expect_proof(const std::string& host, const ReplicaKey& key, TimePoint deadline);

  // Sends what is kept back for more, too, unless there is more to come.
  void send(std::span<const std::byte> bytes, bool more = false);
  // False: the other end closed before the first byte.
  bool receive(std::span<std::byte> bytes);
  // Until there is something to receive, or the other end closes, however long that takes.
  void wait() const;
  // Bytes from now on are encrypted with another key.
  void renew_key();
  [[noreturn]] void lost(const std::string& what) const;

 private:
  struct Session;  // libssl's
  void begin(const std::string& host, const ReplicaKey& key, TimePoint deadline);
  void finish();
  [[noreturn]] void fail_as_libssl_says() const;
  bool wait_for_bytes();
  int receive_plain(char* bytes, int size);
  bool flush();

  FileDescriptor socket_;
  const std::string address_;
  TimePoint deadline_ = TimePoint::max();
  bool closed_ = false;  // by the other end
  int64_t sent_ = 0;     // with this key
  std::string problem_;  // of the socket; libssl knows only that there is one
  std::unique_ptr<Session> session_;
};

}  // namespace skein
