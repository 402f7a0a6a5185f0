#include "skein/supervise/supervisor.h"

#include <algorithm>
#include <utility>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr Millis kPatience = 2'000;   // before it is said what is waited for
constexpr Millis kLastWords = 2'000;  // for the store to take that this host is gone

}  // namespace

Supervisor::Supervisor(const SupervisorOptions& options)
    : options_(options),
      membership_(options.membership, options.host, options.succeeds),
      link_(options_),
      workers_(options_, actions_),
      health_(options_, link_, actions_),
      stragglers_(options.stages) {}

void Supervisor::start(Millis now) {
  link_.start(now);
  advance(now);
}

void Supervisor::tick(Millis now) { advance(now); }

void Supervisor::exchanged(std::optional<StoreView> view, Millis now) {
  if (view) {
    link_.succeeded();
    membership_.update(std::move(*view), now);
    if (std::exchange(news_, membership_.news()) != membership_.news()) news_at_ = now;
    link_.look_at(now + until_next_look(now));
    name_stragglers(now);
  } else {
    link_.failed(now);
  }
  advance(now);
}

void Supervisor::created(Created created, Millis now) {
  creating_ = false;
  if (created == Created::kFailed) {
    propose_at_ = now + StoreLink::kRetry;
    link_.look_at(propose_at_);
  } else {
    link_.publish();  // to read it
  }
  advance(now);
}

void Supervisor::heartbeat(int64_t generation, int index, int64_t progress, int64_t step,
                           bool waits, Millis now) {
  if (!workers_.run(generation)) return;
  HostRecord& record = link_.record();
  record.step = std::max(record.step, step);
  workers_.heartbeat(index, progress, step, waits, now);
  advance(now);
}

void Supervisor::worked(int64_t generation, int index, int64_t step, int64_t work_us, Millis now) {
  if (!workers_.run(generation)) return;
  if (workers_.worked(index, step, work_us, now)) link_.record().work_us = workers_.work_us();
}

void Supervisor::worker_ended(int64_t generation, int index, Ending ending,
                              const std::string& message, Millis now) {
  if (!workers_.run(generation)) return;
  if (workers_.ended(index, ending, message, now)) all_ended();
  advance(now);
}

void Supervisor::host_checked(int64_t check, const std::string& problem, Millis now) {
  if (health_.checked(check, problem, now)) advance(now);
}

void Supervisor::host_refuses(const std::string& host, Millis now) {
  membership_.host_refuses(host);
  advance(now);
}

std::vector<std::string> Supervisor::awaited() const {
  return workers_.run() ? std::vector<std::string>() : membership_.awaited();
}

void Supervisor::asked_to_stop(int signal, bool at_once, Millis now) {
  if (at_once) {
    if (workers_.run()) actions_.add(Action::Kind::kKillWorkers);
    Action& exit = actions_.add(Action::Kind::kExit);
    exit.exit_code = kExitFailed;
    exit.text = "interrupted twice: every worker was ended at once, without saving";
    exited_ = true;
    return;
  }
  HostRecord& record = link_.record();
  if (!record.leaving) leaving_since_ = now;
  record.leaving = true;
  link_.publish();
  if (workers_.run() && !workers_.were_asked_to_end()) {
    actions_.add(Action::Kind::kAskWorkers).signal = signal;
  }
  advance(now);
}

Millis Supervisor::next_time() const {
  Millis next = now_ + (is_settled() ? options_.beat : quick_look());
  std::vector<Millis> deadlines = workers_.deadlines();
  for (const auto& time : {link_.next_time(), health_.next_time()}) {
    if (time) deadlines.push_back(*time);
  }
  if (exit_) deadlines.push_back(exit_->at);
  for (const Millis deadline : deadlines) next = std::min(next, deadline);
  return std::max(next, now_ + 1);
}

// Workers train, and nobody waits for anything.
bool Supervisor::is_settled() const {
  if (!workers_.run() || workers_.are_ending() || exit_) return false;
  return membership_.view().newest.number() == workers_.generation();
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
  const double spread = 0.9 + 0.2 * chance_of(options_.host, link_.record().beat);
  return static_cast<Millis>(static_cast<double>(wait) * spread);
}

void Supervisor::advance(Millis now) {
  now_ = now;
  if (exited_) return;
  obey_the_store(now);
  watch_workers(now);
  if (!exit_ && !link_.record().leaving) health_.watch(check_due(), now);
  if (!workers_.run() && !exit_) {
    consider_leaving(now);
    propose(now);
    say_what_it_waits_for(now);
  }
  if (exit_ && !workers_.run() && (link_.has_published(exit_->beat) || now >= exit_->at)) {
    Action& exit = actions_.add(Action::Kind::kExit);
    exit.exit_code = exit_->verdict.exit_code;
    exit.text = exit_->verdict.message;
    exited_ = true;
    return;
  }
  if (auto call = link_.begin(membership_.role(), now)) {
    actions_.add(Action::Kind::kExchange).call = std::move(*call);
  }
}

