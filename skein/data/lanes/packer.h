// Packs lanes into rows, online: nothing is dropped, and nothing is padded but the end
// of lanes that are read once (LaneOptions::once).
//
// Formula  row k of a lane holds its tokens k T .. (k+1) T - 1; the label of a token is the next
//          token of the lane, also across the end of the row. With `document_mask` a segment's last
//          token has no label, and positions and attention begin anew at every segment; without it
//          rows are plain concatenations. Behind the end of a lane stand tokens 0 without labels,
//          with the mask as a segment of their own.
//          With a mask (token_mask.h) labels are the tokens that it chooses.
//          Row q of the run is row q / B of lane q mod B, and a batch of b rows takes the next b.
// Format   docs/data_order.md
// Ranks    each has a packer for its share of every batch. Of a lane that several share in turn,
//          each reads all tokens. Together they answer for every lane once: the one that read its
//          newest row or, where that was before all of them, will read the next
// Threads  one caller at a time; it may use several threads itself (lanes are independent, so the
//          rows do not depend on their number).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "skein/data/lanes/batch.h"
#include "skein/data/lanes/batch_ramp.h"
#include "skein/data/lanes/mixture.h"

namespace skein {

class Packer {
 public:
  struct Rows {
    RowShare share;         // of this packer
    int64_t sequences = 1;  // of a batch
    int64_t taken = 0;      // by the batches before
  };
  // The corpora of `mixture` must outlive the packer. `states` are those of all B lanes
  // (lanes_from_json) when `taken` rows were taken; empty: every lane from its beginning.
  Packer(const Mixture& mixture, const Rows& rows, std::span<const MixtureState> states = {},
         int num_threads = 1);
  // Rows [first_lane, end_lane) of batches that take one row of every lane.
  Packer(const Mixture& mixture, int64_t first_lane, int64_t end_lane,
         std::span<const MixtureState> states = {}, int num_threads = 1);

  // Fills in this packer's rows of the next batch. `batch` must have their number; its step is not
  // changed. `segments` (may be null) becomes what the rows are made of, row by row.
  void fill(Batch& batch, std::vector<RowSegment>* segments = nullptr);

  // Passes over batches; costs as much as tokenizing them.
  void skip(int64_t num_batches) { skip(num_batches, rows_.sequences); }
  // Over batches of another size.
  void skip(int64_t num_batches, int64_t sequences);

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

  int64_t num_rows() const { return rows_.share.rows(rows_.sequences); }
  int64_t taken() const { return rows_.taken; }

  // The states of the lanes that this packer answers for, in order, each at the beginning of its
  // next row; `lanes` (may be null) becomes their numbers.
  void states(std::vector<MixtureState>& out, std::vector<int64_t>* lanes = nullptr) const;

 private:
  struct LaneReader {
    MixtureLane lane;
    int64_t row;            // of the lane, the next to read
    bool is_first_of_lane;  // the first rows after the beginning are this packer's
    bool has_read = false;
  };
  int64_t num_lanes() const { return mixture_.options().global_sequences; }
  // Rows of a lane that the first `taken` rows of the run hold.
  int64_t rows_of_lane(int64_t lane, int64_t taken) const;
  bool answers_for(const LaneReader& reader) const;
  std::vector<int64_t> lanes_to_read() const;
  void make_readers(std::span<const int64_t> lanes);
  LaneReader& reader_of(int64_t lane) { return readers_[static_cast<size_t>(index_[lane])]; }
  void pass_to(LaneReader& reader, int64_t row) const;
  void begin_segments();
  void for_each(int64_t count, const std::function<void(int64_t)>& body) const;

  Mixture mixture_;
  Rows rows_;
  Rows begin_;
  int num_threads_;
  std::vector<MixtureState> states_;  // with which lanes begin; empty: at their beginnings
  std::vector<LaneReader> readers_;
  std::vector<int32_t> index_;  // by lane: in readers_; -1: it is not read
  bool has_begun_ = false;
  std::vector<std::vector<RowSegment>> segments_;  // of each row
};

// The rows of a batch, made by reading every lane from the beginning, or from `states`, which are
// those after `states_rows` rows of the run. Cost: tokenizing all rows up to the batch.
Batch batch_of_rows(const Mixture& mixture, int64_t first_row, int64_t sequences,
                    int64_t states_rows = 0, std::span<const MixtureState> states = {},
                    int num_threads = 1, std::vector<RowSegment>* segments = nullptr);

// Batch number `step` (from 1) of a run whose batches take one row of every lane. `states` are
// those after batch `states_step`.
Batch batch_of_step(const Mixture& mixture, int64_t step, int64_t states_step = 0,
                    std::span<const MixtureState> states = {}, int num_threads = 1,
                    std::vector<RowSegment>* segments = nullptr);

}  // namespace skein
