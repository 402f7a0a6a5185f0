#include "skein/prepare/dedup/job.h"

#include <algorithm>
#include <system_error>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/units.h"
#include "skein/prepare/dedup/signatures.h"
#include "skein/prepare/ingest_shards.h"
#include "skein/prepare/outputs.h"

namespace skein {
namespace {

constexpr int64_t kMinMemoryBytes = int64_t{256} << 20;
constexpr int64_t kMaxShards = 100'000;

void check_options(const std::vector<fs::path>& inputs, const DedupOptions& options) {
  if (inputs.empty()) fail(ErrorCode::kUsage, "nothing to read: expected files or folders");
  check_reading(options.read);
  if (options.memory_bytes < kMinMemoryBytes) {
    fail(ErrorCode::kUsage, "--memory {}: expected at least 256MiB",
         format_bytes(options.memory_bytes));
  }
  const MinHashOptions& minhash = options.minhash;
  if (minhash.num_words < 1 || minhash.num_bands < 1 || minhash.num_rows < 1 ||
      minhash.num_bands * minhash.num_rows > 4096) {
    fail(ErrorCode::kUsage,
         "{} bands of {} rows over n-grams of {} words: expected at least 1 each, and at most 4096 "
         "hashes in all",
         minhash.num_bands, minhash.num_rows, minhash.num_words);
  }
  if (options.equality == Equality::kNone && !options.removes_near &&
      options.passage == Passage::kNone && options.against.empty()) {
    fail(ErrorCode::kUsage,
         "nothing to remove: --exact off, --near off, neither --passages nor "
         "--against");
  }
  if (options.num_shards && (*options.num_shards < 1 || *options.num_shards > kMaxShards)) {
    fail(ErrorCode::kUsage, "--shards {}: expected 1 to {}", *options.num_shards, kMaxShards);
  }
}

// Of all that the bytes of the outputs follow from.
std::string fingerprint(const DedupJob& job, const DedupOptions& options) {
  Json all = {job.options_key, reading_key(options.read, options.skip_invalid_lines)};
  for (const InputFile& file : job.found.files) {
    all.push_back({file.path.string(), file.named, file.num_bytes, file.changed_ns});
  }
  const std::string text = json_text(all);
  return xxh3_128_hex(std::as_bytes(std::span(text)));
}

}  // namespace

DedupJob begin_job(const std::vector<fs::path>& inputs, const Place& out,
                   const DedupOptions& options) {
  check_options(inputs, options);
  DedupJob job;
  const bool is_folder = options.num_shards.has_value();
  const Place named =
      is_folder && !out.path().has_filename() ? Place(out.path().parent_path()) : out;
  job.out = output_of(named, options.work).made;
  job.found = find_inputs(inputs, {named.path(), job.out, work_folder_of(job.out)});
  check_separator(options.read, job.found.files);
  check_shards_of_inputs(job.found.files);
  if (is_folder) check_shard_set(named, *options.num_shards);
  job.evaluation.emplace(options.contamination_words, options.memory_bytes / 8);
  ReadOptions of_sets = options.read;
  of_sets.format.reset();  // it is of the inputs
  if (!options.against_column.empty()) of_sets.text_column = options.against_column;
  std::vector<InputFile> of_all_sets;
  for (const fs::path& set : options.against) {
    const auto files = job.evaluation->add_set(set, of_sets, options.skip_invalid_lines);
    of_all_sets.insert(of_all_sets.end(), files.begin(), files.end());
  }
  job.options_key = {"dedup", signature_key(options, *job.evaluation),
                     options.max_documents_of_passage, options.num_shards.value_or(0)};
  job.made_from = fingerprint(job, options);
  for (int64_t i = 0; i < options.num_shards.value_or(1); ++i) {
    const Place place = is_folder ? shard_path(named.path(), i, *options.num_shards) : out;
    job.outputs.push_back(output_of(place, options.work));
    job.parts.push_back({job.outputs.back().made, job.made_from});
  }
  const auto is_made = [&](const Output& output) {
    return !options.overwrite && is_made_from(output.named, job.made_from);
  };
  job.is_finished = std::all_of(job.outputs.begin(), job.outputs.end(), is_made);
  std::vector<Place> named_outputs;
  for (const Output& output : job.outputs) named_outputs.push_back(output.named);
  check_not_outputs(job.found.files, named_outputs);
  check_not_outputs(of_all_sets, named_outputs);
  for (const Output& output : job.outputs) {
    if (!is_made(output)) check_output("--out", output, options.overwrite);
  }
  return job;
}

PiecesOptions pieces_options(const DedupJob& job, const DedupOptions& options) {
  PiecesOptions pieces;
  pieces.work_folder = work_folder_of(job.out);
  pieces.num_threads = options.num_threads;
  pieces.read = options.read;
  pieces.skip_invalid_lines = options.skip_invalid_lines && options.max_invalid_lines > 0;
  pieces.worker = "dedup";
  return pieces;
}

void PassProgress::begin(const char* pass, int64_t num_documents) {
  set({pass, 0, 0, 0, num_documents});
}

void PassProgress::set(const DedupProgress& progress) {
  const Lock lock(mutex_);
  progress_ = progress;
  told_documents_ = progress.num_documents;
  if (on_progress_) on_progress_(progress_);
}

void PassProgress::note(size_t num_documents, size_t num_bytes) {
  constexpr int64_t kTellEvery = 20'000;
  const Lock lock(mutex_);
  progress_.num_documents += static_cast<int64_t>(num_documents);
  progress_.num_bytes += static_cast<int64_t>(num_bytes);
  progress_.done = progress_.num_documents;
  if (!on_progress_ || progress_.num_documents - told_documents_ < kTellEvery) return;
  told_documents_ = progress_.num_documents;
  on_progress_(progress_);
}

SigningCounts read_and_sign(Pieces& pieces, const DedupJob& job, const DedupOptions& options,
                            PassProgress& progress) {
  pieces.make(copy_documents().make_worker, [&](const PiecesProgress& read) {
    progress.set({"reading", read.num_documents, read.num_bytes, read.num_input_bytes_done,
                  read.num_input_bytes});
    check_invalid_lines(read, options.max_invalid_lines);
  });
  const PieceReport total = pieces.total();
  check_invalid_lines(total, options.max_invalid_lines);
  check_cluster_memory(total.num_documents, options.memory_bytes);
  progress.begin("signing", total.num_documents);
  return sign_pieces(pieces, options, *job.evaluation, num_threads_or_cores(options.num_threads),
                     [&](size_t documents, size_t bytes) { progress.note(documents, bytes); });
}

}  // namespace skein
