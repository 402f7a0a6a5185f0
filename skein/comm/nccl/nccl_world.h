// What all groups of a process share over NCCL: the device, queues that wait to be connected, a
// thread that looks at what is under way, and the end of the world.
//
// Queues   are connected in the order of their keys, all that were announced before anything runs:
//          members that come with different sets meet in the same order, and nothing that NCCL does
//          to the device while it connects waits for a collective
// Looking  ten times a second: peers that ended (through the host's world), errors that NCCL saw,
//          deadlines that passed. Any of them ends the world: the cause is told to all ranks, and
//          NCCL's kernels are made to end
// Locks    who talks to NCCL holds posting(); mutex() guards queues and what is under way in them;
//          posting() is taken first
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "skein/base/machine/check_cuda.h"
#include "skein/base/threads/mutex.h"
#include "skein/comm/communicator.h"

namespace skein {

class NcclQueue;

class NcclWorld {
 public:
  NcclWorld(Communicator& host, const DeviceWorldOptions& options);
  ~NcclWorld();
  NcclWorld(const NcclWorld&) = delete;
  NcclWorld& operator=(const NcclWorld&) = delete;

  Communicator& host() const { return host_; }
  const DeviceWorldOptions& options() const { return options_; }
  cudaStream_t queue() const { return static_cast<cudaStream_t>(options_.stream); }
  int device() const { return device_; }
  std::timed_mutex& posting() { return posting_; }
  Mutex& mutex() SKEIN_THREAD_ATTRIBUTE(lock_returned(mutex_)) { return mutex_; }
  // Tells clang that the mutex is held, where a queue is called by its world.
  void mutex_is_held() const SKEIN_THREAD_ATTRIBUTE(assert_capability(mutex_)) {}

  void set_step(int64_t step) { step_ = step; }
  int64_t step() const { return step_; }

  // How often these ranks made a group of this name before: the same on all of them.
  int count_meeting(const std::vector<int>& world_ranks, const std::string& name);
  void announce(NcclQueue* queue);
  void connect_announced();
  void remove(NcclQueue* queue) SKEIN_REQUIRES(mutex_);

  bool has_ended() const { return ended_; }
  void check_alive() const;  // throws the cause of the end
  // Ends the world and throws why. The first cause stays.
  [[noreturn]] void lose(const std::string& cause);
  void end(const std::string& cause) noexcept;

 private:
  void watch();

  Communicator& host_;
  const DeviceWorldOptions options_;
  int device_ = 0;
  std::atomic<int64_t> step_{-1};
  std::atomic<bool> ended_{false};
  std::atomic<bool> has_announced_{false};
  Mutex connecting_;
  std::timed_mutex posting_;
  mutable Mutex mutex_;
  std::string cause_ SKEIN_GUARDED_BY(mutex_);
  std::map<std::string, int> meetings_ SKEIN_GUARDED_BY(mutex_);
  std::vector<NcclQueue*> announced_ SKEIN_GUARDED_BY(mutex_);
  std::vector<NcclQueue*> queues_ SKEIN_GUARDED_BY(mutex_);
  bool stopping_ SKEIN_GUARDED_BY(mutex_) = false;
  ConditionVariable wake_;
  std::thread watcher_;
};

}  // namespace skein