void Supervisor::obey_the_store(Millis now) {
  const SharedGeneration& newest = membership_.view().newest;
  if (!newest || exit_) return;
  if (newest->verdict && !workers_.run()) {
    leave(newest->verdict->exit_code, newest->verdict->message, now);
  } else if (workers_.run() && newest->number > workers_.generation()) {
    workers_.end(Ending::kLostPeer, "the other machines continued without this one", true, now);
  } else if (workers_.run() && newest->number == workers_.generation()) {
    watch_members(*newest, now);
  } else if (!workers_.run() && !newest->verdict && newest->number > link_.record().ended &&
             membership_.is_member()) {
    start_workers(*newest, now);
  }
}

std::string Supervisor::ended_before_it_began(const GenerationRecord& generation) const {
  if (link_.record().leaving) return "asked to stop before it began";
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
      workers_.end(Ending::kLostPeer, fmt::format("{}: {}", name, why), false, now);
    } else if (now - workers_.progressed() >= options_.membership.silence) {
      workers_.end(Ending::kLostPeer, fmt::format("{} fell silent", name), false, now);
    }
  }
  if (may_regroup(generation, now)) workers_.regroup();
}

// What starts and stops again without a step of its own in between would never get on.
bool Supervisor::may_regroup(const GenerationRecord& generation, Millis now) const {
  const std::optional<Millis> trains = workers_.trains_since();
  if (workers_.were_asked_to_end() || !trains || !membership_.is_my_turn() ||
      !membership_.could_grow()) {
    return false;
  }
  const int doublings = std::min(generation.vain_regroups, 20);
  return now - *trains >= std::min(options_.max_regroup, options_.regroup << doublings);
}

void Supervisor::watch_workers(Millis now) {
  if (!workers_.run() || workers_.watch_end(now)) return;
  if (now >= permitted_until()) {
    workers_.end(Ending::kCutOff,
                 fmt::format("the rendezvous store could not be reached for {} s",
                             (now - link_.last_good()) / 1000),
                 true, now);
    return;
  }
  workers_.watch_hang(link_.record().step, now);
}

void Supervisor::start_workers(const GenerationRecord& generation, Millis now) {
  HostRecord& record = link_.record();
  record.joined = generation.number;
  link_.publish();
  if (const std::string why = ended_before_it_began(generation); !why.empty()) {
    workers_.skip(generation.number, record.leaving ? Ending::kStopped : Ending::kLostPeer, why);
    all_ended();
    return;
  }
  record.work_us.clear();
  workers_.start(generation, now);
}

void Supervisor::all_ended() {
  HostRecord& record = link_.record();
  record.ended = record.joined;
  record.ending = workers_.ending();
  record.message = workers_.message();
  link_.publish();
  if (record.ending == Ending::kWrongBits) health_.note_wrong_bits(record.message);
}

// The generation before which this host should have checked itself by now. While its workers end
// the check runs beside that.
int64_t Supervisor::check_due() const {
  const HostRecord& record = link_.record();
  if (workers_.are_ending()) return record.joined + 1;
  if (workers_.run()) return 0;
  const bool failed_here = is_cause(record.ending) && !is_fatal(record.ending);
  return std::max(failed_here ? record.ended + 1 : 0, membership_.check_due());
}

void Supervisor::name_stragglers(Millis now) {
  if (!is_settled() || !membership_.view().is_direct || !membership_.is_my_turn()) return;
  for (const Straggler& straggler : stragglers_.find(membership_.view(), now)) {
    Action& action = actions_.add(Action::Kind::kStraggler);
    action.straggler = straggler;
    action.text = straggler_text(straggler);
  }
}

void Supervisor::consider_leaving(Millis now) {
  const Millis patience = options_.membership.wait_for_hosts;
  if (link_.record().leaving && (membership_.can_do_without_me() ||
                                 now - leaving_since_ >= 2 * options_.membership.silence)) {
    leave(kExitRequeue, "stopped by a signal", now);
  } else if (now - link_.last_good() >= patience) {
    leave(kExitRequeue,
          fmt::format("the rendezvous store could not be reached for {} s", patience / 1000), now);
  }
}

void Supervisor::propose(Millis now) {
  if (exit_ || creating_ || now < propose_at_) return;
  std::optional<GenerationRecord> next = membership_.next_generation(now);
  if (!next) return;
  creating_ = true;
  actions_.add(Action::Kind::kCreate).generation = std::move(*next);
}

void Supervisor::say_what_it_waits_for(Millis now) {
  const std::string text = membership_.waits_for();
  if (text != waits_.text) waits_.since = now;
  waits_.text = text;
  if (text.empty() || now - waits_.since < kPatience || text == waits_.said) return;
  waits_.said = text;
  actions_.say("waiting for " + text);
}

void Supervisor::leave(int exit_code, const std::string& message, Millis now) {
  HostRecord& record = link_.record();
  exit_ = Exit{{exit_code, message}, now + kLastWords, record.beat + 1};
  record.gone = true;
  link_.publish();
}

}  // namespace skein
