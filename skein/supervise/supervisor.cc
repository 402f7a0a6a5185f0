#include "skein/supervise/supervisor.h"

#include <algorithm>
#include <utility>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr Millis kRetryExchange = 500;
constexpr Millis kPatience = 2'000;   // before it is said what is waited for
constexpr Millis kLastWords = 2'000;  // for the store to take that this host is gone

bool was_asked_for(Ending ending) {
  return ending >= Ending::kFinished && ending <= Ending::kRegrouped;
}

// Of two endings on one host, which one says more about the generation.
int weight(Ending ending) {
  if (is_cause(ending)) return 3;
  if (was_asked_for(ending)) return 2;
  return ending == Ending::kNone ? 0 : 1;
}

}  // namespace

Supervisor::Supervisor(const SupervisorOptions& options)
    : options_(options),
      membership_(options.membership, options.host, options.succeeds),
      stragglers_(options.stages) {
  record_.host = options.host;
  record_.succeeds = options.succeeds;
  record_.workers = options.workers;
  record_.replicas = options.replicas;
}

void Supervisor::start(Millis now) {
  last_good_ = now;
  advance(now);
}

void Supervisor::tick(Millis now) { advance(now); }

void Supervisor::exchanged(std::optional<StoreView> view, Millis now) {
  exchanging_ = false;
  if (view) {
    if (writes_) {
      last_good_ = exchange_began_;
      published_ = exchanged_beat_;
    }
    membership_.update(std::move(*view), now);
    if (std::exchange(news_, membership_.news()) != membership_.news()) news_at_ = now;
    next_exchange_ = now + until_next_look(now);
    name_stragglers(now);
  } else {
    write_began_.reset();
    changed_ = false;
    next_exchange_ = now + kRetryExchange;
  }
  advance(now);
}

void Supervisor::created(Created created, Millis now) {
  creating_ = false;
  if (created == Created::kFailed) {
    next_exchange_ = propose_at_ = now + kRetryExchange;
  } else {
    changed_ = true;  // to read it
  }
  advance(now);
}

void Supervisor::heartbeat(int64_t generation, int index, int64_t progress, int64_t step,
                           bool waits, Millis now) {
  if (!runs_ || generation != record_.joined) return;
  Worker& worker = workers_.at(static_cast<size_t>(index));
  if (waits) worker.changed = now;
  if (worker.progress != progress) {
    worker.progress = progress;
    worker.changed = progressed_ = now;
  }
  record_.step = std::max(record_.step, step);
  if (step > best_step_ && !trains_) trains_ = now;
  advance(now);
}

void Supervisor::worker_ended(int64_t generation, int index, Ending ending,
                              const std::string& message, Millis now) {
  if (!runs_ || generation != record_.joined) return;
  workers_.at(static_cast<size_t>(index)).runs = false;
  const bool by_us = kill_at_ && ending == Ending::kKilled;
  const bool any_runs = std::any_of(workers_.begin(), workers_.end(),
                                    [](const Worker& worker) { return worker.runs; });
  if (!by_us) note_ending(ending, message);
  if (!any_runs) {
    all_ended();
  } else if (ending == Ending::kLostPeer) {
    // A consequence: whoever is the cause may be about to say so.
    if (!kill_at_ && !settle_at_) settle_at_ = now + options_.grace;
  } else if (!by_us && (!was_asked_for(ending) || ending == Ending::kStoppedEarly)) {
    end_workers(ending, message, false, now);
  }
  advance(now);
}

void Supervisor::host_refuses(const std::string& host, Millis now) {
  membership_.host_refuses(host);
  advance(now);
}

std::vector<std::string> Supervisor::awaited() const {
  return runs_ ? std::vector<std::string>() : membership_.awaited();
}

void Supervisor::asked_to_stop(int signal, bool at_once, Millis now) {
  if (at_once) {
    if (runs_) act(Action::Kind::kKillWorkers);
    Action& exit = act(Action::Kind::kExit);
    exit.exit_code = 1;
    exit.text = "interrupted twice: every worker was ended at once, without saving";
    exited_ = true;
    return;
  }
  if (!record_.leaving) leaving_since_ = now;
  record_.leaving = changed_ = true;
  if (runs_ && !kill_at_) act(Action::Kind::kAskWorkers).signal = signal;
  advance(now);
}

std::vector<Action> Supervisor::take_actions() { return std::exchange(actions_, {}); }

Millis Supervisor::permitted_until() const {
  const auto share = kCutOffShare * static_cast<double>(options_.membership.fence);
  return last_good_ + static_cast<Millis>(share);
}

