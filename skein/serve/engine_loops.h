// The engine loops of a server, one for each replica of the model: a group of texts is given to the
// loop that has the fewest, and none to one that is broken. Everything else is as EngineLoop has
// it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "skein/serve/engine_loop.h"

namespace skein {

class EngineLoops {
 public:
  using MakeEngine = std::function<std::unique_ptr<TextEngine>(int64_t replica)>;
  // `most_waiting`: of all loops together.
  EngineLoops(int64_t replicas, const MakeEngine& make, int64_t most_waiting);

  std::optional<int64_t> submit(std::vector<TextRequest> texts,
                                std::function<void(const std::string&)> on_error);
  void cancel(int64_t group);
  // Of all loops or, where one cannot be made, of none.
  void change_engines(const MakeEngine& make);
  void stop(std::chrono::milliseconds grace);
  bool is_broken() const;  // one of them
  EngineLoop::Counts counts() const;

 private:
  const int64_t most_waiting_;
  std::atomic<int64_t> num_refused_ = 0;  // groups
  std::vector<std::unique_ptr<EngineLoop>> loops_;
};

}  // namespace skein
