#include "skein/replica/wire.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"

namespace skein {
namespace {

constexpr size_t kChecksumDigits = 32;
constexpr uint32_t kMagic = 0x72706c33;
constexpr int64_t kMostIndex = 1 << 16;  // of a machine's workers

struct WireRequest {
  uint32_t magic = kMagic;
  uint32_t ask = 0;
  char save[256] = {};
  int64_t number = 0, timeline = 0, step = 0;
  int32_t rank = 0, num_ranks = 0;
  int64_t generation = 0, begin = 0, count = 0;
  int64_t index = 0;
};

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
  if (space == text.npos || space + 1 == text.size()) return {};
  ReplicaEndpoint endpoint{text.substr(0, space), text.substr(space + 1)};
  return socket_address(endpoint.address) ? endpoint : ReplicaEndpoint{};
}

ReplicaSocket ReplicaSocket::connect_to(const ReplicaEndpoint& endpoint, const ReplicaKey& key,
                                        const Opened& opened) {
  const auto to = socket_address(endpoint.address);
  auto made = std::make_unique<SecureSocket>(
      FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), endpoint.address);
  if (!to) made->lost("is no address");
  if (opened) opened(made->file());
  try {
    if (::connect(made->file(), reinterpret_cast<const sockaddr*>(&*to), sizeof *to) != 0) {
      const bool is_silent = errno == EINPROGRESS || errno == EAGAIN;  // by SO_SNDTIMEO
      made->lost(is_silent ? SecureSocket::kSilent : errno_text(errno));
    }
    made->prove(endpoint.host, key);
  } catch (...) {
    if (opened) opened(-1);
    throw;
  }
  return ReplicaSocket(std::move(made));
}

void ReplicaSocket::send_checked(std::span<const std::byte> bytes,
                                 const std::function<bool()>& are_good) {
  send(bytes, true);
  const std::string checksum = xxh3_128_hex(bytes);
  if (are_good && !are_good()) socket_->lost("they changed while they were read");
  send(std::as_bytes(std::span(checksum)));
}

void ReplicaSocket::receive_checked(std::span<std::byte> bytes) {
  std::string checksum(kChecksumDigits, '0');
  if (!receive(bytes) || !receive(std::as_writable_bytes(std::span(checksum)))) {
    socket_->lost("the connection was closed");
  }
  if (xxh3_128_hex(bytes) != checksum) {
    fail(ErrorCode::kCorrupt, "the copies of the state at {}: {} bytes arrived damaged",
         socket_->address(), bytes.size());
  }
}

void ReplicaSocket::send_number(int64_t number) { send(std::as_bytes(std::span(&number, 1))); }

int64_t ReplicaSocket::receive_number() {
  int64_t number = 0;
  if (!receive(std::as_writable_bytes(std::span(&number, 1)))) {
    socket_->lost("the connection was closed");
  }
  return number;
}

void send_request(ReplicaSocket& socket, const ReplicaRequest& request) {
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
  request.label.save.copy(wire.save, sizeof wire.save);
  socket.send(std::as_bytes(std::span(&wire, 1)));
}

std::optional<ReplicaRequest> receive_request(ReplicaSocket& socket) {
  WireRequest wire;
  if (!socket.receive(std::as_writable_bytes(std::span(&wire, 1)))) return std::nullopt;
  if (wire.magic != kMagic || wire.ask < 1 || wire.ask > 3 || wire.begin < 0 || wire.count < 0 ||
      wire.index < 0 || wire.index > kMostIndex || wire.number < 0) {
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

ReplicaClient::ReplicaClient(const ReplicaEndpoint& endpoint, const ReplicaKey& key,
                             const ReplicaSocket::Opened& opened)
    : endpoint_(endpoint), socket_(ReplicaSocket::connect_to(endpoint, key, opened)) {}

int64_t ReplicaClient::ask(const ReplicaRequest& request) {
  send_request(socket_, request);
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
