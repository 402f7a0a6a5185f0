// How a worker ends, and with it a run: one vocabulary for errors, exit codes, the records of
// machines and the events of a run.
//
// Table   a row an ending, and a row a code of errors, in ending.cc. All that is said of a failure
//         derives from its row: the word in host records and `generation` events
//         (docs/rendezvous_format.md), the exit code of the worker, of the whole job too if it is
//         fatal (else a job that gives up has kExitFailed), and whether another start may mend it
// Files   a worker's failure report has the number of its ErrorCode (launch/node/worker_failure.h)
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/base/error.h"

namespace skein {

inline constexpr int kNumErrorCodes = static_cast<int>(ErrorCode::kInternal) + 1;

// Of two causes the later one is the worse.
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
const char* ending_name(Ending ending);           // "crashed"
Ending ending_named(const std::string& name);     // Errors kInvalid
Ending ending_of(ErrorCode code, bool is_first);  // `is_first`: in a launch's first generation
// Of a worker that ended with this exit code and reported no error.
Ending ending_of_exit(int exit_code);

// Somebody asked for it, so that it is no failure.
bool was_asked_for(Ending ending);
// It is the cause of a failure, not its consequence, nor what somebody asked for.
bool is_cause(Ending ending);
// It would come again at every restart.
bool is_fatal(Ending ending);
// Its coming again after the same step means that it comes at every restart.
bool comes_again(Ending ending, int64_t step);
// Causes of a restart, as `generation` events name them: words of endings, and this one where a
// machine was lost without a word.
constexpr const char* kLostMachine = "machine";
std::vector<std::string> restart_causes();
// The workers that remained ended because a machine was lost.
bool is_loss_of_machine(const std::string& cause);

// Exit codes, for scripts and schedulers.
constexpr int kExitDone = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;     // the command line or a configuration is wrong
constexpr int kExitRequeue = 75;  // stopped by a signal after saving: run again to continue
constexpr int kExitRegroup = 76;  // of a worker: saved, for another machine to come in

int exit_code_of(Ending ending);
int exit_code_of(const Error& error);
// Of a process that ended so and said no more: kUsage for kExitUsage, else `otherwise`.
inline ErrorCode error_code_of_exit(int exit_code, ErrorCode otherwise) {
  return exit_code == kExitUsage ? ErrorCode::kUsage : otherwise;
}

// Whether a start that fails with it was refused, which is no failure of the run.
bool is_refusal(ErrorCode code);
// Whether an error is the user's mistake; other errors are failures of the machine or of skein.
bool is_mistake(ErrorCode code);

}  // namespace skein
