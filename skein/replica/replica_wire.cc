#include "skein/replica/replica_wire.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "skein/base/error.h"
#include "skein/base/hash.h"
#include "skein/base/heartbeat.h"

namespace skein {
namespace {

constexpr int kPatienceSeconds = 20;
constexpr size_t kTokenBytes = 32;
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr uint32_t kMagic = 0x72706c32;
constexpr int64_t kMostIndex = 1 << 16;  // of a machine's workers

struct WireRequest {
  uint32_t magic = kMagic;
  uint32_t ask = 0;
  char token[kTokenBytes] = {};
  char save[256] = {};
  int64_t number = 0, timeline = 0, step = 0;
  int32_t rank = 0, num_ranks = 0;
  int64_t generation = 0, begin = 0, count = 0;
  int64_t index = 0;
};

// Takes as long for a wrong token as for a right one.
bool is_same(const std::string& token, const char* found) {
  unsigned differences = token.size() == kTokenBytes ? 0 : 1;
  for (size_t i = 0; i < token.size() && i < kTokenBytes; ++i) differences |= token[i] ^ found[i];
  return differences == 0;
}

}  // namespace

std::optional<sockaddr_in> socket_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (colon == text.npos) return std::nullopt;
  uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto number = std::from_chars(text.data() + colon + 1, end, port);
  if (number.ec != std::errc() || number.ptr != end || port == 0 ||
      ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1) {
    return std::nullopt;
  }
  address.sin_port = htons(port);
  return address;
}

ReplicaEndpoint ReplicaEndpoint::parse(const std::string& text) {
  const size_t space = text.find(' ');
  if (space == text.npos || text.size() - space - 1 != kTokenBytes) return {};
  ReplicaEndpoint endpoint{text.substr(0, space), text.substr(space + 1)};
  const bool is_token = endpoint.token.find_first_not_of("0123456789abcdef") == endpoint.token.npos;
  return is_token && socket_address(endpoint.address) ? endpoint : ReplicaEndpoint{};
}

ReplicaSocket::ReplicaSocket(FileDescriptor socket, std::string address)
    : socket_(std::move(socket)), address_(std::move(address)) {
  const timeval patience{kPatienceSeconds, 0};
  const int yes = 1;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  // A machine that is gone is noticed while nobody sends.
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_KEEPIDLE, &kPatienceSeconds, sizeof(int));
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_KEEPINTVL, &kPatienceSeconds, sizeof(int));
}

ReplicaSocket ReplicaSocket::connect_to(const std::string& address, const Opened& opened) {
  const auto to = socket_address(address);
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ReplicaSocket made(std::move(socket), address);
  if (!to) made.lost("is no address");
  if (opened) opened(made.socket_.get());
  if (::connect(made.socket_.get(), reinterpret_cast<const sockaddr*>(&*to), sizeof *to) != 0) {
    made.lost(errno_text(errno));
  }
  return made;
}

void ReplicaSocket::wait() const {
  pollfd one{socket_.get(), POLLIN, 0};
  while (::poll(&one, 1, -1) < 0 && errno == EINTR) {
  }
}

void ReplicaSocket::lost(const std::string& what) const {
  fail(ErrorCode::kPeerLost, "the copies of the state at {}: {}", address_, what);
}

