#include "skein/checkpoint/save/snapshot_save.h"

#include <chrono>

#include "skein/base/exception.h"
#include "skein/base/machine/clock.h"
#include "skein/base/shared/heartbeat.h"
#include "skein/checkpoint/find/best_checkpoint.h"
#include "skein/checkpoint/find/lineage.h"
#include "skein/checkpoint/save/finite.h"
#include "skein/checkpoint/save/join_parts.h"
#include "skein/checkpoint/save/object_save.h"
#include "skein/checkpoint/save/part.h"
#include "skein/checkpoint/save/part_manifest.h"
#include "skein/checkpoint/save/shared_save.h"
#include "skein/objects/url.h"

namespace skein {
namespace {

// Writes one file of the checkpoint; adds it and its shards to the manifest.
void write_shard_file(const fs::path& folder, const CheckpointLayout& layout,
                      const CheckpointFile& file, std::span<const std::byte> snapshot,
                      bool in_boxes, const FileOps& ops, Manifest& manifest) {
  SafetensorsWriter writer(folder / file.name, file.layout, ops);
  const auto store = [&](const TensorSpec& spec, std::span<const std::byte> values,
                         std::span<const int64_t> bytes) {
    check_finite(spec.name, spec.dtype, values);
    return writer.write_pieces(values, bytes);
  };
  add_file(layout, file, snapshot, in_boxes, store, manifest);
  writer.finish();
}

void write_manifest(const fs::path& path, const Manifest& manifest, const FileOps& ops) {
  const std::string text = manifest_text(manifest);
  const FileDescriptor file = ops.create(path);
  ops.write(file.get(), std::as_bytes(std::span(text)), path);
  ops.sync(file.get(), path);
}

// Only to checkpoints of this timeline: others are its ancestors or belong to another branch.
void apply_retention(const SaveJob& job, const Timeline& timeline, SavedCheckpoint& saved) {
  const RetentionPolicy& policy = job.options.retention;
  if (!saved.warning.empty() || policy.keep <= 0) return;  // old ones may still be needed
  try {
    std::vector<CheckpointInfo> own;
    for (const CheckpointHead& head : read_heads(job.dir)) {
      if (head.timeline && same_timeline(*head.timeline, timeline)) own.push_back(head.info);
    }
    std::optional<int64_t> best;
    if (!policy.best_by.empty()) best = best_step(own, policy.best_by);
    for (const CheckpointInfo& old : select_expired(std::move(own), saved.step, policy, best)) {
      if (remove_checkpoint(old, job.ops)) saved.removed_steps.push_back(old.step);
    }
  } catch (const Error& error) {
    saved.warning = fmt::format("an old checkpoint was not removed: {}", error.what());
  }
}

// Whether the table of shards is a file of its own.
bool has_index(const SaveJob& job) {
  return job.options.num_ranks > 1 && job.options.num_ranks >= job.options.index_from_ranks;
}

std::string same_name(const std::string& file) { return file; }

// Writes all files of this rank, each under what `name` makes of its name. The manifest also lists
// tensors that only other ranks store.
Manifest write_files(const fs::path& folder, const SaveJob& job, const TrainingState& state,
                     const std::function<std::string(const std::string&)>& name = same_name) {
  Manifest manifest{.state = state};
  for (CheckpointFile file : job.layout.files) {
    file.name = name(file.name);
    write_shard_file(folder, job.layout, file, job.snapshot, !has_index(job), job.ops, manifest);
  }
  add_tensors_of_others(job.layout, manifest);
  return manifest;
}

// What makes the checkpoint exist must be this process's to do.
void require_commit(const SaveJob& job, const fs::path& path) {
  if (job.options.before_commit) job.options.before_commit();
  heartbeat::require_permit(fmt::format("{} is not committed", path.string()));
}

// Called by rank 0 when everything that the manifest names is durable in `partial`.
SavedCheckpoint commit(const SaveJob& job, const Manifest& manifest, int64_t total_bytes,
                       const fs::path& partial, const fs::path& path) {
  write_manifest(partial / "manifest.json", manifest, job.ops);
  job.ops.sync_folder(partial);
  SavedCheckpoint saved{manifest.state.step, path, total_bytes};
  require_commit(job, path);
  if (const auto problem = commit_folder(partial, path, job.ops)) {
    saved.warning = fmt::format("saved, but {}", problem->what());
  }
  return saved;
}

// Memory that runs out says nothing about the disk, of which kNoSpace would tell.
Error error_of(const std::exception& error) {
  const bool is_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return is_memory ? Error(ErrorCode::kInternal, "out of memory") : to_error(error);
}

Error not_saved(int64_t step, const Error& error) {
  return Error(error.code(), fmt::format("the checkpoint of step {} was not saved, earlier ones "
                                         "are untouched: {}",
                                         step, error.what()));
}

SharedSave shared_save(const SaveJob& job, int64_t step) {
  return {{.dir = job.dir,
           .step = step,
           .save = fmt::format("{}-{}", job.options.save_id, job.number),
           .rank = job.options.rank,
           .num_ranks = job.options.num_ranks,
           .deadline_s = job.options.deadline_s,
           .should_abort = job.options.should_abort},
          job.ops};
}

// Throws if a file is missing, since such a checkpoint would not verify. Returns the files' bytes.
int64_t check_files(const fs::path& folder, const SavePart& part) {
  int64_t total_bytes = 0;
  for (int64_t i = 0; i < part.index().num_files(); ++i) {
    const ManifestFile file = part.index().file(i);
    std::error_code error;
    const auto bytes = fs::file_size(folder / file.name, error);
    if (error || static_cast<int64_t>(bytes) != file.file_bytes) {
      fail(ErrorCode::kIo, "{}: {}, expected a file of {} bytes", (folder / file.name).string(),
           error ? error.message() : fmt::format("{} bytes", bytes), file.file_bytes);
    }
    total_bytes += file.file_bytes;
  }
  return total_bytes;
}

SavedCheckpoint merge_and_commit(const SaveJob& job, SharedSave& shared, const Manifest& own) {
  std::vector<SavePart> parts = shared.collect();
  if (job.options.before_commit) job.options.before_commit();
  try {  // all ranks have met: nobody needs an earlier save any more
    clean_unfinished(job.dir, job.ops, shared.partial());
  } catch (const Error&) {
    // The next save or start removes it.
  }
  parts.insert(parts.begin(), SavePart(own));
  int64_t total_bytes = 0;
  for (const SavePart& part : parts) total_bytes += check_files(shared.partial(), part);
  const Manifest manifest =
      has_index(job) ? join_parts(std::move(parts), shared.partial() / kIndexName, job.ops)
                     : join_parts(std::move(parts));
  shared.remove_parts();
  return commit(job, manifest, total_bytes, shared.partial(), shared.path());
}

// The index is written with its head last, as no object can be: in a file without a name first.
void write_index_object(const SaveJob& job, const ObjectSave& save, std::vector<SavePart> parts,
                        Manifest& manifest) {
  const fs::path file = unique_partial(fs::temp_directory_path() / kIndexName);
  try {
    manifest = join_parts(std::move(parts), file, job.ops);
    manifest.index->file = save.object_name(kIndexName);
    const auto object = job.ops.open_output(save.folder() / manifest.index->file);
    object->write(MappedFile(file).bytes());
    object->finish();
  } catch (...) {
    job.ops.remove_tree(file);
    throw;
  }
  job.ops.remove_tree(file);
}

SavedCheckpoint commit_object(const SaveJob& job, ObjectSave& save, const Manifest& own) {
  std::vector<SavePart> parts = save.collect(own);
  if (job.options.before_commit) job.options.before_commit();
  SavedCheckpoint saved{own.state.step, save.folder()};
  try {  // all ranks have met: nobody needs an earlier save any more
    clean_unfinished(job.dir, job.ops, save.folder());
  } catch (const Error&) {
    // The next save or start removes it.
  }
  for (const SavePart& part : parts) {
    for (int64_t i = 0; i < part.index().num_files(); ++i) {
      saved.num_bytes += part.index().file(i).file_bytes;
    }
  }
  Manifest manifest;
  if (has_index(job)) {
    write_index_object(job, save, std::move(parts), manifest);
  } else {
    manifest = join_parts(std::move(parts));
  }
  require_commit(job, save.folder());
  job.ops.put_object(save.folder() / "manifest.json", manifest_text(manifest));
  return saved;
}

}  // namespace

Result<SavedCheckpoint> save_to_bucket(const SaveJob& job, const TrainingState& state) {
  const Clock::time_point start = Clock::now();
  ObjectSave save(job, state.step);
  SavedCheckpoint saved{state.step, save.folder()};
  bool committed = false;
  try {
    const Manifest own = write_files(
        save.folder(), job, state, [&](const std::string& file) { return save.object_name(file); });
    if (job.options.rank == 0) {
      saved = commit_object(job, save, own);
      committed = true;
      save.end();
    } else {
      saved.num_bytes = own.total_bytes();
      save.publish(own);
      if (const auto error = save.wait_for_commit()) return not_saved(state.step, *error);
    }
  } catch (const std::exception& error) {
    if (!committed) return not_saved(state.step, save.give_up(error_of(error)));
    saved.warning = fmt::format("saved, but {}", error.what());
  }
  saved.write_seconds = seconds_since(start);
  if (job.options.rank == 0) apply_retention(job, state.timeline, saved);
  return saved;
}

Result<SavedCheckpoint> save_alone(const SaveJob& job, const TrainingState& state) {
  const Clock::time_point start = Clock::now();
  const fs::path path = job.dir / checkpoint_name(state.step);
  const fs::path partial = path.string() + ".partial";
  try {
    if (job.options.before_commit) job.options.before_commit();
    job.ops.remove_tree(partial);
    job.ops.make_folder(partial);
    const Manifest manifest = write_files(partial, job, state);
    SavedCheckpoint saved = commit(job, manifest, manifest.total_bytes(), partial, path);
    saved.write_seconds = seconds_since(start);
    apply_retention(job, state.timeline, saved);
    return saved;
  } catch (const std::exception& error) {
    try {
      job.ops.remove_tree(partial);
    } catch (const Error&) {
      // The next start cleans it up; the first error is the one to report.
    }
    return not_saved(state.step, error_of(error));
  }
}

Result<SavedCheckpoint> save_shared(const SaveJob& job, const TrainingState& state) {
  const Clock::time_point start = Clock::now();
  SharedSave shared = shared_save(job, state.step);
  SavedCheckpoint saved{state.step, shared.path()};
  try {
    shared.open();
    const Manifest own = write_files(shared.partial(), job, state);
    if (job.options.rank == 0) {
      saved = merge_and_commit(job, shared, own);
    } else {
      job.ops.sync_folder(shared.partial());
      saved.num_bytes = own.total_bytes();
      shared.publish(own);
      if (const auto error = shared.wait_for_commit()) return not_saved(state.step, *error);
    }
  } catch (const std::exception& error) {
    const auto outcome = shared.give_up(error_of(error));
    if (outcome) return not_saved(state.step, *outcome);
  }
  saved.write_seconds = seconds_since(start);
  if (job.options.rank == 0) apply_retention(job, state.timeline, saved);
  return saved;
}

void abandon_shared(const SaveJob& job, int64_t step, const std::exception& why) {
  if (is_object_url(job.dir)) {
    ObjectSave(job, step).give_up(error_of(why));
    return;
  }
  shared_save(job, step).give_up(error_of(why));
}

}  // namespace skein
