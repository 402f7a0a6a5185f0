// The lanes of a run on its ranks: how many there are, and where each of them is.
#include <algorithm>

#include "skein/train/loop/trainer.h"
#include "skein/train/start/consensus.h"

namespace skein {

// 0: there is no checkpoint, so that they are those of a run that begins.
int64_t Trainer::stored_lanes() const {
  const CheckpointReader* checkpoint = beginning_->checkpoint();
  if (checkpoint == nullptr) return 0;
  const int64_t stored = num_lanes_in(checkpoint->state().lanes), asked = config_.data.lanes;
  if (asked > 0 && stored > 0 && asked != stored) {
    fail(ErrorCode::kUsage,
         "data.lanes is {}, and {} was trained with {}: lanes are the order of the data and stay "
         "as they are; expected {}, or 0; for other lanes begin a new run, whose model.init_from "
         "is that checkpoint",
         asked, checkpoint->path().string(), stored, stored);
  }
  return stored;
}

// The states of all lanes from those that ranks answer for, each for its own. Every rank adds
// zeros for the others: integers below 2^53 are exact in a sum of doubles.
std::vector<MixtureState> Trainer::exchange_lanes(std::span<const MixtureState> states,
                                                  std::span<const int64_t> lanes) {
  const Mixture& mixture = inputs_->training();
  const size_t corpora = mixture.parts().size(), numbers = 4 * corpora;
  const auto num_lanes = static_cast<size_t>(mixture.options().global_sequences);
  std::vector<double> all(num_lanes * numbers);
  for (size_t i = 0; i < states.size() && layout_.is_first_of_replica(); ++i) {
    double* at = &all[static_cast<size_t>(lanes[i]) * numbers];
    for (size_t corpus = 0; corpus < corpora; ++corpus) {
      const LaneState& lane = states[i].lanes[corpus];
      const int64_t read = states[i].read_tokens.empty() ? 0 : states[i].read_tokens[corpus];
      for (const int64_t value : {lane.block, lane.byte, lane.token, read}) {
        *at++ = static_cast<double>(value);
      }
    }
  }
  sum_over_ranks(world_, all);
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
void Trainer::save_lanes(TrainingState& state) {
  const Loader::Position& position = loader_->position();
  const Mixture& mixture = inputs_->training();
  const int64_t lanes = mixture.options().global_sequences;
  const int64_t batches = skipped_.batch_of(step_);
  std::optional<int64_t> rows_taken;
  if (position.rows_taken != batches * lanes) rows_taken = position.rows_taken;
  state.first_lane.reset();
  if (position.is_even) {
    if (layout_.is_first_of_replica()) state.first_lane = rows_of(layout_).first_row(lanes);
    state.lanes = lanes_to_json(mixture, position.states, rows_taken);
    return;
  }
  const auto all = exchange_lanes(position.states, position.lanes);
  if (is_first()) state.first_lane = 0;
  state.lanes = lanes_to_json(mixture, all, rows_taken);
}

}  // namespace skein
