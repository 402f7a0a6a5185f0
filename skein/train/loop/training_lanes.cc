#include "skein/train/loop/training_lanes.h"

#include <utility>

#include "skein/base/text/log.h"
#include "skein/config/batches.h"
#include "skein/train/start/consensus.h"

namespace skein {

TrainingLanes::TrainingLanes(const PreparedRun& run)
    : run_(run), ramp_(batch_ramp(run.config)), skipped_(run.skipped) {}

TrainingLanes::Stand TrainingLanes::stored() const {
  const CheckpointReader* checkpoint = run_.beginning.checkpoint();
  if (checkpoint == nullptr) return {};
  const TrainingState& state = checkpoint->state();
  const std::string path = checkpoint->path().string();
  Stand stand;
  stand.states = lanes_from_json(state.lanes, run_.inputs.training(), path);
  stand.rows_taken = rows_taken_in(state.lanes, skipped_.batch_of(state.step), path);
  return stand;
}

void TrainingLanes::begin(int64_t step, const Stand& stand) {
  LoaderOptions options;
  options.share = rows_of(run_.layout);
  options.ramp = ramp_;
  options.first_step = step + 1;
  options.skipped = skipped_;
  options.rows_taken = stand.rows_taken;
  options.exchange = [this](std::span<const MixtureState> own, std::span<const int64_t> lanes) {
    return exchange(own, lanes);
  };
  loader_.reset();  // frees its memory before the next one takes as much
  loader_ = std::make_unique<Loader>(run_.inputs.training(), options, stand.states);
}

const Batch& TrainingLanes::next(int64_t step, double* wait_seconds) {
  const Batch& batch = loader_->next(wait_seconds);
  const int64_t rows = ramp_.size(skipped_.batch_of(step));
  const int64_t before = std::exchange(rows_, rows);
  const bool is_news = before != rows && (before != 0 || !run_.config.batch.ramp.empty());
  if (is_news && run_.is_first()) log::info("from step {} on a batch has {} rows", step, rows);
  return batch;
}

// The states of all lanes from those that ranks answer for, each for its own. Every rank adds
// zeros for the others: integers below 2^53 are exact in a sum of doubles.
std::vector<MixtureState> TrainingLanes::exchange(std::span<const MixtureState> states,
                                                  std::span<const int64_t> lanes) const {
  const Mixture& mixture = run_.inputs.training();
  const size_t corpora = mixture.parts().size(), numbers = 4 * corpora;
  const auto num_lanes = static_cast<size_t>(mixture.options().global_sequences);
  std::vector<double> all(num_lanes * numbers);
  for (size_t i = 0; i < states.size() && run_.layout.is_first_of_replica(); ++i) {
    double* at = &all[static_cast<size_t>(lanes[i]) * numbers];
    for (size_t corpus = 0; corpus < corpora; ++corpus) {
      const LaneState& lane = states[i].lanes[corpus];
      const int64_t read = states[i].read_tokens.empty() ? 0 : states[i].read_tokens[corpus];
      for (const int64_t value : {lane.block, lane.byte, lane.token, read}) {
        *at++ = static_cast<double>(value);
      }
    }
  }
  sum_over_ranks(run_.world, all);
  std::vector<MixtureState> result(num_lanes);
  for (size_t lane = 0; lane < num_lanes; ++lane) {
    const double* at = &all[lane * numbers];
    for (size_t corpus = 0; corpus < corpora; ++corpus, at += 4) {
      const auto number = [&](int i) { return static_cast<int64_t>(at[i]); };
      result[lane].lanes.push_back({number(0), number(1), number(2)});
      if (corpora > 1) result[lane].read_tokens.push_back(number(3));
    }
  }
  return result;
}

// Ranks with the same data coordinate have the same lanes, so only one of them stores them. Where
// batches and lanes differ in number, lanes of a rank do not follow one another, and rank 0 stores
// all.
void TrainingLanes::save(int64_t step, TrainingState& state) {
  const Loader::Position& position = loader_->position();
  const Mixture& mixture = run_.inputs.training();
  const int64_t lanes = mixture.options().global_sequences;
  const int64_t batches = skipped_.batch_of(step);
  std::optional<int64_t> rows_taken;
  if (position.rows_taken != batches * lanes) rows_taken = position.rows_taken;
  state.first_lane.reset();
  if (position.is_even) {
    if (run_.layout.is_first_of_replica()) {
      state.first_lane = rows_of(run_.layout).first_row(lanes);
    }
    state.lanes = lanes_to_json(mixture, position.states, rows_taken);
    return;
  }
  const auto all = exchange(position.states, position.lanes);
  if (run_.is_first()) state.first_lane = 0;
  state.lanes = lanes_to_json(mixture, all, rows_taken);
}

}  // namespace skein
