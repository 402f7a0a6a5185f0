#include "skein/checkpoint/checkpoint_writer.h"

#include <chrono>
#include <cstring>
#include <limits>

#include "skein/base/hash.h"

namespace skein {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Writes one file of the checkpoint; adds it and its shards to the manifest.
void write_shard_file(const fs::path& folder, const CheckpointLayout& layout,
                      const CheckpointFile& file, std::span<const std::byte> snapshot,
                      const FileOps& ops, Manifest& manifest) {
  const std::string& header = file.layout.header;
  manifest.files.push_back({file.name, file.layout.file_bytes, static_cast<int64_t>(header.size()),
                            xxh3_128_hex(std::as_bytes(std::span(header)))});
  SafetensorsWriter writer(folder / file.name, file.layout, ops);
  for (const size_t position : file.layout.order) {
    const size_t index = file.specs[position];
    const TensorSpec& spec = layout.specs[index];
    const std::vector<Slice> boxes = spec.stored_boxes();
    std::vector<int64_t> bytes;
    for (const Slice& box : boxes) {
      bytes.push_back(box.shape.num_elements() * size_of(spec.dtype));
    }
    const std::vector<std::string> checksums = writer.write_pieces(
        snapshot.subspan(layout.snapshot_begin[index], layout.spec_bytes[index]), bytes);
    ManifestTensor tensor{spec.name, spec.dtype, spec.shape, {}};
    int64_t begin = file.layout.begin[position];
    for (size_t i = 0; i < boxes.size(); ++i) {
      tensor.shards.push_back({file.name, boxes[i], begin, begin + bytes[i], checksums[i]});
      begin += bytes[i];
    }
    manifest.tensors.push_back(std::move(tensor));
  }
  writer.finish();
}

void write_manifest(const fs::path& path, const Manifest& manifest, const FileOps& ops) {
  const std::string text = manifest_text(manifest);
  const FileDescriptor file = ops.create(path);
  ops.write(file.get(), std::as_bytes(std::span(text)), path);
  ops.sync(file.get(), path);
}

void apply_retention(const fs::path& dir, const RetentionPolicy& policy, const FileOps& ops,
                     SavedCheckpoint& saved) {
  try {
    for (const CheckpointInfo& old : select_expired(list_checkpoints(dir), saved.step, policy)) {
      remove_checkpoint(old, ops);
      saved.removed_steps.push_back(old.step);
    }
  } catch (const Error& error) {
    saved.warning = fmt::format("an old checkpoint was not removed: {}", error.what());
  }
}

}  // namespace

CheckpointWriter::CheckpointWriter(const fs::path& dir, CheckpointWriterOptions options,
                                   std::vector<TensorSpec> specs)
    : dir_(dir),
      options_(std::move(options)),
      ops_(options_.file_hook),
      layout_(plan_checkpoint(std::move(specs), options_.max_file_bytes, options_.rank)) {
  if (dir_.string().starts_with("s3://")) {
    fail(ErrorCode::kUnsupported, "checkpoint.dir is {}: expected a folder; S3 is not written yet",
         dir_.string());
  }
  if (!options_.copy)
    options_.copy = [](void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); };
  ops_.make_folder(dir_);
  clean_unfinished(dir_, ops_);
  snapshot_.emplace(layout_.snapshot_bytes);
  if (options_.async) thread_ = std::thread(&CheckpointWriter::run, this);
}

CheckpointWriter::~CheckpointWriter() {
  if (!thread_.joinable()) return;
  wait();
  {
    const std::lock_guard lock(mutex_);
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
  copy_.start(layout_, views, *snapshot_, options_.copy);
  if (options_.async) {
    state_ = std::move(state);
    copy_state();
  } else {
    copy_.help();
    Result<SavedCheckpoint> result = write(state);
    finished_.push_back(std::move(result));
  }
  return seconds_since(start);
}

// The writing thread helps to copy; this thread does not wait for it to wake up.
void CheckpointWriter::copy_state() {
  {
    const std::lock_guard lock(mutex_);
    helper_error_ = nullptr;
    phase_ = Phase::kCopy;
  }
  changed_.notify_all();
  std::exception_ptr error;
  try {
    copy_.help();
  } catch (...) {
    error = std::current_exception();
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !helper_copying_; });
  if (!error) error = std::exchange(helper_error_, nullptr);
  phase_ = error ? Phase::kIdle : Phase::kWrite;
  lock.unlock();
  changed_.notify_all();
  if (error) std::rethrow_exception(error);
}

void CheckpointWriter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return phase_ != Phase::kIdle; });
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
      changed_.wait(lock, [this] { return phase_ != Phase::kCopy; });
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
  const auto start = std::chrono::steady_clock::now();
  const fs::path path = dir_ / checkpoint_name(state.step);
  const fs::path partial = path.string() + ".partial";
  try {
    ops_.remove_tree(partial);
    ops_.make_folder(partial);
    Manifest manifest{.state = state};
    for (const CheckpointFile& file : layout_.files) {
      write_shard_file(partial, layout_, file, std::as_const(*snapshot_).bytes(), ops_, manifest);
    }
    write_manifest(partial / "manifest.json", manifest, ops_);
    ops_.sync_folder(partial);
    commit_folder(partial, path, ops_);
    SavedCheckpoint saved{state.step, path, manifest.total_bytes(), seconds_since(start)};
    apply_retention(dir_, options_.retention, ops_, saved);
    return saved;
  } catch (const std::exception& error) {
    const auto* known = dynamic_cast<const Error*>(&error);
    try {
      ops_.remove_tree(partial);
    } catch (const Error&) {
      // The next start cleans it up; what went wrong first is what counts.
    }
    return Error(known != nullptr ? known->code() : ErrorCode::kInternal,
                 fmt::format("the checkpoint of step {} was not saved, earlier ones are untouched: "
                             "{}",
                             state.step, error.what()));
  }
}

std::optional<Result<SavedCheckpoint>> CheckpointWriter::poll() {
  const std::lock_guard lock(mutex_);
  if (finished_.empty()) return std::nullopt;
  Result<SavedCheckpoint> oldest = std::move(finished_.front());
  finished_.pop_front();
  return oldest;
}

void CheckpointWriter::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return phase_ == Phase::kIdle; });
}

}  // namespace skein
