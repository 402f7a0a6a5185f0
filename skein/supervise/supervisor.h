// The supervisor of a host's workers, as a deterministic state machine: what happens goes in, what
// is to be done comes out, and it neither waits nor looks at a clock, a process or a file itself.
// `skein train` drives it with real ones (launch/node/node_supervisor.h), the simulator with
// made-up ones (supervise/simulation/simulation.h), so that what is simulated is what runs.
//
// In    start, tick, exchanged, created, heartbeat, worked, worker_ended, host_checked,
//       host_refuses, asked_to_stop; each with the time of this host's monotonic clock
// Out   take_actions, after each of them; next_time, when tick is due at the latest
// Ends  of workers: a worker fails → its neighbours on the host are told to end, and killed after
//       `grace` → once all are gone the host says so in the store → the other members end theirs
// Hang  a worker whose heartbeat does not change for `hang`: its stacks are written, it is killed
// Check a host checks itself before each generation, while hosts gather or workers end. What is
//       found wrong goes to the store; the host is left out, and checks itself again, ever less
//       often
// Wrong bits of a worker's memory or arithmetic may have been an accident: the step is done again.
//       Where they come back soon, or for the third time, they are the host's: it is sick for good
// Cut   a host that cannot exchange with the store for kCutOffShare of `fence` ends its workers:
//       from `fence` on others may train without it
#pragma once

#include <string>
#include <vector>

#include "skein/supervise/membership.h"
#include "skein/supervise/store.h"
#include "skein/supervise/stragglers.h"

namespace skein {

struct SupervisorOptions {
  std::string host;      // HostRecord::host
  std::string succeeds;  // HostRecord::succeeds
  int workers = 1;
  std::string replicas;  // HostRecord::replicas
  MembershipOptions membership;
  Millis beat = 1'000;  // between exchanges with the store while nothing happens
  Millis poll = 100;    // at least, while a generation ends or begins
  // Looks are a beat apart again once nothing has changed for so long.
  Millis patience = 30'000;
  Millis hang = 300'000;
  Millis stacks = 2'000;  // for the stacks of a hanging worker to be written
  Millis grace = 5'000;
  // A generation trains at least so long before it stops for a newcomer, and twice as long for
  // each stop before it, in a row, that gained none.
  Millis regroup = 10'000, max_regroup = 600'000;
  Millis check = 10'000;  // a host whose check takes longer is sick
  int stages = 1;         // of the pipeline: stragglers are sought among ranks of one stage
  Millis first_recheck = 5'000, max_recheck = 60'000;  // of a sick host
  Millis forget_sickness = 600'000;  // one time of being sick counts no more after so long
};

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

// Wrong bits are the host's where they come back after fewer steps, or so many times in all.
constexpr int64_t kSoonWrongAgain = 100;
constexpr int kTooOftenWrong = 3;

enum class Created : uint8_t { kYes, kExists, kFailed };

class Supervisor {
 public:
  explicit Supervisor(const SupervisorOptions& options);

  void start(Millis now);
  void tick(Millis now);
  // The answer to kExchange, or nothing where the store failed.
  void exchanged(std::optional<StoreView> view, Millis now);
  void created(Created created, Millis now);
  // `progress` changes whenever worker `index` of `generation` has done anything at all. `waits`:
  // it waits with a deadline of its own, and does not hang.
  void heartbeat(int64_t generation, int index, int64_t progress, int64_t step, bool waits,
                 Millis now);
  // The worker's own time in all of its steps until `step`, without waiting for peers.
  void worked(int64_t generation, int index, int64_t step, int64_t work_us, Millis now);
  void worker_ended(int64_t generation, int index, Ending ending, const std::string& message,
                    Millis now);
  // What check number `check` found wrong with this host; "": nothing.
  void host_checked(int64_t check, const std::string& problem, Millis now);
  // Of a host that is awaited(): its machine says that its supervisor is gone.
  void host_refuses(const std::string& host, Millis now);
  // `at_once`: without saving.
  void asked_to_stop(int signal, bool at_once, Millis now);

