// One NCCL communicator with a stream of its own: the collectives of a group, or the messages of
// one rank to another. What it is given runs in order, beside other queues. So a send delays only
// later sends between the same two ranks.
//
// Errors   see NcclWorld. Error{kInternal}: NCCL refused a call
// Threads  the group's, and the world's, which looks at what is under way
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "skein/base/threads/mutex.h"
#include "skein/comm/communicator.h"
#include "skein/comm/nccl/nccl_library.h"
#include "skein/comm/nccl/nccl_world.h"

namespace skein {

// Members of a group, ascending, by their ranks in it and in the world.
struct NcclMembers {
  std::string group;
  std::vector<int> ranks, world_ranks;
  int self = 0;  // index of this process
};

// What is needed to enqueue on a queue's stream. `spare` is device memory of the queue that begins
// with an int of 0.
struct NcclPost {
  const NcclLibrary& nccl;
  ncclComm_t comm;
  cudaStream_t stream;
  void* spare;
};

// Thrown by what posts; the queue makes an Error of it.
struct NcclRefusal {
  ncclResult_t result;
};
inline void check_nccl(ncclResult_t result) {
  if (result != ncclSuccess) throw NcclRefusal{result};
}

// Calls that NCCL runs as one.
class NcclGroup {
 public:
  explicit NcclGroup(const NcclLibrary& nccl) : nccl_(&nccl) { check_nccl(nccl.group_start()); }
  ~NcclGroup() {
    if (nccl_ != nullptr) nccl_->group_end();
  }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  void end() { check_nccl(std::exchange(nccl_, nullptr)->group_end()); }

 private:
  const NcclLibrary* nccl_;
};

class NcclQueue {
 public:
  // Something under way. It ends when `finished` happens.
  struct Op {
    CollectiveKind kind;
    std::string label;
    int64_t step;
    double timeout_s;
    cudaEvent_t finished, reached;
    bool posted, waited;
    // Since when somebody waits: the host while it posts, then the device, when it has `reached`
    // the wait.
    std::optional<std::chrono::steady_clock::time_point> since;
  };

  enum class Traffic : uint8_t {
    kCollectives,
    kToSecond,  // the first of two members sends to the second
    kToFirst,
  };
  // `name`: no other queue of these members has it.
  NcclQueue(NcclWorld& world, NcclMembers members, Traffic traffic, const std::string& name);
  ~NcclQueue();
  NcclQueue(const NcclQueue&) = delete;
  NcclQueue& operator=(const NcclQueue&) = delete;

  // The same on all members, and no other queue's.
  const std::string& key() const { return key_; }

  // Meets the members. Everything that NCCL sets up on first use is set up here.
  void connect();

  // Runs what `body` posts after what is in the device's queue by now. The result is valid until
  // wait() was called with it.
  Op* post(const Collective& collective, const std::function<void(const NcclPost&)>& body);
  // What comes into the device's queue next runs after `op`.
  void wait(Op* op);

  // ---- the world's, which holds its mutex ----

  // Forgets ops that ended. Returns the cause where a peer is lost.
  std::optional<std::string> look();
  // Ends what is under way, wherever it is.
  void disconnect();

 private:
  using Clock = std::chrono::steady_clock;
  struct Connecting;

  static void connect_now(Connecting& how);
  std::shared_ptr<Connecting> start_connecting();
  void await_connection(Connecting& how);
  ncclUniqueId broadcast_id();
  Op* begin(const Collective& collective);
  void forget(const Op* op);
  bool has_finished(const Op& op) const;
  std::optional<std::string> look_for_losses(const Op& during);
  std::string describe(const Op& op) const;
  std::string name_others() const;
  [[noreturn]] void fail_refused(const Collective& collective, ncclResult_t result);
  std::string unfinished_text();
  void leave();

  NcclWorld& world_;
  const NcclMembers members_;
  const Traffic traffic_;
  const std::string key_;
  std::unique_ptr<Communicator> host_;  // of the members
  cudaStream_t stream_ = nullptr;
  cudaEvent_t ready_ = nullptr;  // of the device's queue: what a collective reads is written
  void* spare_ = nullptr;
  // Null before it is connected, and once the world has ended. Who posts reads it with posting()
  // alone, so that clang cannot check the mutex with which it is written.
  ncclComm_t comm_ = nullptr;
  bool abandoned_ = false;                                 // a thread still connects it
  bool watched_ SKEIN_GUARDED_BY(world_.mutex()) = false;  // while it is connected and not left
  // Under way, or not waited for; in order.
  std::deque<std::unique_ptr<Op>> ops_ SKEIN_GUARDED_BY(world_.mutex());
  std::vector<std::unique_ptr<Op>> unused_ SKEIN_GUARDED_BY(world_.mutex());
  const int exceptions_;  // under way at construction
};

}  // namespace skein
