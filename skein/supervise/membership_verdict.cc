// What ended a generation, whether it is tried again, and when.
#include <algorithm>

#include "skein/base/error.h"
#include "skein/supervise/membership.h"

namespace skein {
namespace {

// The worst ending of those that `generation` had, and who had it: a cause before a consequence.
const HostRecord* root_cause(const StoreView& view, const SharedGeneration& generation) {
  const HostRecord* worst = nullptr;
  for (const HostRecord& host : view.hosts) {
    if (host.ended != generation->number) continue;
    const bool is_worse =
        worst == nullptr || (is_cause(host.ending) && host.ending > worst->ending);
    if (is_worse && generation.member(host.host) != nullptr) worst = &host;
  }
  return worst;
}

bool any_ended(const StoreView& view, const SharedGeneration& generation, Ending ending) {
  return std::any_of(view.hosts.begin(), view.hosts.end(), [&](const HostRecord& host) {
    return host.ended == generation->number && host.ending == ending &&
           generation.member(host.host) != nullptr;
  });
}

bool has_failed(const StoreView& view, const SharedGeneration& generation) {
  const HostRecord* cause = root_cause(view, generation);
  return cause != nullptr && is_cause(cause->ending);
}

bool was_stopped(const StoreView& view, const SharedGeneration& generation) {
  return !has_failed(view, generation) && (any_ended(view, generation, Ending::kStopped) ||
                                           any_ended(view, generation, Ending::kStoppedEarly));
}

bool was_regrouped(const StoreView& view, const SharedGeneration& generation) {
  return !has_failed(view, generation) && any_ended(view, generation, Ending::kRegrouped);
}

// The signal came to a supervisor, which leaves, or has left; else to a worker itself.
bool any_member_leaves(const StoreView& view, const SharedGeneration& generation) {
  return std::any_of(view.hosts.begin(), view.hosts.end(), [&](const HostRecord& host) {
    return host.leaving && generation.member(host.host) != nullptr;
  });
}

// Whichever rank it was that said so first.
std::string without_rank(std::string failure) {
  const size_t rank = failure.find("rank ");
  if (rank != failure.npos) {
    failure.erase(rank, failure.find_first_not_of("0123456789", rank + 5) - rank);
  }
  return failure.substr(0, failure.find(" (log: "));
}
bool is_same(const std::string& a, const std::string& b) {
  return without_rank(a) == without_rank(b);
}

}  // namespace

GenerationRecord Membership::successor() const {
  GenerationRecord next;
  if (!view_.newest) {
    next.number = 1;
    return next;
  }
  const GenerationRecord& last = *view_.newest;
  next.number = last.number + 1;
  next.best_step = last.best_step;
  for (const HostRecord& host : view_.hosts) next.best_step = std::max(next.best_step, host.step);
  const bool is_progress = next.best_step > last.best_step;
  if (!is_progress) {
    next.attempts = last.attempts;
    next.vain_starts = last.vain_starts;
    next.failure = last.failure;
    next.same_failures = last.same_failures;
  }
  if (was_regrouped(view_, view_.newest)) return next;
  const bool some_lost_a_peer = any_ended(view_, view_.newest, Ending::kLostPeer);
  if (!was_stopped(view_, view_.newest) ||
      (some_lost_a_peer && !any_member_leaves(view_, view_.newest))) {
    judge_failure(next);
  } else if (!any_member_leaves(view_, view_.newest)) {
    next.verdict = Verdict{kExitRequeue, "a worker was asked to stop"};
  }
  return next;
}

// Whether there is another machine, well or not, or silent for now: it is waited for.
bool Membership::has_spare(const HostRecord& besides) const {
  if (!view_.unread.empty()) return true;  // somebody, though not to be read just now
  return std::any_of(view_.hosts.begin(), view_.hosts.end(), [&](const HostRecord& host) {
    return host.host != besides.host && !host.gone && !successors_.contains(host.host);
  });
}

// What ended the last generation, and whether it may be tried again.
void Membership::judge_failure(GenerationRecord& next) const {
  const HostRecord* cause = root_cause(view_, view_.newest);
  ++next.attempts;
  // A full disk says nothing of the state that it did not take.
  if (cause == nullptr || cause->ending != Ending::kNoStorage) ++next.vain_starts;
  if (any_ended(view_, view_.newest, Ending::kFinished) && !is_cause(cause->ending)) {
    next.verdict = Verdict{kExitDone, "finished"};
    return;
  }
  if (cause == nullptr) return;  // every host of it is lost
  const std::string failure = failure_text(*cause);
  next.same_failures = is_same(failure, next.failure) ? next.same_failures + 1 : 1;
  next.failure = failure;
  if (is_fatal(cause->ending)) {
    next.verdict = Verdict{exit_code_of(cause->ending), cause->message};
  } else if (cause->ending == Ending::kWrongBits && cause->sick == cause->message &&
             options_.max_hosts == 1 && !has_spare(*cause)) {
    next.verdict = Verdict{
        kExitFailed,
        fmt::format("{}\nThis machine had wrong bits before, and there is no other one to "
                    "continue with: test its memory and processors, or train on another machine",
                    cause->message)};
  } else if (comes_again(cause->ending, next.best_step) &&
             next.same_failures >= options_.same_failures) {
    next.verdict =
        Verdict{kExitFailed,
                fmt::format("{}; this was the same failure after the same step {} times in a row: "
                            "another restart would not help",
                            cause->message, next.same_failures)};
  } else if (next.attempts > options_.max_restarts) {
    const char* why =
        options_.max_restarts == 0 ? "allows no restart" : "restarts in a row brought no new step";
    next.verdict = Verdict{kExitFailed,
                           fmt::format("{}; launch.max_restarts = {} {}: the same command resumes "
                                       "from the newest checkpoint",
                                       cause->message, options_.max_restarts, why)};
  }
}

// Whoever reads kExitRequeue takes the state for saved.
Verdict Membership::verdict_of_stop() const {
  const HostRecord* cause = view_.newest ? root_cause(view_, view_.newest) : nullptr;
  if (cause != nullptr && cause->ending == Ending::kNoStorage) return {kExitFailed, cause->message};
  return {kExitRequeue, "stopped by a signal"};
}

// A machine that was ready and is sick again when its generation begins would stop training for
// ever; one that takes the place of another brings nothing either.
int Membership::vain_regroups(const GenerationRecord& next) const {
  const GenerationRecord& last = *view_.newest;
  if (next.num_ranks() > last.num_ranks()) return 0;
  return last.vain_regroups + (was_regrouped(view_, view_.newest) ? 1 : 0);
}

Millis Membership::backoff(const GenerationRecord& next) const {
  if (next.attempts <= 1) return 0;
  const int doublings = std::min(next.attempts - 2, 20);
  return std::min(options_.max_backoff, options_.first_backoff << doublings);
}

}  // namespace skein
