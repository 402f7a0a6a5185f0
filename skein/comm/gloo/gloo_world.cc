#include "skein/comm/gloo/gloo_world.h"

#include <gloo/transport/address.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <limits>

#include "skein/base/machine/environment.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/comm/gloo/gloo_channel.h"
#include "skein/comm/gloo/network.h"

namespace skein {
namespace {

// Gloo may write to a socket that its peer has closed.
void ignore_broken_pipes() {
  struct sigaction now = {};
  if (sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
    std::signal(SIGPIPE, SIG_IGN);
  }
}

// Raises the limit of open files to the connections, each with one that watches a process of this
// host, plus what else a process opens.
void need_descriptors(int num_connections, int num_watches) {
  constexpr rlim_t kOthers = 256;
  const rlim_t needed = static_cast<rlim_t>(num_connections + num_watches) + kOthers;
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max < needed) {
    fail(ErrorCode::kUsage,
         "a rank that is connected with {} others needs {} open files, and the limit is {}: raise "
         "it (`ulimit -Hn`, LimitNOFILE)",
         num_connections, needed, limit.rlim_max);
  }
}

// Behind Gloo's address: what the rank offers of its memory, if anything, and how many bytes it is.
void add_offer(std::vector<char>& address, const Exchange* exchange) {
  if (exchange == nullptr) return address.push_back(0);
  const MemoryOffer offer = exchange->offer();
  const char* at = reinterpret_cast<const char*>(&offer);
  address.insert(address.end(), at, at + sizeof offer);
  address.push_back(static_cast<char>(sizeof offer));
}

std::optional<MemoryOffer> take_offer(std::vector<char>& address) {
  const size_t bytes = address.empty() ? 0 : static_cast<uint8_t>(address.back());
  if (!address.empty()) address.pop_back();
  if (bytes != sizeof(MemoryOffer) || bytes > address.size()) return std::nullopt;
  MemoryOffer offer;
  std::memcpy(&offer, address.data() + address.size() - bytes, bytes);
  address.resize(address.size() - bytes);
  return offer;
}

}  // namespace

GlooWorld::GlooWorld(const WorldOptions& options)
    : options_(options),
      rendezvous_(options),
      published_(static_cast<size_t>(options.size)),
      proofs_(static_cast<size_t>(options.size)),
      connected_(static_cast<size_t>(options.size)) {
  ignore_broken_pipes();
  const bool one_host = rendezvous_.arrive();
  context_ = open_network(one_host)->createContext(rank(), size());
  offer_memory();
}

void GlooWorld::offer_memory() {
  const std::vector<int>& neighbours = rendezvous_.of_this_host();
  if (!is_switched_on("SKEIN_SHARED_MEMORY") || !options_.secret || neighbours.size() < 2) return;
  try {
    exchange_ = std::make_unique<Exchange>(rank(), size());
  } catch (const std::runtime_error& error) {
    say_why_not(neighbours[neighbours[0] == rank() ? 1 : 0], error.what());
  }
}

// Whether this rank can read the peer's memory.
bool GlooWorld::open_memory(int world_rank, const std::optional<MemoryOffer>& offer) {
  if (!exchange_ || !is_on_this_host(world_rank)) return false;
  if (!offer) {
    say_why_not(world_rank, "it does not offer its memory");
    return false;
  }
  try {
    exchange_->open(world_rank, *offer);
    return true;
  } catch (const std::runtime_error& error) {
    say_why_not(world_rank, error.what());
    return false;
  }
}

bool GlooWorld::is_on_this_host(int world_rank) const {
  const std::vector<int>& ranks = rendezvous_.of_this_host();
  return std::binary_search(ranks.begin(), ranks.end(), world_rank);
}

void GlooWorld::say_why_not(int world_rank, const std::string& why) {
  std::call_once(said_why_not_, [&] {
    log::info(
        "rank {} has no shared memory with rank {} of this host ({}): messages go over the "
        "network, which takes more time; SKEIN_SHARED_MEMORY=off asks for that",
        rank(), world_rank, why);
  });
}

std::chrono::milliseconds GlooWorld::timeout(const Collective& collective) const {
  const double seconds = collective.timeout_s > 0 ? collective.timeout_s : options_.timeout_s;
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
}

