// The made-up cluster behind simulate(), for its own sources alone: clocks and chance here, its
// parts in simulated_hosts.cc, simulated_records.cc, simulated_store.cc, simulated_training.cc and
// simulated_faults.cc.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "skein/base/error.h"
#include "skein/supervise/simulation/event_queue.h"
#include "skein/supervise/simulation/simulation.h"

namespace skein {

struct SimWorker {
  bool runs = false, hangs = false;
};

// A machine, and the supervisor that runs on it now.
struct SimHost {
  int index = 0;
  int instance = 0;
  std::string name_of_instance;
  const std::string& name() const { return name_of_instance; }
  std::unique_ptr<Supervisor> supervisor;
  std::shared_ptr<RendezvousStore> store;  // as that supervisor uses it
  StoreCalls calls;
  std::string last_of_this_boot;  // the supervisor before this one, if it ran since the last boot
  bool powered = true;
  bool reaches_store = true;
  bool opens_files = true;
  bool suspended = false;                       // the supervisor
  std::vector<std::function<void()>> deferred;  // what happened meanwhile
  double clock_rate = 1;
  Millis clock_offset = 0;
  double slowness = 1;
  int64_t work_us = 0;  // of a worker
  bool sick = false, check_hangs = false;
  bool flaps = false, flapped = false;  // every other check fails; whether the last one did
  int wrong_bits = 0;      // how often this supervisor met them; twice is once too often
  int64_t generation = 0;  // of its workers
  std::vector<SimWorker> workers;
  bool ready = false;  // all of them
};

struct SimGeneration {
  GenerationRecord record;
  bool trains = false;
  int64_t step = 0;
  int ask = 0;  // to stop: a signal or kRegroup
  bool over = false;
  bool all_told = false;  // that a worker is lost
  std::optional<Millis> stalled;
};

// What a record was, and since when.
template <typename Record>
class Versions {
 public:
  void add(Millis now, Record record) {
    if (records_.size() >= kMost) records_.erase(records_.begin(), records_.end() - kMost / 2);
    records_.emplace_back(now, std::move(record));
  }
  bool empty() const { return records_.empty(); }
  const Record& newest() const { return records_.back().second; }
  // Caches show what was replaced less than kCached ago.
  template <typename Chance>
  const Record& read(Millis now, Chance&& is_old) const {
    size_t version = records_.size() - 1;
    while (version > 0 && is_old() && now - records_[version].first < kCached) --version;
    return records_[version].second;
  }

