// A mutex that clang's thread safety analysis understands: a member names the mutex that guards it,
// and scripts/lint.sh reports an access without the lock. For g++ these are plain std types.
//
//   Mutex mutex_;
//   int64_t num_made_ SKEIN_GUARDED_BY(mutex_) = 0;
//   ...
//   Lock lock(mutex_);
//   changed_.wait(lock, [this]() SKEIN_REQUIRES(mutex_) { return num_made_ > 0; });
//
// Source   clang.llvm.org/docs/ThreadSafetyAnalysis.html
#pragma once

#include <condition_variable>
#include <mutex>

#ifdef __clang__
#define SKEIN_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define SKEIN_THREAD_ATTRIBUTE(x)
#endif
#define SKEIN_GUARDED_BY(mutex) SKEIN_THREAD_ATTRIBUTE(guarded_by(mutex))
#define SKEIN_REQUIRES(mutex) SKEIN_THREAD_ATTRIBUTE(requires_capability(mutex))
// For a function that runs while no other thread does; say why beside it.
#define SKEIN_NO_OTHER_THREAD SKEIN_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace skein {

class SKEIN_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() SKEIN_THREAD_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void unlock() SKEIN_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// Holds a mutex until its destruction, and may release it in between.
class SKEIN_THREAD_ATTRIBUTE(scoped_lockable) Lock {
 public:
  explicit Lock(Mutex& mutex) SKEIN_THREAD_ATTRIBUTE(acquire_capability(mutex))
      : mutex_(mutex), holds_(true) {
    mutex_.lock();
  }
  ~Lock() SKEIN_THREAD_ATTRIBUTE(release_capability()) {
    if (holds_) mutex_.unlock();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void lock() SKEIN_THREAD_ATTRIBUTE(acquire_capability()) {
    mutex_.lock();
    holds_ = true;
  }
  void unlock() SKEIN_THREAD_ATTRIBUTE(release_capability()) {
    mutex_.unlock();
    holds_ = false;
  }

 private:
  Mutex& mutex_;
  bool holds_;
};

using ConditionVariable = std::condition_variable_any;

}  // namespace skein
