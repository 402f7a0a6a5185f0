#include "skein/replica/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "skein/base/exception.h"
#include "skein/base/text/log.h"

namespace skein {
namespace {

constexpr int kMostConnections = 1024;
constexpr auto kRetry = std::chrono::seconds(1);
constexpr auto kShutdownAgain = std::chrono::milliseconds(50);

}  // namespace

ReplicaServer::ReplicaServer(int num_workers, const std::string& address, const std::string& host,
                             const ReplicaKey& key)
    : num_workers_(num_workers), key_(key) {
  for (int index = 0; index < num_workers; ++index) {
    for (int slot = 0; slot < kReplicaSlots; ++slot) {
      own_[{index, slot}] = std::make_unique<Kept>("skein-replica");
    }
  }
  if (address.empty()) return;
  {
    const Lock lock(mutex_);
    for (const auto& [key, own] : own_) {
      others_[key] = std::make_unique<Kept>("skein-replica-of-another");
    }
  }
  event_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  if (event_.get() < 0) fail(ErrorCode::kIo, "cannot make an eventfd: {}", errno_text(errno));
  listen_on(address);
  endpoint_.host = host;
  passes_on_ = std::thread([this] { pass_on(); });
  try {
    listens_ = std::thread([this] { accept_connections(); });
  } catch (const std::exception&) {
    ends_ = true;
    const uint64_t one = 1;
    (void)::write(event_.get(), &one, sizeof one);
    passes_on_.join();
    throw;
  }
}

ReplicaServer::~ReplicaServer() {
  if (!listens_.joinable()) return;
  ends_ = true;
  end_generation();
  const uint64_t one = 1;
  (void)::write(event_.get(), &one, sizeof one);
  ::shutdown(listener_.get(), SHUT_RDWR);
  passes_on_.join();
  listens_.join();
  Lock lock(mutex_);
  for (const auto& [number, each] : connections_) ::shutdown(each.socket, SHUT_RDWR);
  changed_.wait(lock, [this]() SKEIN_REQUIRES(mutex_) { return connections_.empty(); });
}

void ReplicaServer::listen_on(const std::string& address) {
  listener_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  socklen_t size = sizeof at;
  if (::inet_pton(AF_INET, address.c_str(), &at.sin_addr) != 1) {
    fail(ErrorCode::kIo, "cannot listen on {}: expected a numeric IPv4 address", address);
  }
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&at), size) != 0 ||
      ::listen(listener_.get(), kMostConnections) != 0 ||
      ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    fail(ErrorCode::kIo, "cannot listen on {}: {}", address, errno_text(errno));
  }
  endpoint_.address = fmt::format("{}:{}", address, ntohs(at.sin_port));
}

void ReplicaServer::begin_generation(int64_t number, const HeartbeatPage& page,
                                     const std::optional<ReplicaEndpoint>& next) {
  end_generation();
  generation_ = number;
  const Lock lock(mutex_);
  page_ = &page;
  next_ = next;
}

// What is on its way is cut off: the other machine may be the one that was lost.
void ReplicaServer::end_generation() {
  Lock lock(mutex_);
  page_ = nullptr;
  next_.reset();
  while (passing_) {  // again and again: what only begins to connect takes no notice
    if (passes_over_ >= 0) ::shutdown(passes_over_, SHUT_RDWR);
    changed_.wait_for(lock, kShutdownAgain, [this]() SKEIN_REQUIRES(mutex_) { return !passing_; });
  }
}

void ReplicaServer::forget_all(int64_t number) {
  generation_ = number;  // no older one puts anything here from now on
  {
    const Lock lock(mutex_);
    for (const auto& [of, each] : connections_) ::shutdown(each.socket, SHUT_RDWR);
  }
  for (Kept* kept : all_kept()) {
    const Lock lock(kept->writes);
    ReplicaMemory(kept->file.get()).forget();
  }
}

ReplicaPlace ReplicaServer::place(int index) {
  ReplicaPlace place;
  for (int slot = 0; slot < kReplicaSlots; ++slot) {
    place.slots.push_back(own_.at({index, slot})->file.get());
  }
  for (const Kept* kept : all_kept()) place.kept.push_back(kept->file.get());
  place.event = event_.get();
  const Lock lock(mutex_);
  place.passes_on = next_.has_value();
  place.worker = index;
  place.workers = num_workers_;
  place.endpoint = endpoint_;
  return place;
}

