#include "skein/comm/nccl/nccl_queue.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <future>
#include <thread>

#include "skein/base/error.h"
#include "skein/base/text/units.h"

namespace skein {
namespace {

constexpr size_t kSpareFront = 64;          // bytes before those that ranks greet each other with
constexpr double kPatienceAtTheEnd = 3600;  // a rank may still save
constexpr auto kGlance = std::chrono::milliseconds(100);

using Seconds = std::chrono::duration<double>;

cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  cuda::check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  return event;
}

// Its kernels should not wait until a kernel that computes leaves room for them.
cudaStream_t new_urgent_stream() {
  int least = 0, greatest = 0;
  cuda::check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream priorities");
  cudaStream_t stream = nullptr;
  cuda::check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
              "cudaStreamCreate");
  return stream;
}

}  // namespace

NcclQueue::NcclQueue(NcclWorld& world, NcclMembers members, Traffic traffic,
                     const std::string& name)
    : world_(world),
      members_(std::move(members)),
      traffic_(traffic),
      key_(fmt::format("{} {}", name, fmt::join(members_.world_ranks, ","))),
      host_(world_.host().group(members_.world_ranks, name)),
      exceptions_(std::uncaught_exceptions()) {
  world_.announce(this);
}

NcclQueue::~NcclQueue() {
  if (watched_ && !world_.has_ended()) {
    if (std::uncaught_exceptions() == exceptions_) {
      leave();
    } else if (const std::string unfinished = unfinished_text(); !unfinished.empty()) {
      world_.end(fmt::format("world rank {} gave up group '{}' in the middle of {}",
                             members_.world_ranks[static_cast<size_t>(members_.self)],
                             members_.group, unfinished));
    }
  }
  {
    const std::lock_guard posting(world_.posting());
    const Lock lock(world_.mutex());
    world_.remove(this);
    disconnect();
  }
  if (stream_ == nullptr || abandoned_) return;
  for (auto& op : ops_) unused_.push_back(std::move(op));
  for (const auto& op : unused_) {
    cudaEventDestroy(op->finished);
    cudaEventDestroy(op->reached);
  }
  cudaEventDestroy(ready_);
  cudaStreamDestroy(stream_);
  cudaFree(spare_);
}

std::string NcclQueue::unfinished_text() {
  const Lock lock(world_.mutex());
  for (const auto& op : ops_) {
    if (!has_finished(*op)) return describe(*op);
  }
  return "";
}

// Memory that a peer still receives from must not be freed: all members wait until what they
// started has ended.
void NcclQueue::leave() {
  {
    const Lock lock(world_.mutex());
    for (const auto& op : ops_) {
      if (op->waited) continue;
      op->waited = true;
      op->since = Clock::now();
    }
  }
  cudaStreamSynchronize(stream_);
  {
    const Lock lock(world_.mutex());
    watched_ = false;
  }
  try {
    host_->run({.timeout_s = kPatienceAtTheEnd, .label = "the end of a group"});
  } catch (const Error&) {  // nobody here needs a peer that is lost
  }
}

// Shared with the thread that connects, which may outlive the queue.
struct NcclQueue::Connecting {
  ncclUniqueId id;
  int size, rank, device;
  Traffic traffic;
  cudaStream_t stream;
  char* spare;
  std::promise<std::string> failure;  // empty: none
  Mutex mutex;
  ncclComm_t comm SKEIN_GUARDED_BY(mutex) = nullptr;
  bool given_up SKEIN_GUARDED_BY(mutex) = false;

  void give_up() SKEIN_REQUIRES(mutex) {
    given_up = true;
    if (comm != nullptr) NcclLibrary::get().comm_abort(std::exchange(comm, nullptr));
  }
};

// NCCL makes its connections in the first call that needs them, which waits for the other end. So
// each is used once.
void NcclQueue::connect_now(Connecting& how) {
  const NcclLibrary& nccl = NcclLibrary::get();
  cuda::check(cudaSetDevice(how.device), "cudaSetDevice");
  ncclComm_t comm = nullptr;
  check_nccl(nccl.comm_init_rank(&comm, how.size, how.id, how.rank));
  {
    const Lock lock(how.mutex);
    how.comm = comm;
    if (how.given_up) return how.give_up();
  }
  const bool both_ways = how.traffic == Traffic::kCollectives;
  const int sender = how.traffic == Traffic::kToSecond ? 0 : 1;
  NcclGroup greeting(nccl);
  for (int peer = 0; peer < how.size; ++peer) {
    if (peer == how.rank) continue;
    char* theirs = how.spare + kSpareFront + peer;
    if (both_ways || how.rank == sender) {
      check_nccl(nccl.send(how.spare, 1, ncclInt8, peer, comm, how.stream));
    }
    if (both_ways || how.rank != sender) {
      check_nccl(nccl.receive(theirs, 1, ncclInt8, peer, comm, how.stream));
    }
  }
  greeting.end();
  if (both_ways) {
    check_nccl(nccl.all_reduce(how.spare, how.spare, 1, ncclInt32, ncclSum, comm, how.stream));
    // Its ring is not made by the all-reduce where that takes a tree.
    check_nccl(nccl.all_gather(how.spare, how.spare + kSpareFront, 1, ncclInt8, comm, how.stream));
  }
  cuda::check(cudaStreamSynchronize(how.stream), "connecting NCCL");
}

