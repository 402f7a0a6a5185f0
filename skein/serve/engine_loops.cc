#include "skein/serve/engine_loops.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "skein/base/text/units.h"

namespace skein {

EngineLoops::EngineLoops(int64_t replicas, const MakeEngine& make, int64_t most_waiting) {
  for (int64_t replica = 0; replica < replicas; ++replica) {
    loops_.push_back(std::make_unique<EngineLoop>([&make, replica] { return make(replica); },
                                                  ceil_div(most_waiting, replicas)));
  }
}

std::optional<int64_t> EngineLoops::submit(std::vector<TextRequest> texts,
                                           std::function<void(const std::string&)> on_error) {
  std::vector<int64_t> under_way;
  for (const auto& loop : loops_) {
    const EngineLoop::Counts counts = loop->counts();
    under_way.push_back(counts.waiting + counts.running);
  }
  const auto least = std::min_element(under_way.begin(), under_way.end()) - under_way.begin();
  const auto number =
      loops_[static_cast<size_t>(least)]->submit(std::move(texts), std::move(on_error));
  if (!number) return std::nullopt;
  return *number * std::ssize(loops_) + least;
}

void EngineLoops::cancel(int64_t group) {
  loops_[static_cast<size_t>(group % std::ssize(loops_))]->cancel(group / std::ssize(loops_));
}

void EngineLoops::change_engines(const MakeEngine& make) {
  for (size_t replica = 0; replica < loops_.size(); ++replica) {
    loops_[replica]->change_engine([&] { return make(static_cast<int64_t>(replica)); });
  }
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
