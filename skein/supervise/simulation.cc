#include "skein/supervise/simulation.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <set>
#include <utility>

#include "skein/base/error.h"

namespace skein {
namespace {

struct SimWorker {
  bool runs = false, hangs = false;
};

// A machine, and the supervisor that runs on it now.
struct SimHost {
  int index = 0;
  std::string name() const { return fmt::format("h{}-{}", index, instance); }
  int instance = 0;
  std::unique_ptr<Supervisor> supervisor;
  std::string last_of_this_boot;  // the supervisor before this one, if it ran since the last boot
  bool powered = true;
  bool reaches_store = true;
  bool suspended = false;                       // the supervisor
  std::vector<std::function<void()>> deferred;  // what happened meanwhile
  double clock_rate = 1;
  Millis clock_offset = 0;
  double slowness = 1;
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
  std::optional<Millis> stalled;
};

class Simulation {
 public:
  explicit Simulation(const SimulationOptions& options)
      : options_(options), random_(options.seed), hosts_(static_cast<size_t>(options.num_hosts)) {
    for (int index = 0; index < options.num_hosts; ++index) {
      SimHost& host = hosts_[static_cast<size_t>(index)];
      host.index = index;
      host.clock_rate = 0.98 + 0.04 * uniform();
      host.clock_offset = between(0, 100'000'000);
      after(between(0, 5'000), [this, &host] { boot(host); });
    }
    if (options.fault_every > 0) after(next_fault(), [this] { fault(); });
  }

  SimulationResult run() {
    const Millis end = options_.trouble + options_.patience;
    while (!events_.empty() && result_.violation.empty()) {
      const Event event = events_.top();
      if (event.time > end) break;
      events_.pop();
      now_ = event.time;
      ++result_.events;
      event.happens();
      if (everybody_left()) break;
    }
    check_end();
    result_.duration = now_;
    result_.generations = static_cast<int64_t>(generations_.size());
    return std::move(result_);
  }

 private:
  struct Event {
    Millis time;
    int64_t sequence;
    std::function<void()> happens;
    bool operator<(const Event& other) const {
      return std::pair(time, sequence) > std::pair(other.time, other.sequence);
    }
  };

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
  Millis latency() { return chance(0.01) ? between(100, 5'000) : between(1, 20); }
  void after(Millis delay, std::function<void()> happens) {
    events_.push({now_ + delay, sequence_++, std::move(happens)});
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

  void boot(SimHost& host) {
    if (host.supervisor || over_.contains(host.index)) return;
    host.powered = true;
    host.suspended = false;
    host.deferred.clear();
    ++host.instance;
    SupervisorOptions options = options_.supervisor;
    options.host = host.name();
    options.succeeds = std::exchange(host.last_of_this_boot, host.name());
    options.workers = options_.workers;
    host.supervisor = std::make_unique<Supervisor>(options);
    note(host.name() + " starts");
    tell(host, [this, &host] { host.supervisor->start(clock(host)); });
    tick(host);
  }

  // The supervisor that runs on the host now is told, unless it has ended by then.
  void tell(SimHost& host, const std::function<void()>& what) {
    if (!host.supervisor) return;
    if (host.suspended) {
      host.deferred.push_back(what);
      return;
    }
    what();
    perform(host);
  }
  void tell_later(Millis delay, SimHost& host, std::function<void()> what) {
    after(delay, [this, &host, instance = host.instance, what = std::move(what)] {
      if (host.instance == instance) tell(host, what);
    });
  }

  void tick(SimHost& host) {
    const Millis wait = host.supervisor->next_time() - clock(host);
    after(host.suspended ? 1'000 : std::max<Millis>(1, wait),
          [this, &host, instance = host.instance] {
            if (host.instance != instance || !host.supervisor) return;
            tell(host, [this, &host] { host.supervisor->tick(clock(host)); });
            if (host.supervisor) tick(host);
          });
  }

  void perform(SimHost& host) {
    const std::vector<Action> actions = host.supervisor->take_actions();
    for (const Action& action : actions) {
      switch (action.kind) {
        case Action::Kind::kExchange:
          exchange(host, action.host);
          break;
        case Action::Kind::kCreate:
          create(host, action.generation);
          break;
        case Action::Kind::kStartWorkers:
          start_workers(host, action.generation);
          break;
        case Action::Kind::kAskWorkers:
          ask_workers(host, action.signal);
          break;
        case Action::Kind::kEndWorkers:
          end_workers(host, false);
          break;
        case Action::Kind::kKillWorkers:
          end_workers(host, true);
          break;
        case Action::Kind::kDumpStacks:
          break;
        case Action::Kind::kSay:
          note(host.name() + ": " + action.text);
          break;
        case Action::Kind::kExit:
          leave(host, action);
          return;
      }
    }
  }

  void leave(SimHost& host, const Action& action) {
    note(fmt::format("{} exits with {}: {}", host.name(), action.exit_code, action.text));
    for (SimWorker& worker : host.workers) {
      if (std::exchange(worker.runs, false)) lose_worker(host, true);
    }
    host.supervisor.reset();
    const bool leaves_alone = action.exit_code == 75 && asked_to_stop_;
    if (ended_ >= 0 && action.exit_code != ended_ && !leaves_alone) {
      violate(
          fmt::format("{} exits with {}, others with {}", host.name(), action.exit_code, ended_));
    }
    if (ended_ >= 0) {
      over_.insert(host.index);
    } else {
      after(between(10'000, 100'000), [this, &host] { boot(host); });
    }
  }

  void kill_supervisor(SimHost& host, bool power) {
    if (!host.supervisor) return;
    note(fmt::format("{} {}", host.name(), power ? "loses power" : "is killed"));
    host.supervisor.reset();
    host.deferred.clear();
    if (power) {
      host.powered = false;
      host.last_of_this_boot.clear();
    }
    for (SimWorker& worker : host.workers) worker.runs = false;  // they die with it
    lose_worker(host, !power);
    const bool comes_back = chance(0.8);
    if (comes_back) after(between(1'000, 120'000), [this, &host] { boot(host); });
  }

  bool everybody_left() const {
    return now_ > 10'000 && std::none_of(hosts_.begin(), hosts_.end(), [&](const SimHost& host) {
             return host.supervisor || !over_.contains(host.index);
           });
  }

  // ---- the store

  bool can_reach_store(const SimHost& host) const {
    return host.powered && host.reaches_store && store_up_;
  }

  void exchange(SimHost& host, const HostRecord& record) {
    const Millis arrival = latency();
    const int instance = host.instance;
    after(arrival, [this, &host, record, instance] {
      if (!can_reach_store(host) || chance(unreliable())) {
        fail_exchange(host, instance);
        return;
      }
      std::vector<std::pair<Millis, HostRecord>>& versions = store_hosts_[record.host];
      if (versions.empty() || versions.back().second.beat < record.beat) {
        versions.emplace_back(now_, record);
      }
      if (chance(unreliable())) {
        fail_exchange(host, instance);
        return;
      }
      after(latency(), [this, &host, instance] {
        if (host.instance != instance) return;
        if (!can_reach_store(host)) return fail_exchange(host, instance);
        tell_later(latency(), host, [this, &host, view = read_store(host)] {
          host.supervisor->exchanged(view, clock(host));
        });
      });
    });
  }

  double unreliable() const { return in_trouble() ? 0.005 : 0; }

  // An answer that says so, or none until the store is there again.
  void fail_exchange(SimHost& host, int instance) {
    if (host.instance != instance) return;
    if (chance(0.7)) {
      tell_later(between(10, 5'000), host,
                 [this, &host] { host.supervisor->exchanged(std::nullopt, clock(host)); });
    } else {
      after(1'000, [this, &host, instance] {
        if (host.instance != instance || !host.supervisor) return;
        if (!can_reach_store(host)) return fail_exchange(host, instance);
        tell(host, [this, &host] { host.supervisor->exchanged(std::nullopt, clock(host)); });
      });
    }
  }

  // Records of others may be a little old.
  StoreView read_store(const SimHost& reader) {
    StoreView view;
    for (const auto& [name, versions] : store_hosts_) {
      size_t version = versions.size() - 1;
      while (name != reader.name() && version > 0 && chance(0.05) &&
             now_ - versions[version].first < 3'000) {
        --version;
      }
      view.hosts.push_back(versions[version].second);
    }
    size_t generation = store_generations_.size();
    if (generation > 0 && chance(0.05)) --generation;
    if (generation > 0) view.newest = store_generations_[generation - 1];
    return view;
  }

  void create(SimHost& host, const GenerationRecord& generation) {
    after(latency(), [this, &host, generation, instance = host.instance] {
      const auto answer = [this, &host, instance](Millis delay, Created created) {
        if (host.instance != instance) return;
        tell_later(delay, host,
                   [this, &host, created] { host.supervisor->created(created, clock(host)); });
      };
      if (!can_reach_store(host) || chance(unreliable())) {
        return answer(between(10, 5'000), Created::kFailed);
      }
      const bool is_next = generation.number == static_cast<int64_t>(store_generations_.size()) + 1;
      if (is_next) {
        store_generations_.push_back(generation);
        note_generation(host, generation);
      }
      const bool answer_is_lost = chance(unreliable());
      answer(latency(), answer_is_lost ? Created::kFailed
                        : is_next      ? Created::kYes
                                       : Created::kExists);
    });
  }

  void note_generation(const SimHost& host, const GenerationRecord& generation) {
    std::string members;
    for (const auto& member : generation.members) members += " " + member.host;
    note(fmt::format("{} creates generation {}:{}{}", host.name(), generation.number, members,
                     generation.verdict ? " the end: " + generation.verdict->message : ""));
    if (generation.verdict) ended_ = generation.verdict->exit_code;
  }

  // ---- training

  void start_workers(SimHost& host, const GenerationRecord& record) {
    if (std::any_of(host.workers.begin(), host.workers.end(),
                    [](const SimWorker& worker) { return worker.runs; })) {
      violate(fmt::format("{} starts workers of generation {} beside those of {}", host.name(),
                          record.number, host.generation));
    }
    host.generation = record.number;
    host.workers.assign(static_cast<size_t>(options_.workers), SimWorker{.runs = true});
    host.ready = false;
    SimGeneration& generation = generations_[record.number];
    generation.record = record;
    const auto delay = static_cast<Millis>(static_cast<double>(options_.start) * (0.5 + uniform()) *
                                           host.slowness);
    after(delay, [this, &host, number = record.number, instance = host.instance] {
      if (host.instance != instance || host.generation != number || !all_run(host)) return;
      host.ready = true;
      beat(host);
      begin_training(number);
    });
    // Those that wait for the others give up.
    after(delay + options_.collective_timeout, [this, &host, number = record.number] {
      if (host.generation == number && !generations_[number].trains)
        end_all(host, Ending::kLostPeer);
    });
  }

  static bool all_run(const SimHost& host) {
    return !host.workers.empty() &&
           std::all_of(host.workers.begin(), host.workers.end(),
                       [](const SimWorker& worker) { return worker.runs; });
  }
  static bool any_hangs(const SimHost& host) {
    return std::any_of(host.workers.begin(), host.workers.end(),
                       [](const SimWorker& worker) { return worker.hangs; });
  }

  std::vector<SimHost*> members(const SimGeneration& generation) {
    std::vector<SimHost*> found;
    for (const auto& member : generation.record.members) {
      for (SimHost& host : hosts_) {
        if (host.name() == member.host && host.generation == generation.record.number) {
          found.push_back(&host);
        }
      }
    }
    return found;
  }

  bool are_connected(const SimHost& a, const SimHost& b) const {
    return a.powered && b.powered && !cut_.contains(std::minmax(a.index, b.index));
  }

  // Whether a step of the generation can end now.
  bool can_step(const SimGeneration& generation) {
    const std::vector<SimHost*> hosts = members(generation);
    if (hosts.size() != generation.record.members.size()) return false;
    for (const SimHost* host : hosts) {
      if (!host->ready || !host->supervisor || !all_run(*host) || any_hangs(*host)) return false;
      for (const SimHost* other : hosts) {
        if (!are_connected(*host, *other)) return false;
      }
    }
    return true;
  }

  void begin_training(int64_t number) {
    SimGeneration& generation = generations_[number];
    if (generation.trains || generation.over || !can_step(generation)) return;
    for (auto& [other, before] : generations_) {
      if (other < number && !before.over && before.trains && can_step(before)) {
        violate(fmt::format("generation {} begins while {} can train", number, other));
      }
    }
    generation.trains = true;
    generation.step = committed_;
    newest_training_ = std::max(newest_training_, number);
    note(fmt::format("generation {} trains from step {}", number, committed_));
    schedule_step(number);
  }

  void schedule_step(int64_t number) {
    double slowest = 1;
    for (const SimHost* host : members(generations_[number])) {
      slowest = std::max(slowest, host->slowness);
    }
    after(static_cast<Millis>(static_cast<double>(options_.step) * slowest),
          [this, number] { step(number); });
  }

  void step(int64_t number) {
    SimGeneration& generation = generations_[number];
    if (generation.over) return;
    // A worker looks at its permit before it lets a step count.
    for (SimHost* host : members(generation)) {
      if (host->supervisor && clock(*host) > host->supervisor->permitted_until()) {
        note(host->name() + ": its workers have no permit any more");
        end_all(*host, Ending::kCutOff);
      }
    }
    if (!can_step(generation)) {
      if (!generation.stalled) generation.stalled = now_;
      if (now_ - *generation.stalled >= options_.collective_timeout) {
        give_up(number);
      } else {
        after(200, [this, number] { step(number); });
      }
      return;
    }
    generation.stalled.reset();
    if (number < newest_training_) {
      violate(
          fmt::format("a step of generation {} ends after {} has begun", number, newest_training_));
    }
    generation.step = std::min(generation.step + 1, options_.steps);
    ++result_.steps;
    const bool is_last = generation.step >= options_.steps;
    if (generation.step % options_.save_every == 0 || is_last || generation.ask != 0) {
      if (generation.step < committed_) violate("a committed step was lost");
      committed_ = generation.step;
    }
    for (SimHost* host : members(generation)) beat(*host);
    if (is_last || generation.ask != 0) {
      generation.over = true;
      const Ending ending = is_last                      ? Ending::kFinished
                            : generation.ask == kRegroup ? Ending::kRegrouped
                                                         : Ending::kStopped;
      for (SimHost* host : members(generation)) end_all(*host, ending);
    } else {
      schedule_step(number);
    }
  }

  void give_up(int64_t number) {
    SimGeneration& generation = generations_[number];
    generation.over = true;
    for (SimHost* host : members(generation)) {
      for (size_t index = 0; index < host->workers.size(); ++index) {
        if (!host->workers[index].hangs) end_worker(*host, index, Ending::kLostPeer, "silence");
      }
    }
  }

  void beat(SimHost& host) {
    const int64_t step = std::max(generations_[host.generation].step, int64_t{0});
    for (size_t index = 0; index < host.workers.size(); ++index) {
      if (!host.workers[index].runs || host.workers[index].hangs) continue;
      tell(host, [this, &host, generation = host.generation, index, step, beat = ++beats_] {
        host.supervisor->heartbeat(generation, static_cast<int>(index), beat, step, false,
                                   clock(host));
      });
    }
  }

  void end_worker(SimHost& host, size_t index, Ending ending, const std::string& message) {
    if (!std::exchange(host.workers[index].runs, false)) return;
    tell_later(between(0, 20), host,
               [this, &host, generation = host.generation, index, ending, message] {
                 host.supervisor->worker_ended(generation, static_cast<int>(index), ending, message,
                                               clock(host));
               });
    const bool asked =
        ending == Ending::kFinished || ending == Ending::kStopped || ending == Ending::kRegrouped;
    if (!asked) lose_worker(host, true);
  }

  void end_all(SimHost& host, Ending ending) {
    for (size_t index = 0; index < host.workers.size(); ++index) {
      end_worker(host, index, ending, ending_name(ending));
    }
  }

  // The other workers of its generation notice: at once where its connections were closed.
  void lose_worker(SimHost& lost, bool connections_close) {
    SimGeneration& generation = generations_[lost.generation];
    const int64_t number = lost.generation;
    for (SimHost& host : hosts_) {
      if (host.generation != number || !generation.trains) continue;
      for (size_t index = 0; index < host.workers.size(); ++index) {
        if (!host.workers[index].runs || host.workers[index].hangs) continue;
        const bool sees = connections_close && are_connected(host, lost);
        after(sees ? between(1, 50) : options_.collective_timeout,
              [this, &host, number, index, instance = host.instance] {
                if (host.generation != number || host.instance != instance) return;
                if (!host.workers[index].hangs)
                  end_worker(host, index, Ending::kLostPeer, "a peer is gone");
              });
      }
    }
    if (number != 0) generation.over = true;
  }

  void ask_workers(SimHost& host, int signal) {
    SimGeneration& generation = generations_[host.generation];
    if (generation.trains) {
      generation.ask = generation.ask > 0 ? generation.ask : signal;
    } else {
      end_all(host, signal == kRegroup ? Ending::kRegrouped : Ending::kStopped);
    }
  }

  void end_workers(SimHost& host, bool kill) {
    after(kill ? 1 : between(1, 500), [this, &host, kill, generation = host.generation] {
      if (host.generation != generation) return;
      for (size_t index = 0; index < host.workers.size(); ++index) {
        if (kill || !host.workers[index].hangs) {
          end_worker(host, index, kill ? Ending::kKilled : Ending::kLostPeer, "ended");
        }
      }
    });
  }

  // ---- faults

  void fault() {
    if (!in_trouble()) return mend();
    ++result_.faults;
    after(next_fault(), [this] { fault(); });
    SimHost& host = any_host();
    const Millis while_it_lasts = between(500, chance(0.2) ? 300'000 : 30'000);
    if (chance(0.01)) return ask_to_stop(host);
    switch (between(0, 13)) {
      case 0:
        crash_worker(host, Ending::kCrashed);
        break;
      case 1:
        crash_worker(host, Ending::kKilled);
        break;
      case 2:
        crash_worker(host, Ending::kNoStorage);
        break;
      case 3:
        hang_worker(host);
        break;
      case 4:
        kill_supervisor(host, false);
        break;
      case 5:
        kill_supervisor(host, true);
        break;
      case 6:
        suspend(host, while_it_lasts);
        break;
      case 7:
      case 8:
        cut_from_store(host, while_it_lasts);
        break;
      case 9:
        cut_hosts(host, any_host(), while_it_lasts);
        break;
      case 10:
        stop_store(while_it_lasts);
        break;
      case 11:
        for (SimHost* member : members(generations_[newest_training_])) {
          cut_from_store(*member, 4 * while_it_lasts);
        }
        break;
      case 12:
        for (SimHost* member : members(generations_[newest_training_])) {
          suspend(*member, 4 * while_it_lasts);
        }
        break;
      default:
        host.slowness = chance(0.5) ? 1 : 1 + 4 * uniform();
    }
  }

  void crash_worker(SimHost& host, Ending ending) {
    if (host.workers.empty()) return;
    const auto index = static_cast<size_t>(between(0, options_.workers - 1));
    note(fmt::format("{}: a worker ends: {}", host.name(), ending_name(ending)));
    // A cause that never comes twice: the same one three times would rightly end the run.
    end_worker(host, index, ending, fmt::format("fault {}", result_.faults));
  }
  void hang_worker(SimHost& host) {
    if (host.workers.empty()) return;
    note(host.name() + ": a worker hangs");
    host.workers.front().hangs = true;
  }
  void ask_to_stop(SimHost& host) {
    if (!host.supervisor) return;
    note(host.name() + " is asked to stop");
    asked_to_stop_ = true;
    tell(host, [this, &host] { host.supervisor->asked_to_stop(15, false, clock(host)); });
  }
  void suspend(SimHost& host, Millis time) {
    if (!host.supervisor || host.suspended) return;
    note(fmt::format("{} is suspended for {} ms", host.name(), time));
    host.suspended = true;
    after(time, [this, &host, instance = host.instance] {
      if (host.instance == instance) resume(host);
    });
  }
  void resume(SimHost& host) {
    if (!std::exchange(host.suspended, false)) return;
    for (const auto& what : std::exchange(host.deferred, {})) tell(host, what);
  }
  void cut_from_store(SimHost& host, Millis time) {
    note(fmt::format("{} cannot reach the store for {} ms", host.name(), time));
    host.reaches_store = false;
    after(time, [&host] { host.reaches_store = true; });
  }
  void cut_hosts(const SimHost& a, const SimHost& b, Millis time) {
    if (a.index == b.index) return;
    note(fmt::format("{} and {} do not reach each other for {} ms", a.name(), b.name(), time));
    const auto pair = std::minmax(a.index, b.index);
    cut_.insert(pair);
    after(time, [this, pair] { cut_.erase(pair); });
  }
  void stop_store(Millis time) {
    note(fmt::format("the store is down for {} ms", time));
    store_up_ = false;
    after(time, [this] { store_up_ = true; });
  }

  void mend() {
    note("all is mended");
    store_up_ = true;
    cut_.clear();
    for (SimHost& host : hosts_) {
      host.reaches_store = true;
      host.slowness = 1;
      resume(host);
      after(between(0, 10'000), [this, &host] { boot(host); });
    }
  }

  void check_end() {
    if (!result_.violation.empty()) return;
    if (!everybody_left()) {
      for (const auto& [name, versions] : store_hosts_) {
        note(host_to_json(versions.back().second).dump());
      }
      if (!store_generations_.empty()) note(generation_to_json(store_generations_.back()).dump());
      for (SimHost& host : hosts_) {
        if (host.supervisor) {
          note(fmt::format("{}: generation {}, permitted until {}, now {}", host.name(),
                           host.supervisor->generation(), host.supervisor->permitted_until(),
                           clock(host)));
        }
        for (const SimWorker& worker : host.workers) {
          note(fmt::format("  worker of {} runs {} hangs {}", host.generation, worker.runs,
                           worker.hangs));
        }
      }
      violate(fmt::format("the run has not ended {} s after everything was mended; step {}",
                          options_.patience / 1000, committed_));
      return;
    }
    result_.exit_code = ended_;
    if (ended_ == 0 && committed_ != options_.steps) violate("finished before the last step");
    if (ended_ != 0 && !(ended_ == 75 && asked_to_stop_)) {
      violate(fmt::format("the run ended with {}", ended_));
    }
  }

  const SimulationOptions options_;
  std::mt19937_64 random_;
  std::vector<SimHost> hosts_;
  std::priority_queue<Event> events_;
  Millis now_ = 0;
  int64_t sequence_ = 0, beats_ = 0;

  bool store_up_ = true;
  std::map<std::string, std::vector<std::pair<Millis, HostRecord>>> store_hosts_;
  std::vector<GenerationRecord> store_generations_;
  std::set<std::pair<int, int>> cut_;

  std::map<int64_t, SimGeneration> generations_;
  int64_t committed_ = 0, newest_training_ = 0;
  std::set<int> over_;
  int ended_ = -1;  // the exit code of the verdict
  bool asked_to_stop_ = false;
  SimulationResult result_;
};

}  // namespace

SimulationOptions schedule_of(uint64_t seed) {
  std::mt19937_64 random(~seed);
  const auto one_of = [&](std::initializer_list<int64_t> values) {
    return *(values.begin() +
             std::uniform_int_distribution<ptrdiff_t>(0, std::ssize(values) - 1)(random));
  };
  SimulationOptions options;
  options.seed = seed;
  options.num_hosts = static_cast<int>(one_of({1, 2, 3, 4, 5, 6}));
  options.workers = static_cast<int>(one_of({1, 2}));
  options.start = one_of({50, 500, 3'000});
  options.step = one_of({100, 1'000});
  options.steps = options.trouble * 2 / 3 / options.step;
  options.collective_timeout = one_of({5'000, 60'000});
  options.fault_every = one_of({5'000, 20'000, 60'000});
  MembershipOptions& membership = options.supervisor.membership;
  membership.max_hosts =
      static_cast<int>(std::max<int64_t>(1, options.num_hosts - one_of({0, 0, 1, 2, 3})));
  membership.min_hosts =
      static_cast<int>(std::max<int64_t>(1, membership.max_hosts - one_of({0, 1, 2, 5})));
  membership.fence = one_of({20'000, 60'000, 120'000});
  membership.max_restarts = 100'000;
  membership.wait_for_hosts = options.trouble * 2;
  return options;
}

SimulationResult simulate(const SimulationOptions& options) { return Simulation(options).run(); }

}  // namespace skein