Millis Supervisor::next_time() const {
  Millis next = now_ + (is_settled() ? options_.beat : quick_look());
  if (!exchanging_) next = std::min(next, next_exchange_);
  for (const auto& deadline : {kill_at_, settle_at_, exit_at_, check_ends_at_}) {
    if (deadline) next = std::min(next, *deadline);
  }
  return std::max(next, now_ + 1);
}

// Workers train, and nobody waits for anything.
bool Supervisor::is_settled() const {
  if (!runs_ || kill_at_ || settle_at_ || exit_) return false;
  return membership_.view().newest.number() == record_.joined;
}

// Seldom enough for a leader that reads the records of all.
Millis Supervisor::quick_look() const {
  const auto for_all = kPerHost * static_cast<Millis>(membership_.view().hosts.size());
  return std::min(options_.beat, std::max(options_.poll, for_all));
}

Millis Supervisor::until_next_look(Millis now) const {
  const size_t num_hosts = membership_.view().hosts.size();
  Millis wait = options_.beat;
  if (!is_settled() && now - news_at_ < options_.patience) {
    wait = quick_look();
  }
  if (num_hosts < kJitterFrom) return wait;
  const double spread = 0.9 + 0.2 * chance_of(options_.host, record_.beat);
  return static_cast<Millis>(static_cast<double>(wait) * spread);
}

void Supervisor::advance(Millis now) {
  now_ = now;
  if (exited_) return;
  obey_the_store(now);
  watch_workers(now);
  watch_health(now);
  if (!runs_ && !exit_) {
    consider_leaving(now);
    propose(now);
    say_what_it_waits_for(now);
  }
  if (exit_ && !runs_ && (published_ >= gone_beat_ || now >= *exit_at_)) {
    Action& exit = act(Action::Kind::kExit);
    exit.exit_code = exit_->exit_code;
    exit.text = exit_->message;
    exited_ = true;
    return;
  }
  exchange(now);
}

void Supervisor::obey_the_store(Millis now) {
  const SharedGeneration& newest = membership_.view().newest;
  if (!newest || exit_) return;
  if (newest->verdict && !runs_) {
    leave(newest->verdict->exit_code, newest->verdict->message, now);
  } else if (runs_ && newest->number > record_.joined) {
    end_workers(Ending::kLostPeer, "the other machines continued without this one", true, now);
  } else if (runs_ && newest->number == record_.joined) {
    watch_members(*newest, now);
  } else if (!runs_ && !newest->verdict && newest->number > record_.ended &&
             membership_.is_member()) {
    start_workers(*newest, now);
  }
}

std::string Supervisor::ended_before_it_began(const GenerationRecord& generation) const {
  if (record_.leaving) return "asked to stop before it began";
  for (const auto& member : generation.members) {
    if (membership_.has_ended(member.host, generation.number)) {
      return fmt::format("{} ended before it began here", member.host);
    }
  }
  return "";
}

void Supervisor::watch_members(const GenerationRecord& generation, Millis now) {
  for (const std::string& name : membership_.troubled()) {
    const HostRecord* host = membership_.view().host(name);
    if (membership_.has_ended(name, generation.number)) {
      const bool asked =
          host != nullptr && host->ended == generation.number && was_asked_for(host->ending);
      if (asked) continue;  // the workers here are about to end as well, or their `hang` passes
      const std::string why = host == nullptr || host->message.empty() ? "it ended" : host->message;
      end_workers(Ending::kLostPeer, fmt::format("{}: {}", name, why), false, now);
    } else if (now - progressed_ >= options_.membership.silence) {
      end_workers(Ending::kLostPeer, fmt::format("{} fell silent", name), false, now);
    }
  }
  if (may_regroup(generation, now) && !std::exchange(regroups_, true)) {
    say("another machine is ready: training stops after this step to take it in");
    act(Action::Kind::kAskWorkers).signal = kRegroup;
  }
}

// What starts and stops again without a step of its own in between would never get on.
bool Supervisor::may_regroup(const GenerationRecord& generation, Millis now) const {
  if (kill_at_ || !trains_ || !membership_.is_my_turn() || !membership_.could_grow()) return false;
  const int doublings = std::min(generation.vain_regroups, 20);
  return now - *trains_ >= std::min(options_.max_regroup, options_.regroup << doublings);
}

