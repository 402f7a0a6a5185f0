// What the supervisors of a run tell each other through the rendezvous store: one record a host,
// which it alone writes, and one record a generation, which is created once and never changed.
//
// Generation  a set of hosts that train together, from one restart to the next. Their numbers
//             ascend; the record with a verdict is the last one and ends the run everywhere.
// Times       in milliseconds of the clock of the host that measures them; none is ever compared
//             with another host's
// Format      JSON, docs/rendezvous_format.md
// Errors      parsing throws Error{kInvalid} naming the record and the field
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/ending.h"
#include "skein/base/text/json.h"

namespace skein {

using Millis = int64_t;

struct HostRecord {
  std::string host;      // a name that no other supervisor of the run ever had
  std::string succeeds;  // the host that this one replaces: the same machine says that its
                         // processes are gone
  int64_t beat = 0;      // grows with every write
  int workers = 0;       // how many it can run
  int64_t joined = 0;    // the generation that its workers were started for, or 0
  int64_t ended = 0;     // it has no worker of this generation, or of an earlier one, any more
  Ending ending = Ending::kNone;  // why those of `ended` ended
  std::string message;            // the same for people
  int64_t step = 0;               // the last training step that its workers know to be done
  std::string replicas;           // where it can be asked for copies of the state; "": nowhere
  bool leaving = false;           // it was asked to stop, and joins no further generation
  bool gone = false;              // its supervisor has ended, and its workers before it
  int64_t checked = 0;            // the generation before which it last checked itself; 0: not yet
  std::string sick;               // what that check found wrong, for people; "": nothing
  std::vector<int64_t> work_us;   // of a step, by worker, without waiting for peers; empty: unknown

  friend bool operator==(const HostRecord&, const HostRecord&) = default;
};

// HostRecord::checked of a host that does not check itself: it may join any generation.
constexpr int64_t kNeedsNoCheck = int64_t{1} << 53;

struct Verdict {
  int exit_code = 0;
  std::string message;
};

struct GenerationRecord {
  struct Member {
    std::string host;
    int workers = 0;
  };
  int64_t number = 0;
  std::vector<Member> members;  // ranks are dealt in this order
  int64_t best_step = 0;        // the newest step that any generation before is known to have done
  int attempts = 0;             // failures in a row that brought no new step before this generation
  int vain_starts = 0;          // those of `attempts` that the state begun from may be the cause of
  std::string failure;          // the last one: the cause and its step
  int same_failures = 0;        // how often it came in a row
  int vain_regroups = 0;        // in a row that stopped for newcomers and gained none
  std::optional<Verdict> verdict;

  const Member* member(const std::string& host) const;  // null: it is none
  int first_rank(const std::string& host) const;
  int num_ranks() const;
};

// GenerationRecord::failure: "crashed at step 12: rank 3 …".
std::string failure_text(const HostRecord& cause);
// "crashed" of it; "" if it names no cause.
std::string cause_in(const std::string& failure);

OrderedJson host_to_json(const HostRecord& record);
HostRecord host_from_json(const Json& json, const std::string& what);
OrderedJson generation_to_json(const GenerationRecord& record);
GenerationRecord generation_from_json(const Json& json, const std::string& what);

}  // namespace skein
