// Several engines with the same model, each on a thread and on devices of its own: requests are
// divided among them (data parallelism over requests). One engine runs on the caller's thread.
//
// Bits     on CPUs those of one engine
// Errors   those of TextEngine; of several the first (thread_team.h)
// Threads  callbacks of requests are called on the thread of their engine
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "skein/infer/engine.h"
#include "skein/infer/thread_team.h"

namespace skein {

class EngineReplicas {
 public:
  // Engine i has the devices `options.make_device` of i * options.tensor and on.
  EngineReplicas(const ModelSource& source, const EngineOptions& options, int64_t replicas);
  ~EngineReplicas();
  EngineReplicas(const EngineReplicas&) = delete;
  EngineReplicas& operator=(const EngineReplicas&) = delete;

  // Until all are done. Neighbours, which often begin alike, are given to one engine.
  // `after_step`: called after each step of the first engine, and at the end.
  void run(std::vector<TextRequest> requests, const std::function<void()>& after_step);

 private:
  struct Replica {
    std::unique_ptr<Device> device;
    std::unique_ptr<TextEngine> engine;
  };
  std::vector<Replica> replicas_;
  ThreadTeam threads_;
};

// The options of replica `replica`, whose devices are numbered from 0.
EngineOptions options_of_replica(EngineOptions options, int64_t replica);

}  // namespace skein
