// Removes duplicates from a collection of documents: `skein data dedup`.
//
// Stages   in this order, each on what the ones before left:
//            contaminated   share a 13-gram with an evaluation set        evaluation_sets.h
//            equal          have the same text, or the same words         clusters.h
//            near           meet in a band of their MinHash signatures    minhash.h, clusters.h
//            passages       lines or paragraphs that many share are cut   repeated_passages.h
// Output   docs/corpus_format.md: the documents that stay, in the order of the inputs; one corpus,
//          or with `num_shards` as many as the one in parts (corpora_writing.h). Which texts stay
//          depends on the documents alone, not on their order, their files, threads or machines.
// Machines sign_share() reads and signs a part of the inputs, in a work folder that machines share;
//          dedup(), later, takes all that is there, and makes what is not
// Memory   `memory_bytes`, whatever the size of the inputs; where that cannot cluster so many
//          documents (66 million a GiB) Error{kUsage} says how much can
// Disk     in `<out>.work` the text (pieces.h) and for each document 56 bytes and 8 a band and a
//          passage (signature_file.h); in files without names 56 bytes and 16 a band and a passage
// Restart  the inputs that were read, and the pieces that were signed, are taken from `<out>.work`;
//          outputs that are there, made of the same inputs and options, are not made again
// Cost     a pass over the inputs and two over their text; docs/deduplication.md has figures
// Errors   as pieces.h has; Error{kUsage} for impossible options; Error{kInvalid} if nothing is
//          left. The output is then unchanged.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/prepare/dedup/clusters/clusters.h"
#include "skein/prepare/dedup/document_pass.h"
#include "skein/prepare/dedup/hashing/evaluation_sets.h"
#include "skein/prepare/dedup/hashing/minhash.h"
#include "skein/prepare/dedup/repeated_passages.h"
#include "skein/prepare/invalid_lines.h"
#include "skein/prepare/outputs.h"

namespace skein {

enum class Equality { kNone, kText, kWords };

struct DedupOptions {
  Equality equality = Equality::kText;
  bool removes_near = true;
  MinHashOptions minhash;
  Passage passage = Passage::kNone;
  int64_t max_documents_of_passage = 1;
  std::vector<fs::path> against;  // evaluation sets, a file or a folder each
  std::string against_column;     // that holds their examples; empty: that of the documents
  int contamination_words = 13;

  int64_t memory_bytes = int64_t{1} << 30;
  int num_threads = 0;  // 0: as many as this process may use cores
  ReadOptions read;
  bool skip_invalid_lines = false;
  double max_invalid_lines = kMaxInvalidLines;  // invalid_lines.h
  std::optional<int64_t> num_shards;            // then the output is a folder
  bool overwrite = false;
  fs::path work;  // where outputs in buckets are made; empty: in TMPDIR
  OnSent on_sent;
};

struct DedupProgress {
  const char* pass = "";
  int64_t num_documents = 0;  // of this pass
  int64_t num_bytes = 0;
  int64_t done = 0, of = 0;  // of its work, in bytes of inputs or documents; of 0: not known
};

struct DedupReport {
  // Before, of the same inputs with the same options: all else is empty.
  bool was_finished = false;
  bool was_made = false;  // the same, but it had not been sent to its bucket: now it has
  PieceReport inputs;     // without sources and counters
  std::vector<std::string> passed_over, notes;  // as in inputs.h
  std::vector<std::string> restart;             // as Pieces::notes()
  RemovalCounts contaminated, equal, near;
  std::vector<EvaluationSet> sets;
  std::vector<int64_t> contaminated_by_set;  // a document may count for several
  int64_t num_clusters = 0;
  struct LargeCluster {
    int64_t num_documents = 0;
    std::string excerpt;  // of the document that stayed
  };
  std::vector<LargeCluster> largest;
  int64_t num_repeated_passages = 0;  // different ones
  int64_t num_cut_passages = 0;
  int64_t num_cut_bytes = 0;
  RemovalCounts emptied;  // documents of which nothing was left; their bytes are cut bytes
  RemovalCounts kept;
  struct Recall {
    double similarity, probability;
  };
  std::vector<Recall> recall;  // that two documents of this Jaccard similarity meet
};

// What sign_share() did; of its share alone.
struct SigningReport {
  bool was_finished = false;  // the output is there: nothing was left to do
  PieceReport inputs;
  int64_t num_pieces = 0;
  int64_t num_signed_before = 0;
  std::vector<std::string> passed_over, notes, restart;  // as DedupReport
};

using OnDedupProgress = std::function<void(const DedupProgress&)>;  // one call at a time

SigningReport sign_share(const std::vector<fs::path>& inputs, const Place& out,
                         const DedupOptions& options, const WorkShare& share,
                         const OnDedupProgress& on_progress = {});

DedupReport dedup(const std::vector<fs::path>& inputs, const Place& out,
                  const DedupOptions& options, const OnDedupProgress& on_progress = {});

OrderedJson to_json(const DedupReport& report);
std::string to_text(const DedupReport& report);

}  // namespace skein
