// How machines pass copies of the state to each other: TCP, a request, its answer, both with
// checksums. A request begins with the token of the machine that it asks, which follows from the
// run's secret (launch/replica_address.h); who does not know it gets no answer.
//
//   put    a part, to be kept in the memory of the machine that is asked: it says whether it wants
//          it, image and checksum follow, and it says whether it has it
//   read   bytes of the data or of the record of a part that it keeps: bytes and checksum come back
//
// Errors   Error{kPeerLost} naming the address: not there, silent for kPatienceSeconds, or it
//          refuses; kCorrupt for a wrong checksum
// Threads  a client belongs to one thread
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "skein/base/file.h"
#include "skein/replica/replica_memory.h"

namespace skein {

// Of "10.0.0.7:41234"; nothing: it is of another form.
std::optional<sockaddr_in> socket_address(const std::string& text);

// Where a machine's copies can be asked for.
struct ReplicaEndpoint {
  std::string address;  // 10.0.0.7:41234
  std::string token;    // 32 hexadecimal digits

  std::string text() const { return address.empty() ? "" : address + " " + token; }
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
  explicit ReplicaSocket(FileDescriptor socket, std::string address);
  // `opened` gets the socket before it connects, which may take kPatienceSeconds: another thread
  // may end that, and all that follows, by ::shutdown.
  using Opened = std::function<void(int socket)>;
  static ReplicaSocket connect_to(const std::string& address, const Opened& opened = {});
  // Until the other end sends or closes, however long that takes.
  void wait() const;

  void send(std::span<const std::byte> bytes, bool more = false);
  // False: the other end closed before the first byte.
  using TimePoint = std::chrono::steady_clock::time_point;
  bool receive(std::span<std::byte> bytes, TimePoint deadline = TimePoint::max());
  // With their checksum behind them. It is left out, and they are worth nothing, unless `are_good`
  // still holds once it is computed.
  void send_checked(std::span<const std::byte> bytes, const std::function<bool()>& are_good = {});
  void receive_checked(std::span<std::byte> bytes);
  void send_number(int64_t number);
  int64_t receive_number();

 private:
  void wait_for_bytes(TimePoint deadline) const;
  [[noreturn]] void lost(const std::string& what) const;
  FileDescriptor socket_;
  std::string address_;
};

void send_request(ReplicaSocket& socket, const ReplicaRequest& request, const std::string& token);
// Nothing: the other end has closed, or is no member of this run.
std::optional<ReplicaRequest> receive_request(
    ReplicaSocket& socket, const std::string& token,
    ReplicaSocket::TimePoint deadline = ReplicaSocket::TimePoint::max());

class ReplicaClient {
 public:
  explicit ReplicaClient(const ReplicaEndpoint& endpoint, const ReplicaSocket::Opened& opened = {});
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
