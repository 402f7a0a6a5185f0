#include "skein/infer/thread_team.h"

#include <utility>

#include "skein/base/error.h"

namespace skein {

ThreadTeam::ThreadTeam(int64_t size) {
  for (int64_t member = 1; member < size; ++member) {
    threads_.emplace_back([this, member] { serve(member); });
  }
}

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::run(const Act& act) {
  {
    const std::lock_guard lock(mutex_);
    act_ = &act;
    num_left_ = size();
    ++round_;
  }
  changed_.notify_all();
  call(act, 0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return num_left_ == 0; });
  if (const auto error = std::exchange(error_, nullptr)) std::rethrow_exception(error);
}

void ThreadTeam::serve(int64_t member) {
  for (int64_t round = 1; const Act* act = next(round); ++round) call(*act, member);
}

void ThreadTeam::call(const Act& act, int64_t member) {
  std::exception_ptr error;
  bool is_of_a_peer = false;
  try {
    act(member);
  } catch (const Error& thrown) {
    error = std::current_exception();
    is_of_a_peer = thrown.code() == ErrorCode::kPeerLost;
  } catch (...) {
    error = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  if (error && (!error_ || (is_of_a_peer_ && !is_of_a_peer))) {
    error_ = error;
    is_of_a_peer_ = is_of_a_peer;
  }
  --num_left_;
  changed_.notify_all();
}

// Null: there is no further round.
const ThreadTeam::Act* ThreadTeam::next(int64_t round) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_ending_ || round_ >= round; });
  return is_ending_ ? nullptr : act_;
}

}  // namespace skein
