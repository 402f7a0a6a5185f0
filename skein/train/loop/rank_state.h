// The state of a run on one rank, on its device: the memory of its programs, which run there, and
// all that checks and copies the state.
//
// Order    the constructor allocates, after every check but those of the disk and of the memory for
//          copies, which it makes, and agrees with all ranks on kernel algorithms. Then load()
// Checked  after every update, before the next one, and before it is saved (state_check.h)
// Ranks    the constructor, load() and vote() are collective
// Errors   Error{kNoSpace}; those of the check are kWrongBits and kPeerLost
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "skein/train/loop/memory_saver.h"
#include "skein/train/loop/saver.h"
#include "skein/train/loop/state_check.h"
#include "skein/train/loop/step_runner.h"
#include "skein/train/start/prepared_run.h"

namespace skein {

class RankState {
 public:
  // `run` must outlive this object, which leaves the run's groups when it ends.
  explicit RankState(PreparedRun& run);
  ~RankState();
  RankState(const RankState&) = delete;
  RankState& operator=(const RankState&) = delete;

  // Fills it with what the run begins with.
  void load();
  // The savers count from `step`, which was loaded.
  void count_from(int64_t step);
  // After the update of `step`; `results`: numbers that are the same on all ranks.
  void vote(int64_t step, std::span<const double> results = {});
  // Before the state after `step` is used.
  void expect_unchanged(int64_t step);
  // Spent in both since the last call.
  double take_check_seconds();

  StepRunner& runner() { return runner_; }
  Saver& saver() { return *saver_; }
  MemorySaver* copies() { return copies_.get(); }         // null: none are kept in memory
  const Json& algorithms() const { return algorithms_; }  // of kernels, for checkpoints

 private:
  void tell_arenas() const;
  void warn_of_lack_of_disk() const;
  void begin_to_check();
  bool has_memory_for_copies() const;
  void tell_scale() const;
  Json agree_on_algorithms();

  PreparedRun& run_;
  StepRunner runner_;
  std::optional<Saver> saver_;
  std::unique_ptr<StateCheck> check_;  // null: the state is not checked
  std::unique_ptr<MemorySaver> copies_;
  Json algorithms_;
};

}  // namespace skein
