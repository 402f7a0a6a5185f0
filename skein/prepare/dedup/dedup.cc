#include "skein/prepare/dedup/dedup.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "skein/base/units.h"
#include "skein/data/corpus_sources.h"
#include "skein/prepare/dedup/signatures.h"
#include "skein/prepare/ingest.h"
#include "skein/prepare/outputs.h"

namespace skein {
namespace {

constexpr int64_t kMinMemoryBytes = int64_t{256} << 20;
constexpr size_t kExcerptBytes = 400;

void check_options(const std::vector<fs::path>& inputs, const fs::path& out,
                   const DedupOptions& options) {
  if (inputs.empty()) fail(ErrorCode::kUsage, "nothing to read: expected files or folders");
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
  check_output("--out", out, options.overwrite);
}

FoundInputs find_files(const std::vector<fs::path>& inputs, const fs::path& out) {
  FoundInputs found = find_inputs(inputs, {out, work_folder_of(out)});
  check_not_outputs(found.files, {out});
  return found;
}

PiecesOptions pieces_options(const fs::path& out, const DedupOptions& options) {
  PiecesOptions pieces;
  pieces.work_folder = work_folder_of(out);
  pieces.num_threads = options.num_threads;
  pieces.read = options.read;
  pieces.skip_invalid_lines = options.skip_invalid_lines;
  pieces.worker = "dedup";
  return pieces;
}

int num_threads_of(const DedupOptions& options) {
  if (options.num_threads > 0) return options.num_threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// The passes of one deduplication, and what they leave to each other.
class Dedup {
 public:
  Dedup(const fs::path& out, const DedupOptions& options, Pieces& pieces,
        const std::function<void(const DedupProgress&)>& on_progress)
      : out_(out),
        options_(options),
        pieces_(pieces),
        on_progress_(on_progress),
        evaluation_(options.contamination_words, options.memory_bytes / 8),
        table_(out),
        equal_keys_(out, options.memory_bytes / 4),
        band_keys_(out, options.memory_bytes / 4),
        passage_hashes_(out, options.memory_bytes / 4),
        cuts_(out, options.memory_bytes / 4) {}

  DedupReport run();

 private:
  void begin_pass(const char* pass);
  void tell();
  void note_read(size_t num_documents, size_t num_bytes);
  void read_evaluation_sets();
  void read_inputs();
  void sign();
  void take_signatures(const DocumentBatch& batch, const BatchSignatures& signatures);
  void remove();
  void write();
  void keep(const PieceDocument& document, int64_t file);
  std::string_view without_cuts(std::string_view text, const std::vector<uint64_t>& cuts);

  const fs::path& out_;
  const DedupOptions& options_;
  Pieces& pieces_;
  const std::function<void(const DedupProgress&)>& on_progress_;
  EvaluationSets evaluation_;
  DocumentTable table_;
  Partitions equal_keys_, band_keys_, passage_hashes_, cuts_;
  Removals removals_;
  std::vector<DuplicateCluster> largest_;
  DedupReport report_;
  int64_t num_read_documents_ = 0, num_read_bytes_ = 0;  // of the pass over the inputs
  int64_t told_bytes_ = 0;
  const char* pass_name_ = "";

  // While the output is written.
  std::optional<CorpusWriter> writer_;
  std::optional<CorpusSourcesWriter> sources_;
  std::optional<CutReader> cut_reader_;
  PassageHasher passages_{options_.passage};
  std::string cut_text_;
};

void Dedup::begin_pass(const char* pass) {
  pass_name_ = pass;
  num_read_documents_ = num_read_bytes_ = told_bytes_ = 0;
  tell();
}

void Dedup::tell() {
  if (on_progress_) on_progress_({pass_name_, num_read_documents_, num_read_bytes_});
}

void Dedup::note_read(size_t num_documents, size_t num_bytes) {
  constexpr int64_t kProgressBytes = int64_t{16} << 20;
  num_read_documents_ += static_cast<int64_t>(num_documents);
  num_read_bytes_ += static_cast<int64_t>(num_bytes);
  if (num_read_bytes_ - told_bytes_ < kProgressBytes) return;
  told_bytes_ = num_read_bytes_;
  tell();
}

DedupReport Dedup::run() {
  read_evaluation_sets();
  read_inputs();
  sign();
  remove();
  write();
  if (options_.removes_near) {
    for (const double similarity : {0.5, 0.6, 0.7, 0.8, 0.9, 0.95}) {
      report_.recall.push_back({similarity, meeting_probability(options_.minhash, similarity)});
    }
  }
  return std::move(report_);
}

void Dedup::read_evaluation_sets() {
  for (const fs::path& file : options_.against) evaluation_.add_file(file, options_.read);
  report_.sets = evaluation_.sets();
  report_.contaminated_by_set.resize(report_.sets.size());
}

void Dedup::read_inputs() {
  pass_name_ = "reading";
  pieces_.make(copy_documents().make_worker, [&](const PiecesProgress& progress) {
    if (on_progress_) {
      on_progress_({pass_name_, progress.num_documents, progress.num_bytes});
    }
  });
  report_.inputs = pieces_.total();
  if (report_.inputs.num_documents == 0) {
    pieces_.remove();  // there is nothing to go on with
    fail(ErrorCode::kInvalid,
         "no text in the inputs: {} files read, {} passed over, all {} "
         "documents empty{}",
         report_.inputs.num_files, report_.inputs.num_skipped_files,
         report_.inputs.num_documents_read,
         report_.inputs.warnings.empty() ? "" : "; " + report_.inputs.warnings.front());
  }
  check_cluster_memory(report_.inputs.num_documents, options_.memory_bytes);
}

void Dedup::sign() {
  begin_pass("signing");
  run_document_pass<BatchSignatures>(
      pieces_, num_threads_of(options_),
      [&]() -> BatchWorker<BatchSignatures> {
        const auto signer = std::make_shared<DocumentSigner>(options_, evaluation_);
        return [signer](const DocumentBatch& batch) { return signer->sign(batch); };
      },
      [&](const DocumentBatch& batch, BatchSignatures& signatures) {
        take_signatures(batch, signatures);
      });
  table_.finish();
}

void Dedup::take_signatures(const DocumentBatch& batch, const BatchSignatures& signatures) {
  for (size_t i = 0; i < batch.size(); ++i) {
    const uint64_t document = batch.first_document + i;
    const DocumentEntry& entry = signatures.entries[i];
    table_.append(entry);
    if (signatures.sets[i] == 0) {
      if (options_.equality != Equality::kNone) equal_keys_.add({entry.equal.high, document});
      continue;
    }
    removals_.resize(document + 1);
    removals_.add(document);
    ++report_.contaminated.num_documents;
    report_.contaminated.num_bytes += static_cast<int64_t>(entry.num_bytes);
    for (size_t set = 0; set < report_.sets.size(); ++set) {
      report_.contaminated_by_set[set] += signatures.sets[i] >> set & 1;
    }
  }
  for (const KeyValue& pair : signatures.band_keys) band_keys_.add(pair);
  for (const KeyValue& pair : signatures.passage_hashes) passage_hashes_.add(pair);
  note_read(batch.size(), batch.text.size());
}

void Dedup::remove() {
  removals_.resize(static_cast<uint64_t>(table_.size()));
  begin_pass("equal documents");
  report_.equal = remove_equal(equal_keys_, table_, removals_);
  if (options_.removes_near) {
    begin_pass("near duplicates");
    NearDuplicates near = remove_near(band_keys_, table_, removals_);
    report_.near = near.removed;
    report_.num_clusters = near.num_clusters;
    largest_ = std::move(near.largest);
    for (const DuplicateCluster& cluster : largest_)
      report_.largest.push_back({cluster.num_documents, ""});
  }
  if (options_.passage == Passage::kNone) return;
  begin_pass("repeated passages");
  report_.num_repeated_passages =
      find_repeated(passage_hashes_, table_, removals_, options_.max_documents_of_passage, cuts_)
          .num_passages;
  cut_reader_.emplace(cuts_, table_.size());
}

void Dedup::write() {
  begin_pass("writing");
  writer_.emplace(out_);
  sources_.emplace(out_);
  for (int64_t piece = 0; piece < pieces_.num_pieces(); ++piece) {
    const int64_t file = writer_->add_file(pieces_.text_file(piece));
    pieces_.read(piece, [&](const PieceDocument& document) {
      if (!removals_.contains(static_cast<uint64_t>(num_read_documents_))) keep(document, file);
      note_read(1, document.text.size());
    });
  }
  if (report_.kept.num_documents == 0) {
    fail(ErrorCode::kInvalid, "nothing is left of {} documents", table_.size());
  }
  sources_->commit();  // first: whoever finds the corpus finds its sources
  writer_->commit();
}

void Dedup::keep(const PieceDocument& document, int64_t file) {
  const auto number = static_cast<uint64_t>(num_read_documents_);
  for (size_t i = 0; i < largest_.size(); ++i) {
    if (largest_[i].survivor == number) {
      report_.largest[i].excerpt = std::string(document.text.substr(0, kExcerptBytes));
    }
  }
  auto num_bytes = static_cast<int64_t>(document.text.size());
  std::vector<uint64_t> cuts;
  if (cut_reader_) cuts = cut_reader_->of_document(number);
  if (cuts.empty()) {
    writer_->append(FileRange{file, document.begin, num_bytes});
  } else {
    const std::string_view text = without_cuts(document.text, cuts);
    if (text.empty()) {
      ++report_.emptied.num_documents;
      return;
    }
    writer_->append(text);
    num_bytes = static_cast<int64_t>(text.size());
  }
  sources_->append({document.origin.source, document.origin.record});
  ++report_.kept.num_documents;
  report_.kept.num_bytes += num_bytes;
}

std::string_view Dedup::without_cuts(std::string_view text, const std::vector<uint64_t>& cuts) {
  cut_text_.clear();
  bool has_words = false;
  passages_.for_each(text, [&](uint64_t hash, std::string_view passage) {
    if (hash != 0 && std::binary_search(cuts.begin(), cuts.end(), hash)) {
      ++report_.num_cut_passages;
      return;
    }
    has_words = has_words || hash != 0;
    cut_text_ += passage;
  });
  if (!has_words) cut_text_.clear();  // blank lines and punctuation are no document
  report_.num_cut_bytes += static_cast<int64_t>(text.size() - cut_text_.size());
  return cut_text_;
}

}  // namespace

DedupReport dedup(const std::vector<fs::path>& inputs, const fs::path& out,
                  const DedupOptions& options,
                  const std::function<void(const DedupProgress&)>& on_progress) {
  check_options(inputs, out, options);
  FoundInputs found = find_files(inputs, out);
  if (out.has_parent_path()) make_folders(out.parent_path());
  Pieces pieces(std::move(found.files), pieces_options(out, options));
  std::vector<std::string> restart = pieces.notes();
  try {
    DedupReport report = Dedup(out, options, pieces, on_progress).run();
    pieces.remove();
    report.passed_over = std::move(found.passed_over);
    report.notes = std::move(found.notes);
    report.restart = std::move(restart);
    return report;
  } catch (const Error& error) {
    throw Error(error.code(), error.what() + pieces.kept());
  }
}

}  // namespace skein