 private:
  static constexpr size_t kMost = 64;
  static constexpr Millis kCached = 3'000;
  std::vector<std::pair<Millis, Record>> records_;
};

class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options)
      : options_(options), random_(options.seed), hosts_(static_cast<size_t>(options.num_hosts)) {
    for (int index = 0; index < options.num_hosts; ++index) {
      SimHost& host = hosts_[static_cast<size_t>(index)];
      host.index = index;
      host.name_of_instance = fmt::format("h{}-0", index);
      host.clock_rate = 0.98 + 0.04 * uniform();
      host.clock_offset = between(0, 100'000'000);
      host.flaps = index < options.flapping;
      after(between(0, 5'000), [this, &host] { boot(host); });
    }
    for (const Millis mark : options_.marks) after(mark, [this] { count_calls(); });
    if (options_.crash_at > 0) {
      after(options_.crash_at, [this] { crash_worker(hosts_.front(), Ending::kCrashed); });
    }
    if (options.fault_every > 0) after(next_fault(), [this] { fault(); });
  }

  SimulationResult run() {
    const Millis end = options_.trouble + options_.patience;
    while (!events_.empty() && result_.violation.empty()) {
      if (events_.next_time() > end) break;
      now_ = events_.next_time();
      ++result_.events;
      events_.take()();
      if (everybody_left()) break;
      if (options_.end_at > 0 && now_ >= options_.end_at) break;
    }
    if (options_.end_at == 0) check_end();
    result_.duration = now_;
    result_.generations = static_cast<int64_t>(generations_.size());
    return std::move(result_);
  }

 private:
  // ---- chance and time

  double uniform() { return std::uniform_real_distribution<double>()(random_); }
  bool chance(double probability) { return uniform() < probability; }
  Millis between(Millis low, Millis high) {
    return std::uniform_int_distribution<Millis>(low, high)(random_);
  }
  Millis next_fault() {
    const auto mean = static_cast<double>(options_.fault_every);
    return static_cast<Millis>(std::exponential_distribution<double>(1 / mean)(random_)) + 1;
  }
  // Of a message or a call to the store: mostly short, at times long.
  Millis latency() {
    return options_.has_slow_calls && chance(0.01) ? between(100, 5'000) : between(1, 20);
  }
  void after(Millis delay, std::function<void()> happens) {
    events_.put(now_ + delay, std::move(happens));
  }
  Millis clock(const SimHost& host) const {
    return host.clock_offset + static_cast<Millis>(host.clock_rate * static_cast<double>(now_));
  }
  bool in_trouble() const { return now_ < options_.trouble; }
  SimHost& any_host() { return hosts_[static_cast<size_t>(between(0, options_.num_hosts - 1))]; }
  void note(const std::string& text) {
    result_.history.push_back(fmt::format("{:9.3f} {}", static_cast<double>(now_) / 1000, text));
  }
  void violate(const std::string& text) {
    note("VIOLATION " + text);
    if (result_.violation.empty()) result_.violation = text;
  }

  // ---- hosts and supervisors

  void boot(SimHost& host);

  // The supervisor that runs on the host now is told, unless it has ended by then.
  void tell(SimHost& host, const std::function<void()>& what);
  void tell_later(Millis delay, SimHost& host, std::function<void()> what);

  void tick(SimHost& host);
  void ask_awaited(SimHost& host);

  void perform(SimHost& host);

  void check(SimHost& host, int64_t number);

  void leave(SimHost& host, const Action& action);

  void kill_supervisor(SimHost& host, bool power);

  bool everybody_left() const;

  // ---- the store

  bool can_reach_store(const SimHost& host) const {
    return host.powered && host.reaches_store && store_up_;
  }

  class Records;
  std::unique_ptr<RecordStore> records_of(SimHost& host);
  void exchange(SimHost& host, const StoreCall& call);
  void look(SimHost& host, const StoreCall& call, const std::shared_ptr<RendezvousStore>& store);

  double unreliable() const { return in_trouble() ? 0.005 : 0; }

  // An answer that says so, or none until the store is there again.
  void fail_exchange(SimHost& host, int instance);
  void count_calls();

  void create(SimHost& host, const GenerationRecord& generation);

  void note_generation(const SimHost& host, const GenerationRecord& generation);
  void check_regroup(const GenerationRecord& generation);

  // ---- training

  void start_workers(SimHost& host, const GenerationRecord& record);

  static bool all_run(const SimHost& host);
  static bool any_hangs(const SimHost& host) {
    return std::any_of(host.workers.begin(), host.workers.end(),
                       [](const SimWorker& worker) { return worker.hangs; });
  }

  SimHost* host_of(const std::string& name);
  std::vector<SimHost*> members(const SimGeneration& generation);

  bool are_connected(const SimHost& a, const SimHost& b) const {
    return a.powered && b.powered && !cut_.contains(std::minmax(a.index, b.index));
  }

  // Whether a step of the generation can end now.
  bool can_step(const SimGeneration& generation);

  void begin_training(int64_t number);

  void schedule_step(int64_t number);

  void step(int64_t number);

  void give_up(int64_t number);

  void beat(SimHost& host);

  void end_worker(SimHost& host, size_t index, Ending ending, const std::string& message);

  void end_all(SimHost& host, Ending ending);

  // The other workers of its generation notice: at once where its connections were closed.
  void lose_worker(SimHost& lost, bool connections_close);

  void ask_workers(SimHost& host, int signal);

  void end_workers(SimHost& host, bool kill);

  // ---- faults

  void fault();

  void crash_worker(SimHost& host, Ending ending);
  void hang_worker(SimHost& host);
  void ask_to_stop(SimHost& host);
  void fall_sick(SimHost& host, Millis time);
  void flap(SimHost& host, Millis time);
  void flip_bits(SimHost& host);
  void suspend(SimHost& host, Millis time);
  void resume(SimHost& host) {
    if (!std::exchange(host.suspended, false)) return;
    for (const auto& what : std::exchange(host.deferred, {})) tell(host, what);
  }
  void cut_from_store(SimHost& host, Millis time);
  void cut_hosts(const SimHost& a, const SimHost& b, Millis time);
  void stop_store(Millis time);
  void spoil_record(Millis time);
  void run_out_of_files(SimHost& host, Millis time);

  void mend();

  void check_end();

  const SimulationOptions options_;
  std::mt19937_64 random_;
  std::vector<SimHost> hosts_;
  EventQueue events_;
  Millis now_ = 0;
  int64_t beats_ = 0;

  bool store_up_ = true;
  std::map<std::string, Versions<HostRecord>> store_hosts_;
  std::vector<SharedGeneration> store_generations_;
  Versions<HostDigest> store_digests_;
  Versions<std::shared_ptr<const DigestList>> store_lists_;
  std::string unreadable_;  // the name of a record
  std::set<std::pair<int, int>> cut_;

  std::map<int64_t, SimGeneration> generations_;
  int64_t committed_ = 0, newest_training_ = 0;
  std::set<int> over_;
  int ended_ = -1;  // the exit code of the verdict
  bool asked_to_stop_ = false;
  bool storage_failed_ = false;  // of any worker
  int vain_regroups_ = 0;        // since vain_since_, in a row
  Millis vain_since_ = 0;
  SimulationResult result_;
};

}  // namespace skein