  std::vector<Action> take_actions();
  Millis next_time() const;

  // Of which workers run here, or 0.
  int64_t generation() const { return runs_ ? record_.joined : 0; }
  // Whether they were told to end.
  bool ends_workers() const { return kill_at_.has_value(); }
  // Until when workers may train without another exchange with the store.
  Millis permitted_until() const;
  bool has_exited() const { return exited_; }
  // Hosts that must still say that their workers have ended, before others go on without them.
  std::vector<std::string> awaited() const;
  // No workers run here, none end anywhere that is heard of, and nothing starts: it waits for
  // machines, or for a back-off to pass.
  bool is_waiting() const { return !runs_ && !creating_ && !exit_ && membership_.is_between(); }

 private:
  struct Worker {
    bool runs = true;
    int64_t progress = -1;
    Millis changed = 0;
  };

  bool is_settled() const;
  void advance(Millis now);
  void obey_the_store(Millis now);
  void watch_members(const GenerationRecord& generation, Millis now);
  bool may_regroup(const GenerationRecord& generation, Millis now) const;
  void watch_workers(Millis now);
  // Why its workers need not be started here; empty: they must.
  std::string ended_before_it_began(const GenerationRecord& generation) const;
  void start_workers(const GenerationRecord& generation, Millis now);
  // `kill`: without grace.
  void end_workers(Ending ending, const std::string& message, bool kill, Millis now);
  void note_ending(Ending ending, const std::string& message);
  void all_ended();
  void watch_health(Millis now);
  void name_stragglers(Millis now);
  int64_t check_due() const;
  void note_health(const std::string& problem, Millis now);
  void note_wrong_bits();
  void consider_leaving(Millis now);
  void propose(Millis now);
  void say_what_it_waits_for(Millis now);
  void leave(int exit_code, const std::string& message, Millis now);
  void exchange(Millis now);
  Millis quick_look() const;
  Millis until_next_look(Millis now) const;
  void say(std::string text);
  Action& act(Action::Kind kind);

  const SupervisorOptions options_;
  Membership membership_;
  HostRecord record_;
  std::vector<Action> actions_;
  Millis now_ = 0;

  // Of generation record_.joined:
  std::vector<Worker> workers_;
  WorkMeter meter_;
  Stragglers stragglers_;
  int first_rank_ = 0;
  bool runs_ = false;              // any of them
  int64_t best_step_ = 0;          // GenerationRecord::best_step
  std::optional<Millis> trains_;   // since its first new step
  Millis progressed_ = 0;          // when any of them last did anything
  Ending ending_ = Ending::kNone;  // of the one that says most, so far
  std::string message_;
  bool regroups_ = false;  // they were asked to
  std::optional<Millis> settle_at_, kill_at_;
  int64_t killed_ = 0;  // the generation whose workers were killed

  bool exchanging_ = false, creating_ = false;
  bool changed_ = true;  // the record, since the last exchange began
  Millis exchange_began_ = 0, last_good_ = 0, next_exchange_ = 0, propose_at_ = 0;
  int64_t exchanged_beat_ = 0, published_ = 0;
  bool writes_ = true;                 // the exchange that began last
  std::optional<Millis> write_began_;  // of the last exchange that wrote, unless it failed
  int64_t news_ = 0;                   // Membership::news
  Millis news_at_ = 0;

  int64_t check_ = 0;                    // the number of the last one
  std::optional<Millis> check_ends_at_;  // of the one under way
  int64_t checks_for_ = 0;               // the generation before which it was due
  int times_sick_ = 0;                   // not forgotten yet
  Millis sick_since_ = 0;                // when it was last found
  Millis recheck_at_ = 0;
  int times_wrong_ = 0;  // wrong bits
  int64_t wrong_step_ = 0;
  bool is_broken_ = false;  // sick, whatever a check says

  std::string waits_for_, said_;
  Millis waits_since_ = 0;
  Millis leaving_since_ = 0;
  std::optional<Verdict> exit_;
  std::optional<Millis> exit_at_;
  int64_t gone_beat_ = 0;
  bool exited_ = false;
};

}  // namespace skein
