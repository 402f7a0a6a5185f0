// What the steps of a run were trained with, where its configuration changed since.
//
// Formula  the configuration of a step is the one at hand with the changes of later starts undone
//          (record/report/run_starts.h). Lanes go on from a checkpoint, or from their beginning,
//          through every change in between, as they did in training
// Checked  what a configuration reads by then is what the events say, by hashes. The one at hand is
//          compared with the newest checkpoint: where the run was last trained otherwise, that is
//          one more change, after the newest step
// Errors   Error{kUsage} naming the change and its step, where a configuration of before cannot be
//          had any more; or where the configuration at hand is of another run
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "skein/checkpoint/find/lineage.h"
#include "skein/config/run/identity.h"
#include "skein/record/report/run_starts.h"
#include "skein/train/start/run_inputs.h"

namespace skein {

// What is asked of a step, and so which changes matter: its tokens; what they do to a model, too;
// or the very weights, which everything in [optimizer] shaped.
enum class Asked { kTokens, kEffects, kReplay };

// A configuration, without validation, and what it reads.
struct OpenedRun {
  Config config;
  RunInputs inputs;
  Json identity;  // run_configuration

  // `lanes`: of the run's checkpoints; 0: those of a run that begins.
  explicit OpenedRun(const Config& of, int64_t lanes = 0);
};

// The lanes of the run that has saved `checkpoints`; 0: there is none that can be read.
int64_t lanes_of(std::span<const CheckpointInfo> checkpoints);

class RunPast {
 public:
  // `now`: the configuration at hand. Reads events and manifests, and what `now` trains on.
  explicit RunPast(const Config& now);
  // Whether there is a run in run.dir, which may have been trained otherwise.
  static bool is_of(const Config& config);

  std::shared_ptr<const OpenedRun> now() const { return now_; }
  // Which start trained a step: opened() takes it, and it trained the steps up to last_step().
  size_t start_of(int64_t step) const { return start_of_step(starts_, step); }
  int64_t last_step(size_t start) const;
  std::shared_ptr<const OpenedRun> opened(size_t start, Asked asked) const;
  // The first change of a start from `first` to `last` that matters; null: there is none.
  const RecordedChange* change_within(size_t first, size_t last, Asked asked) const;

  // The newest checkpoint after at most `step` steps, of this run or that it began from; null: it
  // began from initial weights, and there is none. `whole`: one whose every byte verifies; else its
  // manifest alone is read.
  std::unique_ptr<CheckpointReader> checkpoint_before(int64_t step, bool whole) const;

  int64_t newest_checkpoint() const;  // its step; 0: there is none

  // For people: how a start differs from the configuration at hand. "": it does not.
  std::string differences(size_t start, Asked asked) const;

 private:
  struct Reference {  // the configuration that others are compared with
    Json configuration;
    std::string name;
    std::optional<size_t> start;  // that it is of; nothing: of what came before the first
  };
  struct Later {
    int64_t step;  // after which it changed
    RecordedChange change;
  };
  using Net = std::map<std::string, Change>;  // what differs from the reference, by key

  void leave_out_others();
  void find_reference();
  void add_change_by_hand();
  std::vector<Config> saved_configurations() const;  // of checkpoints, newest first
  Net net_of(const OpenedRun& opened) const;
  // Of each key that matters the first change after `start`.
  std::vector<Later> later_changes(std::optional<size_t> start, Asked asked) const;
  // By the events; nothing: they do not name the key.
  std::optional<std::string> value_at(std::optional<size_t> start, const std::string& key) const;
  // In a configuration that differs from the reference by `net`.
  std::string value_in(const Net& net, const std::string& key) const;
  [[noreturn]] void refuse(const Later& later, const std::string& why) const;

  std::vector<RecordedStart> starts_;  // one at least; the last one may be the change by hand
  Lineage lineage_;
  int64_t lanes_;  // 0: there is no checkpoint
  std::shared_ptr<const OpenedRun> now_;
  Reference reference_;
};

}  // namespace skein