std::shared_ptr<NcclQueue::Connecting> NcclQueue::start_connecting() {
  const size_t spare_bytes = kSpareFront + members_.ranks.size();
  ready_ = new_event();
  stream_ = new_urgent_stream();
  cuda::check(cudaMalloc(&spare_, spare_bytes), "memory of an NCCL group");
  cuda::check(cudaMemsetAsync(spare_, 0, spare_bytes, stream_), "cudaMemset");
  auto how = std::make_shared<Connecting>();
  how->id = broadcast_id();
  how->size = static_cast<int>(members_.ranks.size());
  how->rank = members_.self;
  how->device = world_.device();
  how->traffic = traffic_;
  how->stream = stream_;
  how->spare = static_cast<char*>(spare_);
  // NCCL has no deadline while it connects: a thread that hangs in it is left behind.
  abandoned_ = true;
  std::thread([how] {
    try {
      connect_now(*how);
      how->failure.set_value("");
    } catch (const NcclRefusal& refusal) {
      how->failure.set_value(NcclLibrary::get().describe(refusal.result));
    } catch (const std::exception& error) {
      how->failure.set_value(error.what());
    }
  }).detach();
  return how;
}

void NcclQueue::await_connection(Connecting& how) {
  constexpr const char* kMore = "with NCCL_DEBUG=INFO in the environment NCCL tells more";
  const double patience = world_.options().timeout_s;
  const auto start = Clock::now();
  std::future<std::string> ended = how.failure.get_future();
  while (ended.wait_for(kGlance) != std::future_status::ready) {
    world_.check_alive();
    host_->check({.label = "connecting NCCL"});
    if (Clock::now() - start < Seconds(patience)) continue;
    fail(ErrorCode::kPeerLost,
         "connecting NCCL: {} did not come within {}: see its log, or raise "
         "launch.collective_timeout_s; {}",
         name_others(), format_duration(patience), kMore);
  }
  abandoned_ = false;
  const std::string failure = ended.get();
  if (failure.empty()) return;
  fail(ErrorCode::kInternal, "connecting NCCL over group '{}' ({} ranks): {}; {}", members_.group,
       members_.ranks.size(), failure, kMore);
}

void NcclQueue::connect() {
  std::shared_ptr<Connecting> how;
  try {
    how = start_connecting();
    await_connection(*how);
    Connecting& connected = *how;
    const Lock lock(world_.mutex());
    const Lock connected_lock(connected.mutex);
    comm_ = connected.comm;
    watched_ = true;
  } catch (const Error& error) {
    if (how != nullptr) {
      Connecting& failed = *how;
      const Lock lock(failed.mutex);
      failed.give_up();
    }
    if (error.code() == ErrorCode::kPeerLost) world_.lose(error.what());
    world_.end(error.what());
    throw;
  }
}

ncclUniqueId NcclQueue::broadcast_id() {
  ncclUniqueId id;
  std::array<int32_t, sizeof(ncclUniqueId) / sizeof(int32_t)> words{};
  if (members_.self == 0) {
    const NcclLibrary& nccl = NcclLibrary::get();
    const ncclResult_t result = nccl.get_unique_id(&id);
    if (result != ncclSuccess) {
      fail(ErrorCode::kInternal, "NCCL cannot begin: {}", nccl.describe(result));
    }
    std::memcpy(words.data(), &id, sizeof(id));
  }
  Collective broadcast{.kind = CollectiveKind::kBroadcast, .dtype = DType::kI32};
  broadcast.parts.push_back(
      {.input = words.data(), .output = words.data(), .elements = std::ssize(words)});
  broadcast.label = "connecting NCCL";
  broadcast.timeout_s = world_.options().timeout_s;
  host_->run(broadcast);
  std::memcpy(&id, words.data(), sizeof(id));
  return id;
}

NcclQueue::Op* NcclQueue::begin(const Collective& collective) {
  const Lock lock(world_.mutex());
  if (unused_.empty()) {
    auto op = std::make_unique<Op>();
    op->finished = new_event();
    op->reached = new_event();
    unused_.push_back(std::move(op));
  }
  ops_.push_back(std::move(unused_.back()));
  unused_.pop_back();
  Op* op = ops_.back().get();
  op->kind = collective.kind;
  op->label = collective.label;
  op->step = world_.step();
  op->timeout_s = collective.timeout_s > 0 ? collective.timeout_s : world_.options().timeout_s;
  op->posted = false;
  op->waited = true;
  op->since = Clock::now();
  return op;
}

void NcclQueue::forget(const Op* op) {
  const Lock lock(world_.mutex());
  const auto at =
      std::find_if(ops_.begin(), ops_.end(), [&](const auto& own) { return own.get() == op; });
  unused_.push_back(std::move(*at));
  ops_.erase(at);
}

