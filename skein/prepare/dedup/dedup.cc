#include "skein/prepare/dedup/dedup.h"

#include "skein/base/text/json_text.h"
#include "skein/prepare/dedup/cut_passages.h"
#include "skein/prepare/dedup/job.h"
#include "skein/prepare/dedup/signatures.h"

namespace skein {
namespace {

constexpr size_t kExcerptBytes = 400;

// What was taken from before; of nothing, nothing.
void note_signed_before(const SigningCounts& counts, std::vector<std::string>& notes) {
  if (notes.empty() && counts.num_signed_before == 0) return;
  const int64_t num_missing = counts.num_pieces - counts.num_signed_before;
  notes.push_back(fmt::format("{} of {} pieces were signed before with these options{}",
                              counts.num_signed_before, counts.num_pieces,
                              num_missing > 0 ? ": the others were read or signed now" : ""));
}

// The passes of one deduplication, and what they leave to each other.
class Dedup {
 public:
  Dedup(DedupJob& job, const DedupOptions& options, Pieces& pieces,
        const OnDedupProgress& on_progress)
      : job_(job),
        options_(options),
        pieces_(pieces),
        progress_(on_progress),
        num_threads_(num_threads_or_cores(options.num_threads)) {}

  DedupReport run();

 private:
  void read_and_sign_inputs();
  void remove(DocumentKeys& keys);
  void remove_passages(DocumentKeys& keys);
  void write(const DocumentKeys& keys);
  void take_excerpt(uint64_t document, std::string_view text);

