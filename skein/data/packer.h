// Packs a range of lanes into rows, online: nothing is dropped, and nothing is padded but the end
// of lanes that are read once (LaneOptions::once).
//
// Formula  row s of a lane holds its tokens s T .. (s+1) T - 1; the label of a token is the next
//          token of the lane, also across the end of the row. With `document_mask` a segment's last
//          token has no label, and positions and attention begin anew at every segment; without it
//          rows are plain concatenations. Behind the end of a lane stand tokens 0 without labels,
//          with the mask as a segment of their own.
// Format   docs/data_order.md
// Threads  one caller at a time; it may use several threads itself (lanes are independent, so the
//          rows do not depend on their number).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "skein/data/batch.h"
#include "skein/data/mixture.h"

namespace skein {

class Packer {
 public:
  // Lanes [first_lane, end_lane) of `mixture`, whose corpora must outlive the packer. `states` are
  // those of all B lanes (lanes_from_json); empty: every lane from its beginning.
  Packer(const Mixture& mixture, int64_t first_lane, int64_t end_lane,
         std::span<const MixtureState> states = {}, int num_threads = 1);

  // Fills in the next row of every lane. `batch` must have this packer's size; its step is not
  // changed. `segments` (may be null) becomes what the rows are made of, row by row.
  void fill(Batch& batch, std::vector<RowSegment>* segments = nullptr);

  // Skips `num_rows` rows of every lane; costs as much as tokenizing them.
  void skip(int64_t num_rows);

  // What lanes hold that are read once and stand at their beginnings, of each at most `most_rows`
  // rows (0: all). Costs tokenizing, on `num_threads` threads, except of lanes that plainly hold
  // that much. Leaves the lanes elsewhere: restart() follows.
  struct Holding {
    int64_t most_rows = 0;  // of a lane, the last one perhaps filled in part
    int64_t tokens = 0;     // of all these lanes together
    bool is_all = true;     // no lane holds more than that
  };
  Holding count_rows(int64_t most_rows, int num_threads);

  // Returns every lane to its beginning.
  void restart();

  int64_t first_lane() const { return first_lane_; }
  int64_t num_lanes() const { return static_cast<int64_t>(lanes_.size()); }

  // The states of these lanes, at the beginning of the next row.
  void states(std::vector<MixtureState>& out) const;

 private:
  void for_each_lane(const std::function<void(int64_t)>& body);

  Mixture mixture_;
  int64_t first_lane_;
  int num_threads_;
  std::vector<MixtureLane> lanes_;
  std::vector<std::vector<RowSegment>> segments_;  // of each lane's newest row
};

// The global batch number `step` (from 1), which that step trains on unless batches are skipped,
// made by reading every lane from the beginning, or from `states`, which are those after batch
// `states_step`. Cost: tokenizing (step - states_step) batches on `num_threads` threads.
Batch batch_of_step(const Mixture& mixture, int64_t step, int64_t states_step = 0,
                    std::span<const MixtureState> states = {}, int num_threads = 1,
                    std::vector<RowSegment>* segments = nullptr);

}  // namespace skein