std::vector<ReplicaServer::Kept*> ReplicaServer::all_kept() {
  std::vector<Kept*> all;
  for (const auto& [key, kept] : own_) all.push_back(kept.get());
  for (Kept* kept : kept_of_others()) all.push_back(kept);
  return all;
}

std::vector<ReplicaServer::Kept*> ReplicaServer::kept_of_others() {
  std::vector<Kept*> all;
  const Lock lock(mutex_);
  for (const auto& [key, kept] : others_) all.push_back(kept.get());
  return all;
}

ReplicaServer::Kept& ReplicaServer::other(Key key) {
  const Lock lock(mutex_);
  auto& kept = others_[key];
  if (kept == nullptr) kept = std::make_unique<Kept>("skein-replica-of-another");
  return *kept;
}

// What workers saved goes to the next machine as soon as it is complete.
void ReplicaServer::pass_on() {
  bool is_done = true;
  bool told = false;
  while (!ends_) {
    pollfd wait{event_.get(), POLLIN, 0};
    const int patience = is_done ? -1 : static_cast<int>(std::chrono::milliseconds(kRetry).count());
    if (::poll(&wait, 1, patience) > 0) {
      uint64_t times = 0;
      (void)::read(event_.get(), &times, sizeof times);
    }
    std::string problem;
    try {
      release_former();
      if (pass_on_all() && std::exchange(told, false)) {
        log::info("the next machine keeps copies of the state again");
      }
    } catch (const std::exception& exception) {
      problem = to_error(exception).what();
    }
    Lock lock(mutex_);
    passing_ = false;
    changed_.notify_all();
    is_done = problem.empty() || page_ == nullptr;  // nobody waits for what was cut off
    lock.unlock();
    if (!is_done && !std::exchange(told, true)) {
      log::warn("no copy of the state reaches the next machine: {}", problem);
    }
  }
}

// Whether anything was passed on; all that there was. A connection lasts no longer than that.
bool ReplicaServer::pass_on_all() {
  const HeartbeatPage* page = nullptr;
  std::optional<ReplicaEndpoint> next;
  {
    const Lock lock(mutex_);
    page = page_;
    next = next_;
    if (page == nullptr || !next) return false;
    passing_ = true;
  }
  std::optional<ReplicaClient> client;
  // It must be forgotten before it is closed: its number may be another file's next.
  const std::unique_ptr<ReplicaServer, void (*)(ReplicaServer*)> held(
      this, [](ReplicaServer* server) { server->hold(-1, nullptr); });
  bool is_any = false;
  for (int index = 0; index < num_workers_; ++index) {
    HeartbeatSlot& slot = page->slot(index);
    const int64_t saved = slot.saved.load(std::memory_order_acquire);
    if (saved <= slot.passed_on.load()) continue;
    if (!client) client.emplace(*next, key_, [&](int socket) { hold(socket, page); });
    ReplicaMemory memory(own_.at({index, replica_slot(saved)})->file.get());
    if (!client->put(generation_, index, memory)) {
      fail(ErrorCode::kPeerLost, "the copies of the state at {}: refused", next->address);
    }
    slot.passed_on.store(saved, std::memory_order_release);
    is_any = true;
  }
  return is_any;
}

// Of machines that passed theirs on to this one in an earlier generation. A worker begins a save
// once the one before is complete on all ranks: with two of one generation here, the older is whole
// everywhere.
void ReplicaServer::release_former() {
  for (int index = 0; index < num_workers_; ++index) {
    const auto label = [&](int slot) {
      return ReplicaMemory(own_.at({index, slot})->file.get()).label();
    };
    const auto one = label(0), other = label(1);
    if (!one || !other || one->save != other->save) continue;
    for (Kept* kept : kept_of_others()) {
      ReplicaMemory memory(kept->file.get());
      const auto is_former = [&] {
        const auto found = memory.label();
        return found && found->save != one->save &&
               found->number < std::min(one->number, other->number);
      };
      if (!is_former()) continue;
      const Lock lock(kept->writes);
      if (is_former()) memory.release();
    }
    return;
  }
}