void GlooWorld::publish(const std::vector<int>& world_ranks) {
  std::map<int, std::vector<char>> addresses;
  {
    const Lock lock(mutex_);  // against end(), which visits all pairs
    // Gloo waits up to five times this timeout for a connection.
    context_->setTimeout(std::chrono::milliseconds(int64_t(options_.start_timeout_s * 200)));
    for (const int peer : world_ranks) {
      if (published_[static_cast<size_t>(peer)]) continue;
      addresses[peer] = context_->createPair(peer)->address().bytes();
      add_offer(addresses[peer], exchange_ && is_on_this_host(peer) ? exchange_.get() : nullptr);
      published_[static_cast<size_t>(peer)] = true;
    }
  }
  if (!addresses.empty()) rendezvous_.publish_addresses(addresses);
}

std::chrono::milliseconds GlooWorld::patience(const LossReport& loss) const {
  return loss.collective ? timeout(*loss.collective) : rendezvous_.time_left();
}

void GlooWorld::connect(int world_rank, LossReport& loss) {
  using std::chrono::milliseconds;
  loss.world_peer = loss.peer = world_rank;
  std::optional<std::vector<char>> address;
  std::optional<std::string> cause;
  const auto look = [&] {
    check_alive();
    if (exchange_) exchange_->help();  // peers may come only after this rank took their messages
    address = rendezvous_.address_of(world_rank);
    if (!address) cause = rendezvous_.cause_of(world_rank, milliseconds(0));
    return address || cause;
  };
  if (!wait_until(look, std::chrono::steady_clock::now() + patience(loss)) || cause) {
    if (loss.collective == nullptr && !cause) {
      fail(ErrorCode::kPeerLost, "{}", rendezvous_.missing_text({world_rank}));
    }
    if (loss.collective == nullptr) throw Error(ErrorCode::kPeerLost, *cause);
    loss.timed_out = !cause;
    lose(loss);
  }
  const std::optional<MemoryOffer> offer = take_offer(*address);
  try {
    context_->getPair(world_rank)->connect(*address);
  } catch (const std::exception& error) {
    fail(ErrorCode::kPeerLost,
         "rank {} arrived but cannot be reached from rank {}: {}; see its log, or choose another "
         "interface with SKEIN_NETWORK_INTERFACE",
         world_rank, rank(), error.what());
  }
  if (options_.secret) {
    proofs_[static_cast<size_t>(world_rank)] =
        std::make_unique<Proof>(*context_, *options_.secret, rendezvous_.world(), world_rank,
                                open_memory(world_rank, offer));
  }
}

void GlooWorld::connect(const std::vector<int>& world_ranks, LossReport loss) {
  const Lock lock(connecting_);
  std::vector<int> missing;
  for (const int peer : world_ranks) {
    if (peer != rank() && !is_connected(peer)) missing.push_back(peer);
  }
  need_descriptors(num_connections_ + static_cast<int>(missing.size()),
                   exchange_ ? static_cast<int>(rendezvous_.of_this_host().size()) : 0);
  publish(missing);
  for (const int peer : missing) connect(peer, loss);
  // This rank's proofs are all on their way by now, so ranks that wait here do not wait for each
  // other. Until it is done no group sends anything.
  for (const int peer : missing) {
    require_proof(peer, loss);
    connected_[static_cast<size_t>(peer)].store(true, std::memory_order_release);
    ++num_connections_;
  }
}

void GlooWorld::require_proof(int world_rank, LossReport& loss) {
  if (!options_.secret) return;
  Proof* const proof = proofs_[static_cast<size_t>(world_rank)].get();
  const auto deadline = std::chrono::steady_clock::now() + patience(loss);
  try {
    if (proof->is_right(deadline)) {
      if (shares_memory(world_rank) && !proof->peer_reads_memory()) {
        exchange_->forget(world_rank);
        say_why_not(world_rank, "it cannot read this rank's memory");
      }
      return;
    }
  } catch (const std::exception& error) {
    loss.world_peer = loss.peer = world_rank;
    loss.timed_out = std::chrono::steady_clock::now() >= deadline;
    loss.transport = error.what();
    if (loss.collective != nullptr) lose(loss);
    check_alive();
    // A wait that timed out closed the connections: what the peer then says is only what follows.
    const auto first = loss.timed_out
                           ? std::nullopt
                           : rendezvous_.cause_of(world_rank, std::chrono::milliseconds(100));
    end(first ? *first
              : fmt::format("rank {} arrived, but did not prove to rank {} that it knows the run's "
                            "secret: it ended, or hangs ({}); see its log",
                            world_rank, rank(), error.what()));
    check_alive();
  }
  end(fmt::format(
      "whoever is connected with rank {} as rank {} does not know this run's secret ({}): "
      "a stranger took its place, or its machine has another secret",
      rank(), world_rank, options_.secret->source()));
  check_alive();
}