NcclQueue::Op* NcclQueue::post(const Collective& collective,
                               const std::function<void(const NcclPost&)>& body) {
  Op* op = begin(collective);
  try {
    const std::lock_guard posting(world_.posting());
    world_.check_alive();
    cuda::check(cudaEventRecord(ready_, world_.queue()), "cudaEventRecord");
    cuda::check(cudaStreamWaitEvent(stream_, ready_, 0), "cudaStreamWaitEvent");
    body({NcclLibrary::get(), comm_, stream_, spare_});
    cuda::check(cudaEventRecord(op->finished, stream_), "cudaEventRecord");
  } catch (const NcclRefusal& refusal) {
    forget(op);
    fail_refused(collective, refusal.result);
  } catch (...) {
    forget(op);
    throw;
  }
  const Lock lock(world_.mutex());
  op->posted = true;
  op->waited = false;
  op->since.reset();
  return op;
}

// After a call that NCCL did not take, this rank has started less than its peers.
void NcclQueue::fail_refused(const Collective& collective, ncclResult_t result) {
  world_.check_alive();
  const std::string cause = fmt::format(
      "[{}] {}, step {}, over '{}': NCCL: {}", collective_name(collective.kind), collective.label,
      world_.step(), members_.group, NcclLibrary::get().describe(result));
  if (result == ncclRemoteError) world_.lose(cause);
  world_.end(cause);
  throw Error(ErrorCode::kInternal, cause);
}

void NcclQueue::wait(Op* op) {
  const Lock lock(world_.mutex());
  cuda::check(cudaEventRecord(op->reached, world_.queue()), "cudaEventRecord");
  cuda::check(cudaStreamWaitEvent(world_.queue(), op->finished, 0), "cudaStreamWaitEvent");
  op->waited = true;
}

bool NcclQueue::has_finished(const Op& op) const {
  return op.posted && cudaEventQuery(op.finished) == cudaSuccess;
}

std::optional<std::string> NcclQueue::look() {
  world_.mutex_is_held();
  if (!watched_) return std::nullopt;
  auto at = ops_.begin();
  while (at != ops_.end() && has_finished(**at)) {
    if (!(*at)->waited) {
      ++at;
      continue;
    }
    unused_.push_back(std::move(*at));
    at = ops_.erase(at);
  }
  if (at == ops_.end()) return std::nullopt;
  const Op& oldest = **at;
  if (auto cause = look_for_losses(oldest)) return cause;
  for (; at != ops_.end(); ++at) {
    Op& op = **at;
    if (op.waited && !op.since && cudaEventQuery(op.reached) == cudaSuccess) {
      op.since = Clock::now();
    }
    if (!op.since || Clock::now() - *op.since < Seconds(op.timeout_s)) continue;
    return fmt::format(
        "{}: {} did not take part within {}: it hangs, is stopped, cut off or much slower than the "
        "others; see its log, or raise launch.collective_timeout_s",
        describe(oldest), name_others(), format_duration(op.timeout_s));
  }
  return std::nullopt;
}

std::optional<std::string> NcclQueue::look_for_losses(const Op& during) {
  try {
    host_->check({.kind = during.kind, .label = during.label});
  } catch (const Error& error) {
    return error.what();
  }
  ncclResult_t failure = ncclSuccess;
  const NcclLibrary& nccl = NcclLibrary::get();
  nccl.comm_get_async_error(comm_, &failure);
  if (failure == ncclSuccess || failure == ncclInProgress) return std::nullopt;
  return fmt::format(
      "{}: NCCL lost {}: {}; see its log, and with NCCL_DEBUG=INFO in the environment NCCL's own",
      describe(during), name_others(), nccl.describe(failure));
}

void NcclQueue::disconnect() {
  if (comm_ != nullptr) NcclLibrary::get().comm_abort(std::exchange(comm_, nullptr));
}

std::string NcclQueue::describe(const Op& op) const {
  std::string text = fmt::format("[{}]", collective_name(op.kind));
  if (!op.label.empty()) text += fmt::format(" {}", op.label);
  if (op.step >= 0) text += fmt::format(", step {}", op.step);
  return text;
}

// NCCL does not tell which of several it waits for.
std::string NcclQueue::name_others() const {
  constexpr size_t kNamed = 8;
  std::vector<int> ranks = members_.ranks, world_ranks = members_.world_ranks;
  ranks.erase(ranks.begin() + members_.self);
  world_ranks.erase(world_ranks.begin() + members_.self);
  if (ranks.size() == 1) {
    return fmt::format("rank {} of '{}' (world rank {})", ranks[0], members_.group, world_ranks[0]);
  }
  if (ranks.size() > kNamed) {
    return fmt::format("one of the other {} ranks of '{}'", ranks.size(), members_.group);
  }
  return fmt::format("one of ranks {} of '{}' (world ranks {})", fmt::join(ranks, ", "),
                     members_.group, fmt::join(world_ranks, ", "));
}

}  // namespace skein
