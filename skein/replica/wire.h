// How machines pass copies of the state to each other: a connection that is encrypted and whose
// ends have proved that they know the run's secret (secure_socket.h), on it a request and its
// answer. Bytes of the state have a checksum besides, which is of the memory that they come from.
//
//   put    a part, to be kept in the memory of the machine that is asked: it says whether it wants
//          it, image and checksum follow, and it says whether it has it
//   read   bytes of the data or of the record of a part that it keeps: bytes and checksum come back
//
// Errors   Error{kPeerLost} naming the address: not there, silent, or it refuses; kCorrupt for a
//          wrong checksum
// Threads  a client belongs to one thread
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "skein/base/files/file.h"
#include "skein/replica/memory.h"
#include "skein/replica/secure_socket.h"

namespace skein {

// Of "10.0.0.7:41234"; nothing: it is of another form.
std::optional<sockaddr_in> socket_address(const std::string& text);

// Where a machine's copies can be asked for.
struct ReplicaEndpoint {
  std::string address;  // 10.0.0.7:41234
  std::string host;     // HostRecord::host, which no two processes share

  std::string text() const { return address.empty() ? "" : address + " " + host; }
  static ReplicaEndpoint parse(const std::string& text);  // of another form: an empty one
  bool operator==(const ReplicaEndpoint&) const = default;
};

enum class ReplicaAsk : uint32_t { kPut = 1, kReadData = 2, kReadRecord = 3 };

struct ReplicaRequest {
  ReplicaAsk ask = ReplicaAsk::kReadData;
  ReplicaLabel label;
  int64_t generation = 0;  // put: of the machine that asks
  int32_t index = 0;       // put: of the worker there
  int64_t begin = 0;       // read
  int64_t count = 0;       // bytes; read: 0 stands for all of it
};

// A connection, either end of it.
class ReplicaSocket {
 public:
  using TimePoint = SecureSocket::TimePoint;
  // `opened` gets the socket before it connects, which may take kPatienceSeconds: another thread
  // may end that, and all that follows, by ::shutdown. Where that fails it gets -1 before the
  // socket is closed.
  using Opened = std::function<void(int socket)>;
  static ReplicaSocket connect_to(const ReplicaEndpoint& endpoint, const ReplicaKey& key,
                                  const Opened& opened = {});
  // Of somebody who is connected, and must prove until `deadline` that it knows `key`; `host`: the
  // machine at which it is.
  ReplicaSocket(FileDescriptor socket, const std::string& address)
      : socket_(std::make_unique<SecureSocket>(std::move(socket), address)) {}
  void expect_proof(const std::string& host, const ReplicaKey& key, TimePoint deadline) {
    socket_->expect_proof(host, key, deadline);
  }
  // Until the other end sends or closes, however long that takes.
  void wait() const { socket_->wait(); }

  void send(std::span<const std::byte> bytes, bool more = false) { socket_->send(bytes, more); }
  // False: the other end closed before the first byte.
  bool receive(std::span<std::byte> bytes) { return socket_->receive(bytes); }
  // With their checksum behind them. It is left out, and they are worth nothing, unless `are_good`
  // still holds once it is computed.
  void send_checked(std::span<const std::byte> bytes, const std::function<bool()>& are_good = {});
  void receive_checked(std::span<std::byte> bytes);
  void send_number(int64_t number);
  int64_t receive_number();

 private:
  explicit ReplicaSocket(std::unique_ptr<SecureSocket> socket) : socket_(std::move(socket)) {}
  std::unique_ptr<SecureSocket> socket_;
};

void send_request(ReplicaSocket& socket, const ReplicaRequest& request);
// Nothing: the other end has closed, or is of another version.
std::optional<ReplicaRequest> receive_request(ReplicaSocket& socket);

class ReplicaClient {
 public:
  ReplicaClient(const ReplicaEndpoint& endpoint, const ReplicaKey& key,
                const ReplicaSocket::Opened& opened = {});
  const ReplicaEndpoint& endpoint() const { return endpoint_; }

  // False: the other machine does not want it, being in a later generation.
  bool put(int64_t generation, int index, ReplicaMemory& part);
  void read_data(const ReplicaLabel& label, int64_t begin, std::span<std::byte> target);
  std::string read_record(const ReplicaLabel& label);

 private:
  int64_t ask(const ReplicaRequest& request);

  ReplicaEndpoint endpoint_;
  ReplicaSocket socket_;
};

}  // namespace skein
