// Packs a range of lanes into rows, online: nothing is dropped, nothing is padded.
//
// Formula  row s of a lane holds its tokens s T .. (s+1) T - 1; the label of a token is the one
//          after it in the lane, read ahead across the end of the row. With `document_mask` a
//          segment's last token has no label, and positions and attention begin anew at every
//          segment; without it rows are plain concatenations.
// Format   docs/data_order.md
// Threads  one caller at a time; may itself use several (lanes are independent, so the rows do not
//          depend on how many).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "skein/data/batch.h"
#include "skein/data/lane.h"

namespace skein {

class Packer {
 public:
  // Lanes [first_lane, end_lane) of `context`, which must outlive the packer. `states` are those of
  // all B lanes (lanes_from_json); none: every lane from its beginning.
  Packer(const LaneContext& context, int64_t first_lane, int64_t end_lane,
         std::span<const LaneState> states = {}, int num_threads = 1);

  // The next row of every lane. `batch` must be of this packer's size; its step is left alone.
  void fill(Batch& batch);

  // Passes over `num_rows` rows of every lane: the cost of tokenizing them.
  void skip(int64_t num_rows);

  // Puts every lane back to its beginning.
  void restart();

  int64_t first_lane() const { return first_lane_; }
  int64_t num_lanes() const { return static_cast<int64_t>(lanes_.size()); }

  // Of these lanes: where the next row begins.
  void states(std::vector<LaneState>& out) const;

 private:
  void for_each_lane(const std::function<void(int64_t)>& body);

  const LaneContext& context_;
  int64_t first_lane_;
  int num_threads_;
  std::vector<Lane> lanes_;
};

// The global batch of step `step` (from 1), made by reading every lane from the beginning, or from
// `states` as of after step `states_step`. Cost: tokenizing (step - states_step) batches, on
// `num_threads` threads.
Batch batch_of_step(const LaneContext& context, int64_t step, int64_t states_step = 0,
                    std::span<const LaneState> states = {}, int num_threads = 1);

}  // namespace skein
