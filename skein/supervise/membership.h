// Who trains next: what a host concludes from the store about the hosts of its run. It decides
// alone and without waiting; hosts that decide at the same time are told apart by the store, in
// which the record of a generation can be created only once.
//
// A generation is over when none of its workers can train any more. Training needs all of them, so
//   one member that says that its workers have ended is enough; the others are waited for until
//   they say the same, or are silent for `silence`
//   where no member says so, all must be silent for `fence`: a host that cannot reach the store
//   ends its workers after kCutOffShare of it (supervisor.h)
// Silence is measured on the reader's own clock, as the time for which a record does not change
// while this host can both write and read. Neither a difference between clocks nor an outage of the
// store, nor having been suspended, makes a host look silent.
//
// A host whose machine says that its supervisor is gone (host_refuses) is silent after
// `refused_silence`, until its record changes: a firewall may refuse in the name of one that lives.
//
// A host that its own check found sick is in no generation, nor is one that has not checked itself
// since the last generation ended; a live host whose check is under way is waited for.
//
// Turn     the first live host of the last generation, else the first by name, writes the next one,
//          once it reads all records itself (role(), digest.h)
// Follower a host that sees the leader's list takes hosts for alive unless that says otherwise, and
//          the leader until its digest stands still
// Cost     of n hosts: O(n log n) a view that differs, else O(1)
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "skein/supervise/digest.h"

namespace skein {

struct MembershipOptions {
  int min_hosts = 1, max_hosts = 1;
  std::vector<int> host_counts;  // with which the run can train, ascending; empty: with any
  Millis silence = 10'000;
  Millis refused_silence = 2'000;  // two beats
  Millis fence = 120'000;
  Millis gather = 60'000;           // at the start, for more than min_hosts
  Millis settle = 1'000;            // for whoever is asked to stop at the same time as another
  Millis wait_for_hosts = 600'000;  // for min_hosts; then the run ends
  Millis wait_for_checks = 15'000;  // of live hosts, after a generation; then it goes on without
  Millis first_backoff = 1'000;     // before the second restart that brought no new step
  Millis max_backoff = 60'000;
  int max_restarts = 100;  // in a row that brought no new step
  int same_failures = 3;   // of one cause at one step: it would come for ever
};

constexpr double kCutOffShare = 0.8;

class Membership {
 public:
  // `succeeds`: HostRecord::succeeds of this host.
  Membership(const MembershipOptions& options, std::string self, const std::string& succeeds = "");

  // What the store held after this host wrote its own record; read by `now`.
  void update(StoreView view, Millis now);
  const StoreView& view() const { return view_; }

  bool is_silent(const std::string& host) const;
  // How this host should look at the store next.
  StoreRole role() const;
  // Grows whenever anything is seen that could change what this host concludes.
  int64_t news() const { return news_; }
  // Members of the newest generation but this host that have ended, or are silent.
  const std::vector<std::string>& troubled() const;
  bool is_member() const;  // of the newest generation
  // Nobody listens any more where that host's supervisor did.
  void host_refuses(const std::string& host);
  // Members of the newest generation that must still say that they have ended, or be silent.
  std::vector<std::string> awaited() const;
  // It has no worker of the generation any more, as it says itself, or whoever replaced it.
  bool has_ended(const std::string& host, int64_t generation) const;
  // The generation's workers have ended everywhere, as far as anybody can know.
  bool is_over(const GenerationRecord& generation) const;
  bool is_newest_over() const;
  // The generation before which this host should have checked itself by now; 0: it need not yet.
  int64_t check_due() const;
  // Whether this host is the one that acts for all.
  bool is_my_turn() const;
  // What this host should add to the list of generations now, if anything.
  std::optional<GenerationRecord> next_generation(Millis now);
  // Whether the newest generation could have more members, were it to stop.
  bool could_grow() const;
  // No generation has begun, or the newest one is over.
  bool is_between() const { return !view_.newest || is_newest_over(); }
  // What this host waits for, for people; empty: nothing.
  std::string waits_for() const;
  // Enough hosts are left to train when this one leaves.
  bool can_do_without_me() const;

 private:
  bool is_silent(const std::string& host, Millis time) const;
  bool is_silent_to_all(
      const std::string& host) const;  // for `fence`, as this host itself has seen
  void update_list(StoreView view);
  void update_records(StoreView view, Millis passed);
  Millis quiet_time(const std::string& host) const;
  void note_news(const StoreView& before);
  void find_missing();
  size_t place_in_turn() const;
  bool find_could_grow() const;
  bool find_my_turn() const;
  int64_t find_check_due() const;
  std::string find_what_it_waits_for() const;
  std::string missing_hosts_text(Millis waited, const std::vector<const HostRecord*>& hosts) const;
  bool has_refused(const std::string& host) const;  // since its record changed
  bool says_any_ended(const GenerationRecord& generation) const;
  bool is_live(const HostRecord& record) const;
  std::vector<const HostRecord*> in_order() const;
  // Those that could train, in order; `checked`: since when they must have checked themselves.
  std::vector<const HostRecord*> candidates(int64_t checked) const;
  std::vector<const HostRecord*> sick_hosts() const;
  // Whether a host that is still checking itself should be in the generation `next`.
  bool awaits_check(int64_t next, int num_ready) const;
  // How many of so many hosts can train; 0: too few.
  int usable(int num_hosts) const;
  GenerationRecord successor() const;
  void judge_failure(GenerationRecord& next) const;
  Verdict verdict_of_stop() const;
  bool has_spare(const HostRecord& besides) const;
  int vain_regroups(const GenerationRecord& next) const;
  Millis backoff(const GenerationRecord& next) const;

  struct Seen {
    int64_t beat = -1;
    Millis since = 0;         // of lived_
    Millis since_direct = 0;  // of lived_direct_
    Millis unread = 0;        // for which it was there and could not be read since then
    Millis listed = 0;  // for which a list said before that it stands still, until that is seen
  };
  // What was concluded from the view, until there is another one.
  struct Facts {
    std::optional<bool> is_over, my_turn, could_grow;
    std::optional<int64_t> check_due;
    std::optional<std::string> waits_for;
    std::optional<std::vector<std::string>> troubled;
  };
  const MembershipOptions options_;
  const std::string self_;
  StoreView view_;
  std::map<std::string, Seen> seen_;
  std::map<std::string, int64_t> refused_at_;  // beat
  std::map<std::string, std::string> successors_;
  Millis lived_ = 0;         // time with the store at hand
  Millis lived_direct_ = 0;  // the same, in which this host read all records
  Millis listed_ = 0;        // of lived_, when the list came that is in view_
  Millis leader_since_ = 0;  // of lived_, when the digest last moved
  Millis started_ = 0;
  size_t num_quiet_ = 0;  // hosts that are silent by the list, by their digest, or as missing
  std::vector<std::string> missing_;  // members of the newest generation that a list does not have
  int64_t news_ = 0;
  mutable Facts facts_;
  std::optional<Millis> updated_;
  // When this host first saw what it now waits with.
  int64_t over_ = -1;
  std::optional<Millis> over_since_, enough_since_;
};

}  // namespace skein
