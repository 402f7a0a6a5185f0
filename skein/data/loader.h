// A background thread makes batches ahead of the training loop, so that training never waits for
// them.
//
// Memory   num_batches batches (Batch::bytes) and, per lane, the tokens of one segment; the
//          constructor allocates all batches.
// Threads  next() and the functions after it belong to one caller. The background thread makes the
//          first batch at the process's priority and the rest at a lower one (nice 10), so that it
//          yields to the threads that compute.
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <thread>
#include <vector>

#include "skein/base/mutex.h"
#include "skein/data/packer.h"
#include "skein/data/skipped_batches.h"

namespace skein {

struct LoaderOptions {
  int64_t first_lane = 0;  // this rank's lanes: [first_lane, end_lane)
  int64_t end_lane = 1;
  int64_t first_step = 1;  // of the first batch
  SkippedBatches skipped;  // batches that no step trains on
  int num_batches = 4;     // one in use, the rest ready or being made; at least 2
  int num_threads = 1;     // that tokenize
};

class Loader {
 public:
  // The corpora of `mixture` must outlive the loader. `states`: of all B lanes after step
  // first_step - 1; empty: from the beginning.
  Loader(const Mixture& mixture, const LoaderOptions& options,
         std::span<const MixtureState> states = {});
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch, valid until the next call. Waits until it is ready; `wait_seconds` (may be
  // null) is how long that took. Throws what the background thread threw, after the batches made
  // before; kInternal after stop().
  const Batch& next(double* wait_seconds = nullptr);

  // This rank's lanes after the batch that next() returned last: what a checkpoint of that step
  // stores, whatever has been made ahead. Before the first next(): as given.
  std::span<const MixtureState> states() const;

  // Ends the background thread; also done by the destructor.
  void stop();

 private:
  struct Slot {
    Batch batch;
    std::vector<MixtureState> states_after;
  };
  void produce();

  Packer packer_;
  const SkippedBatches skipped_;
  int64_t next_step_;
  int64_t next_batch_;  // that the lanes read next
  std::vector<MixtureState> first_states_;
  std::vector<Slot> slots_;  // batch number n is slot n mod slots_.size()

  mutable Mutex mutex_;
  ConditionVariable changed_;
  int64_t num_made_ SKEIN_GUARDED_BY(mutex_) = 0;
  int64_t num_given_ SKEIN_GUARDED_BY(mutex_) = 0;
  bool stopping_ SKEIN_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ SKEIN_GUARDED_BY(mutex_);
  std::thread thread_;
};

// The same batches again and again: a validation corpus once, from its beginning, in at most
// `most_batches` batches (0: as many as it fills). Where a lane has ended, rows are padded.
// Tokenizes on the caller's thread.
class ValidationBatches {
 public:
  // The corpora of `mixture`, whose lanes are read once, must outlive this.
  ValidationBatches(const Mixture& mixture, int64_t first_lane, int64_t end_lane,
                    int64_t most_batches);

  // What these lanes hold of the batches: how many batches they fill, and the tokens in them.
  Packer::Holding count(int num_threads = 1);
  // As many batches as the lanes of all ranks fill, which each has counted: since a rank does not
  // know the others' lanes, it must be set before the first next().
  void set_num_batches(int64_t num_batches) { num_batches_ = num_batches; }
  int64_t num_batches() const { return num_batches_; }

  // Begins again with the first batch.
  void rewind();

  // The next batch (steps 1, 2, ...), valid until the next call; null after the last.
  const Batch* next();

 private:
  int64_t most_batches_;
  int64_t num_batches_ = 0;
  Packer packer_;
  Batch batch_;
};

}  // namespace skein
