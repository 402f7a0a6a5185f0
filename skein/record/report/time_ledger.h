// Where the time of a run went: every microsecond from its first launch to its newest step or event
// belongs to exactly one part, over restarts, machines and starts.
//
// Formula  goodput = productive / (sum of all parts), and the sum of all parts is the time from the
//          launch of the first start to the newest start, step, restart or end, in whole
//          microseconds
// Clocks   durations come from the clock of the machine that wrote both ends (CLOCK_BOOTTIME), so
//          they survive a wall clock that is set, whichever way. Only from one machine to another,
//          or over a reboot, wall clocks are compared, and never count backwards. Files of older
//          versions, which hold wall clocks alone, are read the same way
// Cost     24 bytes a step, for steps that a later start may make redone
// Source   docs/reliability.md says what belongs to which part
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/record/files/metrics.h"

namespace skein {

enum class TimePart : uint8_t {
  kProductive,   // steps that count, without the two below
  kDataWait,     // waiting for data in them
  kSaving,       // standing still for a checkpoint, in them or after the last one
  kReplicating,  // in steps that count, standing still for a copy of the state in memory
  kRedone,       // steps that were lost: a later start went back behind them
  kValidating,   // between steps
  kStarting,     // from a launch to the first step
  kDetecting,    // from the last step until the failure is known
  kRecovering,   // from then to the next step
  kWaiting,      // for machines, for a back-off, or for whoever starts the run again
};
constexpr int kNumTimeParts = 10;
const char* time_part_name(TimePart part);  // "data_wait"

class TimeLedger {
 public:
  // In the order of their files. Others than the ledger knows are passed over.
  void add_event(const Json& event);
  void add_step(const StepMetrics& metrics);
  // Accounts for what was added since. Steps of a start that is not known yet wait for it.
  void settle();

  int64_t micros(TimePart part) const { return parts_[static_cast<size_t>(part)]; }
  double seconds(TimePart part) const { return static_cast<double>(micros(part)) / 1e6; }
  int64_t total_micros() const;
  // The share of kWaiting in which no process of the run lived, as far as it is known.
  int64_t between_starts_micros() const { return between_starts_; }
  double goodput() const;  // 0 where there is no time yet

 private:
  enum class Phase : uint8_t { kOff, kStarting, kTraining, kRecovering };
  struct Moment {  // when a record was written
    std::string machine;
    double clock = 0, wall = 0;
  };
  struct LedgerRecord {
    size_t order = 0;  // twice the starts so far, its own included; one more once that one is over
    int64_t at = 0;
    std::string machine;
    bool is_step = false;
    Json event;
    StepMetrics metrics;
  };
  struct LedgerStart {
    int64_t at = 0;
    Moment moment;
    bool is_over = false;
  };
  struct Anchor {
    double clock = 0, newest = 0;
    int64_t at = 0;
  };
  struct StepParts {  // microseconds of a step that counts
    int64_t step = 0, productive = 0;
    int32_t data_wait = 0, saving = 0, replicating = 0;
  };

  std::optional<int64_t> place(const Moment& moment, bool matters);
  size_t start_of(const StepMetrics& metrics);
  int64_t place_step(const StepMetrics& metrics, size_t start) const;
  void account(LedgerRecord& record);
  void launched(const LedgerRecord& record);
  void generation(const LedgerRecord& record);
  void stepped(const LedgerRecord& record);
  void ended(const LedgerRecord& record, TimePart while_training);
  void lose_steps_after(int64_t step);
  void charge(int64_t until, TimePart part);
  int64_t charge_at_most(int64_t micros, int64_t until, TimePart part);
  TimePart part_of_phase(TimePart while_training) const;
  int64_t& of(TimePart part) { return parts_[static_cast<size_t>(part)]; }

  std::array<int64_t, kNumTimeParts> parts_{};
  int64_t between_starts_ = 0;
  Phase phase_ = Phase::kOff;
  std::optional<int64_t> accounted_;  // until when
  int64_t validated_ = 0;             // since the last step
  std::vector<StepParts> kept_;       // ascending

  std::vector<LedgerRecord> pending_;
  std::vector<StepMetrics> waiting_steps_;
  std::vector<LedgerStart> starts_;
  std::map<int64_t, size_t> start_numbers_;
  size_t step_start_ = 0;  // of the newest step, for files that do not say
  std::map<std::string, Anchor> anchors_;
  std::map<std::string, int64_t> late_;  // how far a machine's records lie behind those before them
  std::optional<double> newest_wall_;
  int64_t newest_ = 0;
};

}  // namespace skein
