// Threads that stay, so that what belongs to a thread does too: a GPU that is current, the settings
// of OpenMP.
//
// Errors   run() throws what one of its calls threw when all have ended; of several the first that
//          is not about a lost peer
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace skein {

class ThreadTeam {
 public:
  // The thread that makes it is member 0.
  explicit ThreadTeam(int64_t size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int64_t size() const { return std::ssize(threads_) + 1; }

  using Act = std::function<void(int64_t member)>;
  // Calls `act` in every member at once, and returns when all are done. Of member 0's thread.
  void run(const Act& act);

 private:
  void serve(int64_t member);
  void call(const Act& act, int64_t member);
  const Act* next(int64_t round);

  std::mutex mutex_;
  std::condition_variable changed_;
  const Act* act_ = nullptr;
  int64_t round_ = 0;
  int64_t num_left_ = 0;  // members that are not done
  bool is_ending_ = false;
  std::exception_ptr error_;  // of the round
  bool is_of_a_peer_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace skein
