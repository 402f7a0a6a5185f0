// Calls of other people's code that may never return: after a while the caller gives one up and
// goes on without it.
//
// Threads  the call runs in a thread of its own. One that is given up stays in it for ever, also if
//          it returns later: what it uses must never be destroyed, and the process has to end by
//          _exit (cli/main.cc), since destructors of globals would take away what it uses
// Errors   those of the call
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "skein/base/threads/quiet_thread.h"

namespace skein {

inline std::atomic<int> g_num_given_up = 0;

// Whether a call of this process was given up.
inline bool has_given_up_calls() { return g_num_given_up.load() > 0; }

// What `work` returns; nothing if it takes longer than `seconds`. 0 seconds: however long it takes.
template <typename T>
std::optional<T> call_within(double seconds, std::function<T()> work) {
  if (seconds <= 0) return work();
  struct Call {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<T> result;
    std::exception_ptr error;
    bool given_up = false;

    bool has_ended() const { return result.has_value() || error != nullptr; }
  };
  const auto call = std::make_shared<Call>();
  std::thread thread = quiet_thread([call, work = std::move(work)] {
    std::optional<T> result;
    std::exception_ptr error;
    try {
      result = work();
    } catch (...) {
      error = std::current_exception();
    }
    std::unique_lock lock(call->mutex);
    if (call->given_up) {
      lock.unlock();
      while (true) ::pause();
    }
    call->result = std::move(result);
    call->error = error;
    call->changed.notify_one();
  });
  std::unique_lock lock(call->mutex);
  const bool in_time = call->changed.wait_for(lock, std::chrono::duration<double>(seconds),
                                              [&] { return call->has_ended(); });
  if (!in_time) {
    call->given_up = true;
    ++g_num_given_up;
    thread.detach();
    return std::nullopt;
  }
  lock.unlock();
  thread.join();
  if (call->error) std::rethrow_exception(call->error);
  return std::move(call->result);
}

}  // namespace skein