std::unique_ptr<Channel> GlooWorld::new_channel(int world_rank, uint64_t id) {
  if (shares_memory(world_rank)) return exchange_->channel(world_rank, id);
  return std::make_unique<GlooChannel>(new_buffer(), world_rank, id);
}

std::unique_ptr<gloo::transport::UnboundBuffer> GlooWorld::new_buffer() {
  return context_->createUnboundBuffer(nullptr, std::numeric_limits<size_t>::max() / 2);
}

uint64_t GlooWorld::new_group_id(const std::vector<int>& world_ranks, const std::string& name) {
  const std::string members = fmt::format("{} {}", fmt::join(world_ranks, ","), name);
  const Lock lock(mutex_);
  const std::string identity = fmt::format("{} {}", members, meetings_[members]++);
  const uint64_t id = hash_name(identity);
  if (const auto [at, fresh] = group_ids_.emplace(id, identity); !fresh) {
    fail(ErrorCode::kInternal, "groups '{}' and '{}' have the same hash: rename one", at->second,
         identity);
  }
  return id;
}

void GlooWorld::check_alive() const {
  if (!ended_) return;
  const Lock lock(mutex_);
  throw Error(ErrorCode::kPeerLost, cause_);
}

std::string GlooWorld::describe(const LossReport& report) const {
  const Collective& collective = *report.collective;
  std::string text = fmt::format("[{}]", collective_name(collective.kind));
  if (!collective.label.empty()) text += fmt::format(" {}", collective.label);
  if (step_ >= 0) text += fmt::format(", step {}", step_.load());
  text += fmt::format(": rank {} of '{}' (world rank {})", report.peer, report.group,
                      report.world_peer);
  if (report.timed_out) {
    text += fmt::format(" did not take part within {}",
                        format_duration(timeout(collective).count() / 1e3));
    if (!report.mismatch.empty()) {
      return text + fmt::format(
                        ", but in something else: {}; see its log, and whether all ranks have the "
                        "same version and configuration",
                        report.mismatch);
    }
    return text +
           ": it hangs, is stopped, cut off or much slower than the others; see its log, or raise "
           "launch.collective_timeout_s";
  }
  return text + fmt::format(" is gone: its process ended or its connection broke; see its log ({})",
                            report.transport);
}

void GlooWorld::lose(const LossReport& report) {
  check_alive();
  std::string cause = describe(report);
  if (!report.timed_out) {
    // A peer that ended the world published the first cause; a peer that died published nothing.
    constexpr auto kMoment = std::chrono::milliseconds(100);
    // A rank whose deadline passed closes its connections shortly before it publishes the cause.
    if (const auto first = rendezvous_.cause_of(report.world_peer, kMoment)) cause = *first;
  }
  end(cause);
  check_alive();
  throw Error(ErrorCode::kPeerLost, cause);
}

void GlooWorld::end(const std::string& cause) noexcept {
  bool is_first = false;
  {
    const Lock lock(mutex_);
    is_first = !ended_;
    if (is_first) cause_ = cause;
    ended_ = true;
  }
  if (is_first) rendezvous_.publish_cause(cause);
  if (exchange_) exchange_->close();
  if (!is_first) return;
  // A wait that times out is Gloo's way to close all pairs and wake every waiter.
  try {
    const Lock lock(mutex_);
    new_buffer()->waitRecv(nullptr, std::chrono::milliseconds(0));
  } catch (const std::exception&) {
  }
}

}  // namespace skein
