// A background thread makes batches ahead of the training loop, so that training never waits for
// them.
//
// Sizes    where the next batch has another size (batch_ramp.h), next() exchanges the states of the
//          lanes with the other ranks and begins again with that size. Every rank does so before
//          the same step.
// Memory   num_batches batches (Batch::bytes) and, per lane, the tokens of one segment; batches of
//          a size are allocated before the first of them.
// Threads  next() and the functions after it belong to one caller. The background thread makes the
//          first batch at the process's priority and the rest at a lower one (nice 10), so that it
//          yields to the threads that compute.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "skein/base/threads/mutex.h"
#include "skein/data/lanes/packer.h"
#include "skein/data/lanes/skipped_batches.h"

namespace skein {

// Makes of the states of the lanes that this rank answers for, and their numbers, those of all
// lanes. Collective.
using ExchangeLanes = std::function<std::vector<MixtureState>(std::span<const MixtureState>,
                                                              std::span<const int64_t>)>;

struct LoaderOptions {
  RowShare share;          // of this rank
  BatchRamp ramp;          // as many rows as lanes, where all batches have
  int64_t first_step = 1;  // of the first batch
  int64_t rows_taken = 0;  // by the batches before it
  ExchangeLanes exchange;  // none: this rank answers for all lanes
  SkippedBatches skipped;  // batches that no step trains on
  int num_batches = 4;     // one in use, the rest ready or being made; at least 2
  int num_threads = 1;     // that tokenize
};

class Loader {
 public:
  // The corpora of `mixture` must outlive the loader. `states`: of all B lanes after `rows_taken`
  // rows; empty: from the beginning.
  Loader(const Mixture& mixture, const LoaderOptions& options,
         std::span<const MixtureState> states = {});
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch, valid until the next call. Waits until it is ready; `wait_seconds` (may be
  // null) is how long that took. Throws what the background thread threw, after the batches made
  // before; kInternal after stop().
  const Batch& next(double* wait_seconds = nullptr);

  // After the batch that next() returned last, whatever has been made ahead: what a checkpoint of
  // that step stores. Before the first next(): as given.
  struct Position {
    std::vector<MixtureState> states;  // of the lanes that this rank answers for
    std::vector<int64_t> lanes;        // their numbers
    int64_t rows_taken = 0;            // by all batches so far
    bool is_even = true;               // those of rank i are the i-th share of all lanes
  };
  const Position& position() const;
  std::span<const MixtureState> states() const { return position().states; }

  // Ends the background thread; also done by the destructor.
  void stop();

 private:
  struct Slot {
    Batch batch;
    Position after;
  };
  void begin(std::span<const MixtureState> states);
  void begin_next_size();
  void produce();
  void note_position(Position& position) const;
  int64_t size_of_step(int64_t step) const { return ramp_.size(skipped_.batch_of(step)); }

  const Mixture mixture_;
  const RowShare share_;
  const BatchRamp ramp_;
  const SkippedBatches skipped_;
  const ExchangeLanes exchange_;
  const int num_threads_;
  std::optional<Packer> packer_;
  int64_t next_step_;
  int64_t next_batch_;     // that the lanes read next
  int64_t sequences_ = 0;  // of the batches that are made now
  bool is_even_ = true;
  Position first_;
  std::vector<Slot> slots_;  // batch number n is slot n mod slots_.size()

  mutable Mutex mutex_;
  ConditionVariable changed_;
  int64_t num_made_ SKEIN_GUARDED_BY(mutex_) = 0;
  int64_t num_given_ SKEIN_GUARDED_BY(mutex_) = 0;
  bool stopping_ SKEIN_GUARDED_BY(mutex_) = false;
  bool size_ends_ SKEIN_GUARDED_BY(mutex_) = false;  // the next batch has another size
  std::exception_ptr error_ SKEIN_GUARDED_BY(mutex_);
  std::thread thread_;
};

// The same batches again and again: the first rows of every lane of a validation corpus, which
// batches of any size take in turn. So the tokens that count do not depend on the batch. Where a
// lane has ended, and behind the last of these rows, rows are padded. Tokenizes on the caller's
// thread.
class ValidationBatches {
 public:
  // The corpora of `mixture`, whose lanes are read once, must outlive this. This rank reads `share`
  // of batches of `sequences` rows, in all at most `most_rows` rows of every lane (0: all).
  ValidationBatches(const Mixture& mixture, const RowShare& share, int64_t sequences,
                    int64_t most_rows);

  // What this rank's share of the lanes holds: how many rows the fullest has, and the tokens in
  // them. Ranks of different shares count different lanes, and together all.
  Packer::Holding count(int num_threads = 1) const;
  // As many rows as the fullest lane of all ranks has, which each has counted: since a rank does
  // not know the others' lanes, it must be set before the first next().
  void set_rows_of_lane(int64_t rows);
  int64_t num_batches() const { return num_batches_; }

  // Begins again with the first batch.
  void rewind();

  // The next batch (steps 1, 2, ...), valid until the next call; null after the last.
  const Batch* next();

 private:
  int64_t num_lanes() const { return mixture_.options().global_sequences; }

  Mixture mixture_;
  RowShare share_;
  int64_t sequences_;
  int64_t most_rows_;
  int64_t num_rows_ = 0;  // of all lanes together
  int64_t num_batches_ = 0;
  Packer packer_;
  Batch batch_;
};

}  // namespace skein
