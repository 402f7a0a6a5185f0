#include "skein/checkpoint/save/checkpoint_writer.h"

#include <chrono>
#include <cstring>
#include <limits>

#include "skein/base/machine/clock.h"
#include "skein/checkpoint/save/snapshot_save.h"
#include "skein/objects/url.h"

namespace skein {
namespace {

void check_ranks(const CheckpointWriterOptions& options) {
  const std::string& id = options.save_id;
  if (options.num_ranks == 1) return;
  if (options.rank < 0 || options.rank >= options.num_ranks) {
    fail(ErrorCode::kInvalid, "[checkpoint] rank {} of {} cannot save", options.rank,
         options.num_ranks);
  }
  constexpr size_t kMostCharacters = 200;  // a file name may have 255
  if (id.empty() || id.size() > kMostCharacters ||
      id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") != id.npos) {
    fail(ErrorCode::kInvalid,
         "[checkpoint] save_id \"{}\" is not made of up to {} of a-z, 0-9, _ and -", id,
         kMostCharacters);
  }
}

}  // namespace

CheckpointWriter::CheckpointWriter(const fs::path& dir, CheckpointWriterOptions options,
                                   std::vector<TensorSpec> specs)
    : dir_(dir),
      options_(std::move(options)),
      ops_(options_.file_hook),
      layout_(plan_checkpoint(std::move(specs), options_.max_file_bytes, options_.rank)) {
  if (!options_.copy)
    options_.copy = [](void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); };
  check_ranks(options_);
  if (!is_object_url(dir_)) ops_.make_folder(dir_);
  if (options_.rank == 0 || options_.num_ranks == 1) clean_unfinished(dir_, ops_);
  snapshot_.emplace(layout_.snapshot_bytes);
  if (options_.async) thread_ = std::thread(&CheckpointWriter::run, this);
}

CheckpointWriter::~CheckpointWriter() {
  if (!thread_.joinable()) return;
  wait();
  {
    const Lock lock(mutex_);
    phase_ = Phase::kStop;
  }
  changed_.notify_all();
  thread_.join();
}

int64_t CheckpointWriter::snapshot_bytes(const std::vector<TensorSpec>& specs) {
  return plan_checkpoint(specs, std::numeric_limits<int64_t>::max(), 0).snapshot_bytes;
}

double CheckpointWriter::begin(TrainingState state, std::span<const View> views) {
  const auto start = std::chrono::steady_clock::now();
  wait();
  ++num_begun_;
  const int64_t step = state.step;
  try {
    copy_.start(layout_, views, snapshot_->bytes(), options_.copy);
    if (options_.async) {
      copy_state(std::move(state));
    } else {
      copy_.help();
    }
  } catch (...) {
    abandon(step, std::current_exception());
    throw;
  }
  if (!options_.async) {
    Result<SavedCheckpoint> result = write(state);  // NOLINT: moved only if async
    const Lock lock(mutex_);
    finished_.push_back(std::move(result));
  }
  return seconds_since(start);
}

// The writing thread helps to copy; this thread begins without waiting for it to wake up.
void CheckpointWriter::copy_state(TrainingState state) {
  {
    const Lock lock(mutex_);
    helper_error_ = nullptr;
    state_ = std::move(state);
    phase_ = Phase::kCopy;
  }
  changed_.notify_all();
  std::exception_ptr error;
  try {
    copy_.help();
  } catch (...) {
    error = std::current_exception();
  }
  Lock lock(mutex_);
  changed_.wait(lock, [this]() SKEIN_REQUIRES(mutex_) { return !helper_copying_; });
  if (!error) error = std::exchange(helper_error_, nullptr);
  phase_ = error ? Phase::kIdle : Phase::kWrite;
  lock.unlock();
  changed_.notify_all();
  if (error) std::rethrow_exception(error);
}

void CheckpointWriter::run() {
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this]() SKEIN_REQUIRES(mutex_) { return phase_ != Phase::kIdle; });
    if (phase_ == Phase::kStop) return;
    if (phase_ == Phase::kCopy) {
      helper_copying_ = true;
      lock.unlock();
      std::exception_ptr error;
      try {
        copy_.help();
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      helper_error_ = error;
      helper_copying_ = false;
      changed_.notify_all();
      changed_.wait(lock, [this]() SKEIN_REQUIRES(mutex_) { return phase_ != Phase::kCopy; });
    }
    if (phase_ != Phase::kWrite) continue;
    lock.unlock();
    Result<SavedCheckpoint> result = write(state_);
    lock.lock();
    finished_.push_back(std::move(result));
    phase_ = Phase::kIdle;
    changed_.notify_all();
  }
}

Result<SavedCheckpoint> CheckpointWriter::write(const TrainingState& state) const {
  const SaveJob job{dir_, options_, ops_, layout_, std::as_const(*snapshot_).bytes(), num_begun_};
  if (is_object_url(dir_)) return save_to_bucket(job, state);
  return options_.num_ranks == 1 ? save_alone(job, state) : save_shared(job, state);
}

// Keeps the other ranks from waiting for a part that will not come.
void CheckpointWriter::abandon(int64_t step, const std::exception_ptr& error) const {
  if (options_.num_ranks == 1) return;
  const SaveJob job{dir_, options_, ops_, layout_, {}, num_begun_};
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& what) {
    abandon_shared(job, step, what);
  }
}

std::optional<Result<SavedCheckpoint>> CheckpointWriter::poll() {
  const Lock lock(mutex_);
  if (finished_.empty()) return std::nullopt;
  Result<SavedCheckpoint> oldest = std::move(finished_.front());
  finished_.pop_front();
  return oldest;
}

void CheckpointWriter::wait() {
  Lock lock(mutex_);
  changed_.wait(lock, [this]() SKEIN_REQUIRES(mutex_) { return phase_ == Phase::kIdle; });
}

}  // namespace skein
