#include "skein/data/lanes/loader.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "skein/base/error.h"
#include "skein/base/files/lost_pages.h"
#include "skein/base/text/units.h"

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

// All rows but the first `num_rows` get no labels.
void remove_labels_behind(int64_t num_rows, Batch& batch) {
  if (num_rows == batch.sequences) return;
  std::fill(batch.labels.begin() + num_rows * batch.sequence_length, batch.labels.end(), kNoLabel);
  batch.num_label_tokens =
      std::count_if(batch.labels.begin(), batch.labels.end(), [](int32_t l) { return l >= 0; });
}

}  // namespace

Loader::Loader(const Mixture& mixture, const LoaderOptions& options,
               std::span<const MixtureState> states)
    : mixture_(mixture),
      share_(options.share),
      ramp_(options.ramp),
      skipped_(options.skipped),
      exchange_(options.exchange),
      num_threads_(options.num_threads),
      next_step_(options.first_step),
      next_batch_(skipped_.batch_of(options.first_step - 1) + 1) {
  first_.rows_taken = options.rows_taken;
  slots_.resize(static_cast<size_t>(std::max(options.num_batches, 2)));
  begin(states);
}

Loader::~Loader() { stop(); }

// From first_.rows_taken on.
void Loader::begin(std::span<const MixtureState> states) {
  const int64_t lanes = mixture_.options().global_sequences;
  sequences_ = size_of_step(next_step_);
  is_even_ = sequences_ == lanes && first_.rows_taken % lanes == 0;
  packer_.emplace(mixture_, Packer::Rows{share_, sequences_, first_.rows_taken}, states,
                  num_threads_);
  note_position(first_);
  const Batch batch(0, packer_->num_rows(), mixture_.options().sequence_length);
  for (Slot& slot : slots_) slot = {batch, first_};
  thread_ = std::thread([this] { produce(); });
}

void Loader::note_position(Position& position) const {
  packer_->states(position.states, &position.lanes);
  position.rows_taken = packer_->taken();
  position.is_even = is_even_;
}

void Loader::begin_next_size() {
  thread_.join();
  first_ = position();
  {
    const Lock lock(mutex_);
    num_made_ = num_given_ = 0;
    size_ends_ = false;
  }
  next_batch_ = skipped_.batch_of(next_step_ - 1) + 1;
  const std::vector<MixtureState> states =
      exchange_ ? exchange_(first_.states, first_.lanes) : first_.states;
  begin(states);
}

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
      if (size_of_step(next_step_) != sequences_) {
        size_ends_ = true;
        changed_.notify_all();
        return;
      }
      // The batch that next() returned last is in use until the next call.
      changed_.wait(lock, [&]() SKEIN_REQUIRES(mutex_) {
        const int64_t first_in_use = std::max<int64_t>(num_given_ - 1, 0);
        return stopping_ || num_made_ - first_in_use < num_slots;
      });
      if (stopping_) return;
      Slot& slot = slots_[num_made_ % num_slots];
      lock.unlock();
      if (skipped_.contains(next_batch_)) {
        const int64_t sequences = ramp_.size(next_batch_++);
        packer_->skip(1, sequences);
        is_even_ = is_even_ && sequences == sequences_;
        continue;
      }
      ++next_batch_;
      fill(*packer_, slot.batch);
      slot.batch.step = next_step_++;
      note_position(slot.after);
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
  bool ready = num_made_ > num_given_;
  const auto wait = [&] {
    changed_.wait(lock, [&]() SKEIN_REQUIRES(mutex_) {
      return num_made_ > num_given_ || error_ || stopping_ || size_ends_;
    });
  };
  wait();
  if (num_made_ == num_given_ && size_ends_ && !stopping_) {
    lock.unlock();
    begin_next_size();
    lock.lock();
    ready = false;
    wait();
  }
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

const Loader::Position& Loader::position() const {
  const Lock lock(mutex_);
  if (num_given_ == 0) return first_;
  return slots_[(num_given_ - 1) % static_cast<int64_t>(slots_.size())].after;
}

ValidationBatches::ValidationBatches(const Mixture& mixture, const RowShare& share,
                                     int64_t sequences, int64_t most_rows)
    : mixture_(mixture),
      share_(share),
      sequences_(sequences),
      most_rows_(most_rows),
      packer_(mixture, Packer::Rows{share, sequences}),
      batch_(0, packer_.num_rows(), mixture.options().sequence_length) {}

Packer::Holding ValidationBatches::count(int num_threads) const {
  const int64_t first = share_.first_row(num_lanes()), end = share_.end_row(num_lanes());
  if (first == end) return {};
  const Packer::Holding holding = Packer(mixture_, first, end).count_rows(most_rows_, num_threads);
  require_no_lost_pages();
  return holding;
}

void ValidationBatches::set_rows_of_lane(int64_t rows) {
  num_rows_ = rows * num_lanes();
  num_batches_ = ceil_div(num_rows_, sequences_);
}

void ValidationBatches::rewind() {
  packer_.restart();
  batch_.step = 0;
}

const Batch* ValidationBatches::next() {
  if (batch_.step == num_batches_) return nullptr;
  const int64_t first = batch_.step * sequences_ + share_.first_row(sequences_);
  fill(packer_, batch_);
  ++batch_.step;
  remove_labels_behind(std::clamp<int64_t>(num_rows_ - first, 0, batch_.sequences), batch_);
  return &batch_;
}

}  // namespace skein
