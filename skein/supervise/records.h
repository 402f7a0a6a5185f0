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

#include "skein/base/text/json.h"

namespace skein {

using Millis = int64_t;

// Why the workers of a generation ended on a host.
enum class Ending : uint8_t {
  kNone,          // they have not, or there were none
  kFinished,      // training is done
  kStopped,       // a signal asked to stop, and the state is saved
  kStoppedEarly,  // a signal ended a worker before it knew how to save
  kRegrouped,     // the supervisors asked to stop, to take in another host
  kLostPeer,      // a worker of another host ended or fell silent
  kCrashed,       // a worker ended by itself
  kKilled,        // a worker was killed by somebody else
  kOutOfMemory,   // the system killed a worker because memory ran out
  kHung,          // a worker made no progress for hang_timeout
  kCutOff,        // this host could not reach the store for as long as others wait before they
                  // declare it lost
  kNoStorage,     // a disk is full, or refuses to read or write
  kWrongBits,     // memory or arithmetic gave other bits than it must
  kNotFinite,     // a loss or a norm is NaN or infinite
  kInvalid,       // an input is missing, or not what it should be
  kRefused,       // the configuration is wrong
};
const char* ending_name(Ending ending);  // "crashed"
Ending ending_of(const std::string& name);

// Whether an ending is the cause of a failure, not its consequence, nor what somebody asked for.
bool is_cause(Ending ending);
// Whether it would come again at every restart.
bool is_fatal(Ending ending);

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

OrderedJson host_to_json(const HostRecord& record);
HostRecord host_from_json(const Json& json, const std::string& what);
OrderedJson generation_to_json(const GenerationRecord& record);
GenerationRecord generation_from_json(const Json& json, const std::string& what);

}  // namespace skein
