#include "skein/data/loader.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "skein/base/error.h"
#include "skein/base/lost_pages.h"

namespace skein {
namespace {

constexpr int kNiceness = 10;

// On Linux a nice value belongs to the thread, and threads that it starts inherit it. It is no
// error if the system refuses to change it.
void lower_priority() { (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness); }

// Of text that could not be read there are zeros, which may be no corpus, or look like one.
void fill(Packer& packer, Batch& batch) {
  try {
    packer.fill(batch);
  } catch (const Error&) {
    require_no_lost_pages();
    throw;
  }
  require_no_lost_pages();
}

}  // namespace

Loader::Loader(const Mixture& mixture, const LoaderOptions& options,
               std::span<const MixtureState> states)
    : packer_(mixture, options.first_lane, options.end_lane, states, options.num_threads),
      skipped_(options.skipped),
      next_step_(options.first_step),
      next_batch_(skipped_.batch_of(options.first_step - 1) + 1) {
  packer_.states(first_states_);
  const Batch batch(options.first_lane, packer_.num_lanes(), mixture.options().sequence_length);
  slots_.resize(std::max(options.num_batches, 2), {batch, first_states_});
  thread_ = std::thread([this] { produce(); });
}

Loader::~Loader() { stop(); }

void Loader::stop() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Loader::produce() {
  const auto num_slots = static_cast<int64_t>(slots_.size());
  try {
    for (;;) {
      Lock lock(mutex_);
      // The batch that next() returned last is in use until the next call.
      changed_.wait(lock, [&]() SKEIN_REQUIRES(mutex_) {
        const int64_t first_in_use = std::max<int64_t>(num_given_ - 1, 0);
        return stopping_ || num_made_ - first_in_use < num_slots;
      });
      if (stopping_) return;
      Slot& slot = slots_[num_made_ % num_slots];
      lock.unlock();
      if (skipped_.contains(next_batch_++)) {
        packer_.skip(1);
        continue;
      }
      fill(packer_, slot.batch);
      slot.batch.step = next_step_++;
      packer_.states(slot.states_after);
      lock.lock();
      ++num_made_;
      changed_.notify_all();
      const bool first = num_made_ == 1;
      lock.unlock();
      if (first) lower_priority();  // training waits only for the first batch
    }
  } catch (...) {
    const Lock lock(mutex_);
    error_ = std::current_exception();
    changed_.notify_all();
  }
}

const Batch& Loader::next(double* wait_seconds) {
  const auto start = std::chrono::steady_clock::now();
  Lock lock(mutex_);
  const bool ready = num_made_ > num_given_;
  changed_.wait(
      lock, [&]() SKEIN_REQUIRES(mutex_) { return num_made_ > num_given_ || error_ || stopping_; });
  if (wait_seconds != nullptr) {
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
    *wait_seconds = ready ? 0.0 : waited.count();
  }
  if (num_made_ == num_given_) {
    if (error_) std::rethrow_exception(error_);
    fail(ErrorCode::kInternal, "a batch was asked of a loader that has been stopped");
  }
  const int64_t number = num_given_++;
  changed_.notify_all();
  return slots_[number % static_cast<int64_t>(slots_.size())].batch;
}

std::span<const MixtureState> Loader::states() const {
  const Lock lock(mutex_);
  if (num_given_ == 0) return first_states_;
  return slots_[(num_given_ - 1) % static_cast<int64_t>(slots_.size())].states_after;
}

ValidationBatches::ValidationBatches(const Mixture& mixture, int64_t first_lane, int64_t end_lane,
                                     int64_t most_batches)
    : most_batches_(most_batches),
      packer_(mixture, first_lane, end_lane),
      batch_(first_lane, packer_.num_lanes(), mixture.options().sequence_length) {}

Packer::Holding ValidationBatches::count(int num_threads) {
  const Packer::Holding holding = packer_.count_rows(most_batches_, num_threads);
  packer_.restart();
  require_no_lost_pages();
  return holding;
}

void ValidationBatches::rewind() {
  packer_.restart();
  batch_.step = 0;
}

const Batch* ValidationBatches::next() {
  if (batch_.step == num_batches_) return nullptr;
  fill(packer_, batch_);
  ++batch_.step;
  return &batch_;
}

}  // namespace skein
