// A function that a fixed number of threads call together, again and again: it runs once, with what
// each of them brings.
//
// Errors  what `act` throws, for all members. Error{kPeerLost} with the cause that end() was given,
//         for whoever waits or calls later
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/threads/mutex.h"

namespace skein {

// `T`: what each member brings.
template <typename T>
class JointCall {
 public:
  explicit JointCall(size_t size) : brought_(size) {}

  // Waits for the other members. Whoever comes last runs `act`, with what each brought, by member.
  void call(size_t member, T& brought, const std::function<void(const std::vector<T*>&)>& act) {
    Lock lock(mutex_);
    require_open();
    brought_.at(member) = &brought;
    if (++num_here_ < brought_.size()) {
      const int64_t mine = num_done_;
      changed_.wait(lock, [&]() SKEIN_REQUIRES(mutex_) { return num_done_ > mine || ended_; });
      if (num_done_ == mine) require_open();
    } else {
      error_ = nullptr;
      try {
        act(brought_);
      } catch (...) {
        error_ = std::current_exception();
      }
      num_here_ = 0;
      ++num_done_;
      changed_.notify_all();
    }
    // The next call, which could replace the error, begins only when this member calls again.
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

  // A member does not call any more.
  void end(const std::string& cause) {
    const Lock lock(mutex_);
    if (ended_) return;
    ended_ = true;
    cause_ = cause;
    changed_.notify_all();
  }

 private:
  void require_open() SKEIN_REQUIRES(mutex_) {
    if (ended_) fail(ErrorCode::kPeerLost, "{}", cause_);
  }

  Mutex mutex_;
  ConditionVariable changed_;
  std::vector<T*> brought_ SKEIN_GUARDED_BY(mutex_);
  size_t num_here_ SKEIN_GUARDED_BY(mutex_) = 0;
  int64_t num_done_ SKEIN_GUARDED_BY(mutex_) = 0;  // calls so far
  std::exception_ptr error_ SKEIN_GUARDED_BY(mutex_);
  bool ended_ SKEIN_GUARDED_BY(mutex_) = false;
  std::string cause_ SKEIN_GUARDED_BY(mutex_);
};

}  // namespace skein
