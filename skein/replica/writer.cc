#include "skein/replica/writer.h"

#include <unistd.h>

#include <cstring>
#include <ctime>

#include "skein/base/error.h"
#include "skein/base/machine/clock.h"
#include "skein/base/shared/heartbeat.h"
#include "skein/replica/record.h"

namespace skein {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{4} << 30;  // as in a checkpoint

double thread_seconds() {
  struct timespec time {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

ReplicaWriter::ReplicaWriter(ReplicaWriterOptions options, std::vector<TensorSpec> specs)
    : options_([&] {
        if (!options.copy) {
          options.copy = [](void* to, const void* from, size_t n) { std::memcpy(to, from, n); };
        }
        return std::move(options);
      }()),
      layout_(plan_checkpoint(std::move(specs), kMaxFileBytes, options_.rank)) {
  for (const int file : options_.place.slots) {
    slots_.push_back(std::make_unique<ReplicaMemory>(file));
  }
  thread_ = std::thread([this] { run(); });
}

ReplicaWriter::~ReplicaWriter() {
  {
    const Lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ReplicaWriter::begin(TrainingState state, std::span<const View> views) {
  const Clock::time_point start = Clock::now();
  if (!is_complete())
    fail(ErrorCode::kInternal, "a save in memory began before the last one ended");
  number_ = number_ == 0 ? options_.first_number : number_ + 1;
  ReplicaMemory& memory = *slots_.at(replica_slot(number_));
  copy_.start(layout_, views, memory.reserve(layout_.snapshot_bytes), options_.copy);
  copy_.help();
  {
    const Lock lock(mutex_);
    state_ = std::move(state);
  }
  changed_.notify_all();
  stall_seconds_ = seconds_since(start);
}

bool ReplicaWriter::is_complete() {
  if (number_ == 0) return true;
  const Lock lock(mutex_);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return !state_ && (!options_.place.passes_on || heartbeat::passed_on() >= number_);
}

double ReplicaWriter::busy_seconds() {
  const Lock lock(mutex_);
  return busy_seconds_;
}

void ReplicaWriter::run() {
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this]() SKEIN_REQUIRES(mutex_) { return ends_ || state_; });
    if (ends_) return;
    const TrainingState state = *state_;
    lock.unlock();
    const double before = thread_seconds();
    std::exception_ptr error;
    try {
      finish_save(state);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    busy_seconds_ = thread_seconds() - before;
    error_ = error;
    state_.reset();
  }
}

void ReplicaWriter::finish_save(const TrainingState& state) {
  ReplicaMemory& memory = *slots_.at(replica_slot(number_));
  const std::string record = ReplicaRecord::make(layout_, memory.reserved(), state);
  memory.complete({.save = options_.save,
                   .number = number_,
                   .timeline = state.timeline.number,
                   .step = state.step,
                   .rank = options_.rank,
                   .num_ranks = options_.num_ranks},
                  record);
  heartbeat::reach_save(number_);
  if (options_.place.event < 0) return;
  const uint64_t one = 1;
  (void)::write(options_.place.event, &one, sizeof one);
}

}  // namespace skein
