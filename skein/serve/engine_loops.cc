#include "skein/serve/engine_loops.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "skein/base/error.h"

namespace skein {

EngineLoops::EngineLoops(int64_t replicas, const MakeEngine& make, int64_t most_waiting)
    : most_waiting_(most_waiting) {
  for (int64_t replica = 0; replica < replicas; ++replica) {
    loops_.push_back(
        std::make_unique<EngineLoop>([&make, replica] { return make(replica); }, most_waiting));
  }
}

std::optional<int64_t> EngineLoops::submit(std::vector<TextRequest> texts,
                                           std::function<void(const std::string&)> on_error) {
  int64_t waiting = 0;
  std::optional<std::pair<int64_t, size_t>> least;  // texts under way, of which loop
  for (size_t i = 0; i < loops_.size(); ++i) {
    if (loops_[i]->is_broken()) continue;
    const EngineLoop::Counts counts = loops_[i]->counts();
    waiting += counts.waiting;
    const std::pair<int64_t, size_t> under_way{counts.waiting + counts.running, i};
    if (!least || under_way < *least) least = under_way;
  }
  // One group alone may be larger than the queue.
  const bool is_full = waiting > 0 && waiting + std::ssize(texts) > most_waiting_;
  if (!least || is_full) {
    ++num_refused_;
    return std::nullopt;
  }
  const auto number = loops_[least->second]->submit(std::move(texts), std::move(on_error));
  if (!number) return std::nullopt;
  return *number * std::ssize(loops_) + static_cast<int64_t>(least->second);
}

void EngineLoops::cancel(int64_t group) {
  loops_[static_cast<size_t>(group % std::ssize(loops_))]->cancel(group / std::ssize(loops_));
}

// Each loop makes its engine and keeps the old one until all have made theirs.
void EngineLoops::change_engines(const MakeEngine& make) {
  std::mutex mutex;
  std::condition_variable changed;
  size_t num_done = 0;
  std::exception_ptr error;  // the first
  const auto note = [&](std::exception_ptr failed) {
    const std::lock_guard lock(mutex);
    ++num_done;
    if (!error) error = std::move(failed);
    changed.notify_all();
  };
  const auto change = [&](size_t replica) {
    bool has_noted = false;
    const auto note_once = [&](std::exception_ptr failed) {
      if (!std::exchange(has_noted, true)) note(std::move(failed));
    };
    try {
      loops_[replica]->change_engine([&] {
        std::unique_ptr<TextEngine> engine = make(static_cast<int64_t>(replica));
        note_once(nullptr);
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return num_done == loops_.size(); });
        if (error) fail(ErrorCode::kBusy, "another replica has no new engine");
        return engine;
      });
    } catch (...) {
      note_once(std::current_exception());
    }
  };
  std::vector<std::thread> threads;
  for (size_t replica = 0; replica < loops_.size(); ++replica) {
    threads.emplace_back(change, replica);
  }
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
}

void EngineLoops::stop(std::chrono::milliseconds grace) {
  std::vector<std::thread> stopping;
  for (const auto& loop : loops_) {
    stopping.emplace_back([&loop, grace] { loop->stop(grace); });
  }
  for (std::thread& thread : stopping) thread.join();
}

bool EngineLoops::is_broken() const {
  return std::any_of(loops_.begin(), loops_.end(),
                     [](const auto& loop) { return loop->is_broken(); });
}

EngineLoop::Counts EngineLoops::counts() const {
  EngineLoop::Counts sum;
  sum.groups_refused = num_refused_;
  for (const auto& loop : loops_) {
    const EngineLoop::Counts counts = loop->counts();
    sum.waiting += counts.waiting;
    sum.running += counts.running;
    sum.cache_positions += counts.cache_positions;
    sum.cache_positions_held += counts.cache_positions_held;
    sum.engine.steps += counts.engine.steps;
    sum.engine.tokens_read += counts.engine.tokens_read;
    sum.engine.tokens_shared += counts.engine.tokens_shared;
    sum.engine.tokens_made += counts.engine.tokens_made;
    sum.groups_refused += counts.groups_refused;
    sum.groups_cancelled += counts.groups_cancelled;
  }
  return sum;
}

}  // namespace skein