void ReplicaSocket::send(std::span<const std::byte> bytes, bool more) {
  while (!bytes.empty()) {
    const size_t piece = std::min(bytes.size(), kPieceBytes);
    const ssize_t sent =
        ::send(socket_.get(), bytes.data(), piece, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) lost(errno_text(errno));
    heartbeat::tick();
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
}

void ReplicaSocket::wait_for_bytes(TimePoint deadline) const {
  using std::chrono::milliseconds;
  const auto left = deadline - std::chrono::steady_clock::now();
  pollfd one{socket_.get(), POLLIN, 0};
  const auto ms = std::max<int64_t>(0, std::chrono::duration_cast<milliseconds>(left).count());
  if (::poll(&one, 1, static_cast<int>(ms)) == 0) lost("silent for too long");
}

bool ReplicaSocket::receive(std::span<std::byte> bytes, TimePoint deadline) {
  bool is_first = true;
  while (!bytes.empty()) {
    if (deadline != TimePoint::max()) wait_for_bytes(deadline);
    const ssize_t got = ::recv(socket_.get(), bytes.data(), std::min(bytes.size(), kPieceBytes), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 && is_first) return false;
    if (got <= 0) lost(got == 0 ? "the connection was closed" : errno_text(errno));
    is_first = false;
    heartbeat::tick();
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return true;
}

void ReplicaSocket::send_checked(std::span<const std::byte> bytes,
                                 const std::function<bool()>& are_good) {
  send(bytes, true);
  const std::string checksum = xxh3_128_hex(bytes);
  if (are_good && !are_good()) lost("they changed while they were read");
  send(std::as_bytes(std::span(checksum)));
}

void ReplicaSocket::receive_checked(std::span<std::byte> bytes) {
  std::string checksum(kTokenBytes, '0');
  if (!receive(bytes) || !receive(std::as_writable_bytes(std::span(checksum)))) {
    lost("the connection was closed");
  }
  if (xxh3_128_hex(bytes) != checksum) {
    fail(ErrorCode::kCorrupt, "the copies of the state at {}: {} bytes arrived damaged", address_,
         bytes.size());
  }
}

void ReplicaSocket::send_number(int64_t number) { send(std::as_bytes(std::span(&number, 1))); }

int64_t ReplicaSocket::receive_number() {
  int64_t number = 0;
  if (!receive(std::as_writable_bytes(std::span(&number, 1)))) lost("the connection was closed");
  return number;
}

void send_request(ReplicaSocket& socket, const ReplicaRequest& request, const std::string& token) {
  WireRequest wire{.ask = static_cast<uint32_t>(request.ask),
                   .number = request.label.number,
                   .timeline = request.label.timeline,
                   .step = request.label.step,
                   .rank = request.label.rank,
                   .num_ranks = request.label.num_ranks,
                   .generation = request.generation,
                   .begin = request.begin,
                   .count = request.count,
                   .index = request.index};
  token.copy(wire.token, sizeof wire.token);
  request.label.save.copy(wire.save, sizeof wire.save);
  socket.send(std::as_bytes(std::span(&wire, 1)));
}

std::optional<ReplicaRequest> receive_request(ReplicaSocket& socket, const std::string& token,
                                              ReplicaSocket::TimePoint deadline) {
  WireRequest wire;
  if (!socket.receive(std::as_writable_bytes(std::span(&wire, 1)), deadline)) return std::nullopt;
  if (wire.magic != kMagic || !is_same(token, wire.token) || wire.ask < 1 || wire.ask > 3 ||
      wire.begin < 0 || wire.count < 0 || wire.index < 0 || wire.index > kMostIndex ||
      wire.number < 0) {
    return std::nullopt;
  }
  return ReplicaRequest{.ask = static_cast<ReplicaAsk>(wire.ask),
                        .label = {std::string(wire.save, ::strnlen(wire.save, sizeof wire.save)),
                                  wire.number, wire.timeline, wire.step, wire.rank, wire.num_ranks},
                        .generation = wire.generation,
                        .index = static_cast<int32_t>(wire.index),
                        .begin = wire.begin,
                        .count = wire.count};
}

ReplicaClient::ReplicaClient(const ReplicaEndpoint& endpoint, const ReplicaSocket::Opened& opened)
    : endpoint_(endpoint), socket_(ReplicaSocket::connect_to(endpoint.address, opened)) {}

int64_t ReplicaClient::ask(const ReplicaRequest& request) {
  send_request(socket_, request, endpoint_.token);
  return socket_.receive_number();
}

bool ReplicaClient::put(int64_t generation, int index, ReplicaMemory& part) {
  const auto label = part.label();
  if (!label) fail(ErrorCode::kInternal, "a part that is not complete is to be passed on");
  const std::span<const std::byte> image = part.image();
  const int64_t wanted = ask({.ask = ReplicaAsk::kPut,
                              .label = *label,
                              .generation = generation,
                              .index = index,
                              .count = std::ssize(image)});
  if (wanted == 0) return false;
  socket_.send_checked(image);
  return socket_.receive_number() > 0;
}

void ReplicaClient::read_data(const ReplicaLabel& label, int64_t begin,
                              std::span<std::byte> target) {
  const int64_t bytes = ask(
      {.ask = ReplicaAsk::kReadData, .label = label, .begin = begin, .count = std::ssize(target)});
  if (bytes != std::ssize(target)) {
    fail(ErrorCode::kPeerLost,
         "the copies of the state at {}: the part of rank {} of step {} is not there",
         endpoint_.address, label.rank, label.step);
  }
  socket_.receive_checked(target);
}

std::string ReplicaClient::read_record(const ReplicaLabel& label) {
  const int64_t bytes = ask({.ask = ReplicaAsk::kReadRecord, .label = label});
  constexpr int64_t kMost = int64_t{1} << 30;
  if (bytes <= 0 || bytes > kMost) {
    fail(ErrorCode::kPeerLost,
         "the copies of the state at {}: the part of rank {} of step {} is not there",
         endpoint_.address, label.rank, label.step);
  }
  std::string record(static_cast<size_t>(bytes), '\0');
  socket_.receive_checked(std::as_writable_bytes(std::span(record)));
  return record;
}

}  // namespace skein