// The socket that end_generation cuts off, for as long as `page` counts.
void ReplicaServer::hold(int socket, const HeartbeatPage* page) {
  const Lock lock(mutex_);
  if (socket >= 0 && page != page_) fail(ErrorCode::kPeerLost, "the generation is over");
  passes_over_ = socket;
}

void ReplicaServer::accept_connections() {
  while (!ends_) {
    FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.get() < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (ends_) return;
      pollfd pause{-1, 0, 0};  // out of files or memory: others may give some back
      ::poll(&pause, 1, 100);
      continue;
    }
    const Lock lock(mutex_);
    if (ends_ || std::ssize(connections_) >= kMostConnections) continue;
    make_room();
    const int number = num_connections_++;
    connections_[number] = {.socket = socket.get()};
    try {
      std::thread([this, number, held = std::move(socket)]() mutable {
        serve(std::move(held), number);
      }).detach();
    } catch (const std::system_error&) {  // no more threads to be had: it asks again
      connections_.erase(number);
    }
  }
}

// A member proves who it is as soon as it is connected, so the oldest that has not is none.
void ReplicaServer::make_room() {
  const auto is_stranger = [](const auto& of_number) {
    return of_number.second.of == Connection::Of::kStranger;
  };
  if (std::ranges::count_if(connections_, is_stranger) < kMostStrangers) return;
  Connection& oldest = std::ranges::find_if(connections_, is_stranger)->second;
  oldest.of = Connection::Of::kNobody;
  ::shutdown(oldest.socket, SHUT_RDWR);
}

void ReplicaServer::know(int number) {
  const Lock lock(mutex_);
  connections_.at(number).of = Connection::Of::kMember;
}

// Until the other end closes, or says what no member of the run would. Who has proved who it is may
// be silent between two requests.
void ReplicaServer::serve(FileDescriptor file, int number) {
  ReplicaSocket socket(std::move(file), "a machine of this run");  // closed when it counts no more
  try {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(kProofSeconds);
    socket.expect_proof(endpoint_.host, key_, deadline);
    know(number);
    socket.wait();
    auto request = receive_request(socket);
    while (request) {
      if (request->ask == ReplicaAsk::kPut) {
        take_in(socket, *request);
      } else {
        give_out(socket, *request);
      }
      socket.wait();
      request = receive_request(socket);
    }
  } catch (const std::exception&) {  // it asks again, or somebody else
  }
  const Lock lock(mutex_);
  connections_.erase(number);
  changed_.notify_all();
}

void ReplicaServer::take_in(ReplicaSocket& socket, const ReplicaRequest& request) {
  if (request.generation < generation_) return socket.send_number(0);
  Kept& kept = other({request.index, replica_slot(request.label.number)});
  const Lock lock(kept.writes);
  if (request.generation < generation_) {  // of a machine that does not know it is out
    return socket.send_number(0);
  }
  ReplicaMemory memory(kept.file.get());
  bool is_taken = false;
  try {
    is_taken = memory.take(request.count, request.label, [&](std::span<std::byte> place) {
      socket.send_number(1);
      socket.receive_checked(place);
      return true;
    });
  } catch (const Error& error) {
    memory.release();  // the machine that sent it may be gone for good
    const bool is_news = error.code() == ErrorCode::kNoSpace && !told_of_take_.exchange(true);
    if (is_news) log::warn("no copies of another machine's state are kept: {}", error.what());
    throw;
  }
  if (!is_taken) memory.release();
  socket.send_number(is_taken ? 1 : 0);
}

// A worker may write into its memory meanwhile, or another connection: then the label is gone.
void ReplicaServer::give_out(ReplicaSocket& socket, const ReplicaRequest& request) {
  for (const Kept* kept : all_kept()) {
    ReplicaMemory memory(kept->file.get());
    if (memory.label() != request.label) continue;
    const auto is_there = [&] { return memory.label() == request.label; };
    if (request.ask == ReplicaAsk::kReadRecord) {
      const std::string record = memory.record();
      socket.send_number(std::ssize(record));
      return socket.send_checked(std::as_bytes(std::span(record)), is_there);
    }
    const std::span<const std::byte> data = memory.data();
    if (request.begin > std::ssize(data) || request.count > std::ssize(data) - request.begin) break;
    socket.send_number(request.count);
    return socket.send_checked(data.subspan(request.begin, request.count), is_there);
  }
  socket.send_number(0);
}

}  // namespace skein