void Supervisor::watch_workers(Millis now) {
  if (!runs_) return;
  if (settle_at_ && now >= *settle_at_) end_workers(Ending::kLostPeer, message_, false, now);
  if (kill_at_) {
    if (now < *kill_at_) return;
    act(Action::Kind::kKillWorkers);
    kill_at_ = now + options_.grace;
    return;
  }
  if (now >= permitted_until()) {
    end_workers(Ending::kCutOff,
                fmt::format("the rendezvous store could not be reached for {} s",
                            (now - last_good_) / 1000),
                true, now);
    return;
  }
  for (size_t index = 0; index < workers_.size(); ++index) {
    const Worker& worker = workers_[index];
    if (!worker.runs || now - worker.changed < options_.hang) continue;
    const std::string text =
        fmt::format("rank {} made no progress for {} s after step {}",
                    first_rank_ + static_cast<int>(index), options_.hang / 1000, record_.step);
    note_ending(Ending::kHung, text);
    Action& dump = act(Action::Kind::kDumpStacks);
    dump.worker = static_cast<int>(index);
    dump.text = text;
    kill_at_ = now + options_.stacks;
    return;
  }
}

void Supervisor::start_workers(const GenerationRecord& generation, Millis now) {
  record_.joined = generation.number;
  changed_ = true;
  ending_ = Ending::kNone;
  kill_at_.reset();
  settle_at_.reset();
  regroups_ = false;
  message_ = ended_before_it_began(generation);
  if (!message_.empty()) {
    ending_ = record_.leaving ? Ending::kStopped : Ending::kLostPeer;
    all_ended();
    return;
  }
  workers_.assign(static_cast<size_t>(options_.workers), Worker{.changed = now});
  runs_ = true;
  meter_ = WorkMeter(options_.workers);
  record_.work_us.clear();
  first_rank_ = generation.first_rank(options_.host);
  best_step_ = generation.best_step;
  trains_.reset();
  progressed_ = now;
  act(Action::Kind::kStartWorkers).generation = generation;
}

void Supervisor::end_workers(Ending ending, const std::string& message, bool kill, Millis now) {
  note_ending(ending, message);
  settle_at_.reset();
  if (kill) {
    if (killed_ != record_.joined) act(Action::Kind::kKillWorkers);
    killed_ = record_.joined;
    kill_at_ = now + options_.grace;
  } else if (!kill_at_) {
    act(Action::Kind::kEndWorkers);
    kill_at_ = now + options_.grace;
  }
}

void Supervisor::note_ending(Ending ending, const std::string& message) {
  if (weight(ending) <= weight(ending_)) return;
  ending_ = ending;
  message_ = message;
}

void Supervisor::all_ended() {
  runs_ = false;
  record_.ended = record_.joined;
  record_.ending = ending_;
  record_.message = message_;
  if (ending_ == Ending::kWrongBits) note_wrong_bits();
  changed_ = true;
  kill_at_.reset();
  settle_at_.reset();
}

void Supervisor::consider_leaving(Millis now) {
  const Millis patience = options_.membership.wait_for_hosts;
  if (record_.leaving && (membership_.can_do_without_me() ||
                          now - leaving_since_ >= 2 * options_.membership.silence)) {
    leave(75, "stopped by a signal", now);
  } else if (now - last_good_ >= patience) {
    leave(75, fmt::format("the rendezvous store could not be reached for {} s", patience / 1000),
          now);
  }
}

void Supervisor::propose(Millis now) {
  if (exit_ || creating_ || now < propose_at_) return;
  std::optional<GenerationRecord> next = membership_.next_generation(now);
  if (!next) return;
  creating_ = true;
  act(Action::Kind::kCreate).generation = std::move(*next);
}

void Supervisor::say_what_it_waits_for(Millis now) {
  const std::string text = membership_.waits_for();
  if (text != waits_for_) waits_since_ = now;
  waits_for_ = text;
  if (text.empty() || now - waits_since_ < kPatience || text == said_) return;
  said_ = text;
  say("waiting for " + text);
}

void Supervisor::leave(int exit_code, const std::string& message, Millis now) {
  exit_ = Verdict{exit_code, message};
  exit_at_ = now + kLastWords;
  record_.gone = changed_ = true;
  gone_beat_ = record_.beat + 1;
}

void Supervisor::exchange(Millis now) {
  if (exchanging_ || (!changed_ && now < next_exchange_)) return;
  // A record is written once a beat, and where it has changed.
  writes_ = changed_ || !write_began_ || now - *write_began_ >= options_.beat * 9 / 10;
  exchanging_ = true;
  changed_ = false;
  exchange_began_ = now;
  if (writes_) {
    write_began_ = now;
    exchanged_beat_ = ++record_.beat;
  }
  act(Action::Kind::kExchange).call = {record_, writes_, membership_.role(), now};
}

void Supervisor::say(std::string text) { act(Action::Kind::kSay).text = std::move(text); }

Action& Supervisor::act(Action::Kind kind) {
  actions_.emplace_back().kind = kind;
  return actions_.back();
}

}  // namespace skein
