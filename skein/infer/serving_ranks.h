// The ranks that run an engine's programs together: rank 0 on the caller's thread, each other one
// on a thread of its own with a device of its own (tensor parallelism inside one process).
//
// Bits     all ranks get the same; another number of ranks adds in another order, so that results
//          agree to rounding
// Memory   of each rank: the arenas of its programs
// Errors   those of a rank are thrown by the call that met them, of several ranks the first; the
//          others may wait for it as long as a collective does (60 s)
#pragma once

#include <functional>
#include <memory>

#include "skein/infer/engine.h"

namespace skein {

class ServingRanks {
 public:
  // Loads the weights. `first`: the device of rank 0, which must outlive this.
  ServingRanks(const ModelSource& source, Device& first, const ServingLayout& layout,
               const EngineOptions& options);
  ~ServingRanks();
  ServingRanks(const ServingRanks&) = delete;
  ServingRanks& operator=(const ServingRanks&) = delete;

  // Calls `act` on every rank at once, on its thread, and returns when all are done.
  void on_all(const std::function<void(Executor&)>& act);
  Executor& first() const;
  const ProgramSet& programs() const;  // of rank 0

 private:
  struct Team;
  std::unique_ptr<Team> team_;
};

}  // namespace skein
