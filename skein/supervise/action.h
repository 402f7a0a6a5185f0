// What a supervisor wants done: its only output.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "skein/supervise/rendezvous_store.h"
#include "skein/supervise/stragglers.h"

namespace skein {

struct Action {
  enum class Kind : uint8_t {
    kExchange,      // `call` on the store; answer with exchanged()
    kCreate,        // create `generation` in the store; answer with created()
    kStartWorkers,  // of `generation`
    kAskWorkers,    // to stop after the same step: `signal`, as it came, or kRegroup
    kDumpStacks,    // of all threads of all workers: `worker` hangs, as `text` says
    kEndWorkers,    // ask them to end at once
    kKillWorkers,
    kCheckHost,  // answer with host_checked(`check`)
    kEndCheck,   // kill it: it took too long
    kStraggler,  // `straggler`, and `text` for people
    kWrongBits,  // a worker ended by them, as `text` says; `persistent`: not for the first time
    kSay,        // `text`, for people
    kExit,       // with `exit_code`; `text` says why, if it is not 0
  };
  Kind kind = Kind::kSay;
  StoreCall call;
  GenerationRecord generation;
  int signal = 0;
  int worker = 0;
  int64_t check = 0;  // its number
  int exit_code = 0;
  std::string text;
  Straggler straggler;
  bool persistent = false;
};
constexpr int kRegroup = -1;

// Actions in the order in which they are to be done.
class Actions {
 public:
  // Adds one, to be filled in before the next one is added.
  Action& add(Action::Kind kind) {
    actions_.emplace_back().kind = kind;
    return actions_.back();
  }
  void say(std::string text) { add(Action::Kind::kSay).text = std::move(text); }
  std::vector<Action> take() { return std::exchange(actions_, {}); }

 private:
  std::vector<Action> actions_;
};

}  // namespace skein
