// The supervisor of a host's workers, as a deterministic state machine: what happens goes in, what
// is to be done comes out, and it neither waits nor looks at a clock, a process or a file itself.
// `skein train` drives it with real ones (launch/node/node_supervisor.h), the simulator with
// made-up ones (supervise/simulation/simulation.h), so that what is simulated is what runs.
//
// In    start, tick, exchanged, created, heartbeat, worked, worker_ended, host_checked,
//       host_refuses, asked_to_stop; each with the time of this host's monotonic clock
// Out   take_actions, after each of them; next_time, when tick is due at the latest
// Parts Membership decides who trains next, HostWorkers when workers here end, HostHealth whether
//       this host is fit, StoreLink when to look at the store
// Ends  once all workers here are gone the host says so in the store → the other members end theirs
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "skein/supervise/action.h"
#include "skein/supervise/host_health.h"
#include "skein/supervise/host_workers.h"
#include "skein/supervise/membership.h"
#include "skein/supervise/store_link.h"
#include "skein/supervise/stragglers.h"
#include "skein/supervise/supervisor_options.h"

namespace skein {

enum class Created : uint8_t { kYes, kExists, kFailed };

class Supervisor {
 public:
  explicit Supervisor(const SupervisorOptions& options);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

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

  std::vector<Action> take_actions() { return actions_.take(); }
  Millis next_time() const;

  // Of which workers run here, or 0.
  int64_t generation() const { return workers_.run() ? workers_.generation() : 0; }
  // Whether they were asked to end, or killed.
  bool ends_workers() const { return workers_.were_asked_to_end(); }
  // Until when workers may train without another exchange with the store.
  Millis permitted_until() const { return link_.permitted_until(); }
  bool has_exited() const { return exited_; }
  // Hosts that must still say that their workers have ended, before others go on without them.
  std::vector<std::string> awaited() const;
  // No workers run here, none end anywhere that is heard of, and nothing starts: it waits for
  // machines, or for a back-off to pass.
  bool is_waiting() const {
    return !workers_.run() && !creating_ && !exit_ && membership_.is_between();
  }

 private:
  bool is_settled() const;
  void advance(Millis now);
  void obey_the_store(Millis now);
  void watch_members(const GenerationRecord& generation, Millis now);
  bool may_regroup(const GenerationRecord& generation, Millis now) const;
  void watch_workers(Millis now);
  // Why its workers need not be started here; empty: they must.
  std::string ended_before_it_began(const GenerationRecord& generation) const;
  void start_workers(const GenerationRecord& generation, Millis now);
  void all_ended();
  void name_stragglers(Millis now);
  int64_t check_due() const;
  void consider_leaving(Millis now);
  void propose(Millis now);
  void say_what_it_waits_for(Millis now);
  void leave(int exit_code, const std::string& message, Millis now);
  Millis quick_look() const;
  Millis until_next_look(Millis now) const;

  const SupervisorOptions options_;
  Actions actions_;
  Membership membership_;
  StoreLink link_;
  HostWorkers workers_;
  HostHealth health_;
  Stragglers stragglers_;
  Millis now_ = 0;

  int64_t news_ = 0;  // Membership::news
  Millis news_at_ = 0;
  bool creating_ = false;  // a generation
  Millis propose_at_ = 0;

  struct Waits {
    std::string text, said;
    Millis since = 0;
  };
  Waits waits_;  // what for

  struct Exit {
    Verdict verdict;
    Millis at = 0;  // at the latest
    int64_t beat;   // of the record that says so
  };
  Millis leaving_since_ = 0;
  std::optional<Exit> exit_;  // once the store knows of it
  bool exited_ = false;
};

}  // namespace skein
