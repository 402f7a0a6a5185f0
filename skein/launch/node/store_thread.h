// The calls of a supervisor to its store, made by a thread of their own: a network file system that
// hangs must not keep the supervisor from watching its workers.
//
// Threads  ask_… and take_answers belong to one thread, which gets `wake_signal` when there is an
//          answer. An exchange and a creation may be under way at once, in the order of asking
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "skein/store/key_value_store.h"
#include "skein/supervise/rendezvous_store.h"
#include "skein/supervise/supervisor.h"

namespace skein {

class StoreThread {
 public:
  struct Answer {
    bool of_exchange = true;  // else of a creation
    std::optional<StoreView> view;
    Created created = Created::kFailed;
    std::string problem;   // why the store failed, if it did
    bool refuses = false;  // and will: what lies there is not this run's (kUsage)
  };

  // The signal is blocked in the thread that constructs this one.
  StoreThread(std::unique_ptr<RendezvousStore> store, int wake_signal);
  // Does not wait for a call that hangs.
  ~StoreThread();
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;

  void ask_to_exchange(const StoreCall& call);
  void ask_to_create(const GenerationRecord& generation);
  // Without an answer: what is left there goes with its lease.
  void ask_to_remove(const std::shared_ptr<StoreRoot>& root, const std::string& place);
  std::vector<Answer> take_answers();

 private:
  struct Shared;  // outlives this object where a call hangs
  std::shared_ptr<Shared> shared_;
};

}  // namespace skein