  DedupJob& job_;
  const DedupOptions& options_;
  Pieces& pieces_;
  PassProgress progress_;
  int num_threads_;
  std::vector<DuplicateCluster> largest_;
  DedupReport report_;
};

DedupReport Dedup::run() {
  read_and_sign_inputs();
  DocumentKeys keys(job_.out, static_cast<uint64_t>(report_.inputs.num_documents),
                    options_.memory_bytes);
  progress_.begin("adding signatures", report_.inputs.num_documents);
  add_signatures(pieces_, options_.equality != Equality::kNone, num_threads_, keys,
                 [this](size_t num_documents) { progress_.note(num_documents); });
  report_.contaminated = keys.contaminated;
  report_.contaminated_by_set = keys.contaminated_by_set;
  report_.contaminated_by_set.resize(report_.sets.size());
  remove(keys);
  if (options_.passage != Passage::kNone) remove_passages(keys);
  write(keys);
  if (options_.removes_near) {
    for (const double similarity : {0.5, 0.6, 0.7, 0.8, 0.9, 0.95}) {
      report_.recall.push_back({similarity, meeting_probability(options_.minhash, similarity)});
    }
  }
  return std::move(report_);
}

void Dedup::read_and_sign_inputs() {
  report_.restart = pieces_.notes();
  note_signed_before(read_and_sign(pieces_, job_, options_, progress_), report_.restart);
  report_.sets = job_.evaluation->sets();
  job_.evaluation.reset();
  report_.inputs = pieces_.total();
  const PieceReport& read = report_.inputs;
  if (read.num_documents > 0) return;
  pieces_.remove();  // there is nothing to go on with
  fail(ErrorCode::kInvalid,
       "no text in the inputs: {} files read, {} passed over, all {} documents empty{}",
       read.num_files, read.num_skipped_files, read.num_documents_read,
       read.warnings.empty() ? "" : "; " + read.warnings.front());
}

void Dedup::remove(DocumentKeys& keys) {
  progress_.begin("equal documents");
  report_.equal = remove_equal(keys.equal, keys.table, keys.removals, num_threads_);
  if (!options_.removes_near) return;
  progress_.begin("near duplicates");
  NearDuplicates near = remove_near(keys.bands, keys.table, keys.removals, num_threads_);
  report_.near = near.removed;
  report_.num_clusters = near.num_clusters;
  largest_ = std::move(near.largest);
  for (const DuplicateCluster& cluster : largest_) {
    report_.largest.push_back({cluster.num_documents, ""});
  }
}

void Dedup::remove_passages(DocumentKeys& keys) {
  progress_.begin("repeated passages");
  Partitions cuts(job_.out, options_.memory_bytes / 12, options_.memory_bytes / 4);
  report_.num_repeated_passages =
      find_repeated(keys.passages, keys.table, keys.removals, options_.max_documents_of_passage,
                    num_threads_, cuts)
          .num_passages;
  progress_.begin("cutting", report_.inputs.num_documents);
  const CutCounts counts =
      cut_passages(pieces_, cuts, options_.passage, num_threads_, keys.removals,
                   [this](size_t num_documents) { progress_.note(num_documents); });
  report_.num_cut_passages = counts.num_passages;
  report_.num_cut_bytes = counts.num_bytes;
  report_.emptied = counts.emptied;
}

void Dedup::write(const DocumentKeys& keys) {
  progress_.begin("writing", report_.inputs.num_documents);
  const RemovalCounts left = divide_documents(keys.table, keys.removals, job_.parts);
  if (left.num_documents == 0) {
    fail(ErrorCode::kInvalid,
         "nothing is left of {} documents: {} share text with evaluation sets, {} were nothing but "
         "repeated passages: expected some that stay",
         report_.inputs.num_documents, report_.contaminated.num_documents,
         report_.emptied.num_documents);
  }
  if (options_.num_shards) {
    const std::string key = json_text(job_.options_key);
    for (CorpusPart& part : job_.parts) {
      part.shard_of =
          fmt::format("{} of {} documents, {} bytes", xxh3_128_hex(std::as_bytes(std::span(key))),
                      left.num_documents, left.num_bytes);
    }
  }
  report_.kept = write_corpora(
      pieces_, job_.parts, keys.removals, options_.passage != Passage::kNone, num_threads_,
      {[this](uint64_t document, std::string_view text) { take_excerpt(document, text); },
       [this](size_t documents, size_t bytes) { progress_.note(documents, bytes); }});
}

// Called by several threads, of different documents.
void Dedup::take_excerpt(uint64_t document, std::string_view text) {
  for (size_t i = 0; i < largest_.size(); ++i) {
    if (largest_[i].survivor != document) continue;
    report_.largest[i].excerpt = std::string(text.substr(0, kExcerptBytes));
  }
}

DedupReport make(DedupJob& job, const DedupOptions& options, const OnDedupProgress& on_progress) {
  Pieces pieces(std::move(job.found.files), pieces_options(job, options));
  try {
    DedupReport report = Dedup(job, options, pieces, on_progress).run();
    pieces.remove();
    report.passed_over = std::move(job.found.passed_over);
    report.notes = std::move(job.found.notes);
    return report;
  } catch (const Error& error) {
    throw Error(error.code(), error.what() + pieces.kept());
  }
}

}  // namespace

SigningReport sign_share(const std::vector<fs::path>& inputs, const Place& out,
                         const DedupOptions& options, const WorkShare& share,
                         const OnDedupProgress& on_progress) {
  if (share.count < 1 || share.index < 0 || share.index >= share.count) {
    fail(ErrorCode::kUsage, "--shard-index {}/{}: expected i/n with i from 0 to n - 1", share.index,
         share.count);
  }
  DedupJob job = begin_job(inputs, out, options);
  SigningReport report;
  report.was_finished = job.is_finished || wait_to_be_sent(job.outputs, job.made_from);
  if (report.was_finished) return report;
  PiecesOptions of_pieces = pieces_options(job, options);
  of_pieces.share = share;
  Pieces pieces(std::move(job.found.files), of_pieces);
  report.restart = pieces.notes();
  try {
    PassProgress progress(on_progress);
    const SigningCounts counts = read_and_sign(pieces, job, options, progress);
    note_signed_before(counts, report.restart);
    report.num_pieces = counts.num_pieces;
    report.num_signed_before = counts.num_signed_before;
    report.inputs = pieces.total();
  } catch (const Error& error) {
    throw Error(error.code(), error.what() + pieces.kept());
  }
  report.passed_over = std::move(job.found.passed_over);
  report.notes = std::move(job.found.notes);
  return report;
}

DedupReport dedup(const std::vector<fs::path>& inputs, const Place& out,
                  const DedupOptions& options, const OnDedupProgress& on_progress) {
  DedupJob job = begin_job(inputs, out, options);
  if (job.is_finished) {
    std::error_code ignored;
    if (fs::exists(work_folder_of(job.out), ignored)) Pieces::remove_all(work_folder_of(job.out));
    remove_sent(job.outputs);
    DedupReport report;
    report.was_finished = true;
    return report;
  }
  if (wait_to_be_sent(job.outputs, job.made_from)) {
    send(job.outputs, options.on_sent);
    DedupReport report;
    report.was_made = true;
    return report;
  }
  DedupReport report = make(job, options, on_progress);
  send(job.outputs, options.on_sent);
  return report;
}

}  // namespace skein
