// What a deduplication, and a machine that signs a share of it, find out before they begin.
//
// Errors   as dedup.h has
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "skein/base/threads/mutex.h"
#include "skein/prepare/dedup/corpora_writing.h"
#include "skein/prepare/dedup/dedup.h"
#include "skein/prepare/dedup/signatures.h"
#include "skein/prepare/outputs.h"

namespace skein {

struct DedupJob {
  fs::path out;  // where it is made: a corpus, or the folder of several
  FoundInputs found;
  std::optional<EvaluationSets> evaluation;  // until all is signed
  Json options_key;                          // what the text follows from besides the inputs
  std::string made_from;                     // CorpusSources
  std::vector<Output> outputs;
  std::vector<CorpusPart> parts;  // the outputs, where they are made
  bool is_finished = false;       // all parts are there, made of this
};

DedupJob begin_job(const std::vector<fs::path>& inputs, const Place& out,
                   const DedupOptions& options);

// Of the job's files, which it takes.
PiecesOptions pieces_options(const DedupJob& job, const DedupOptions& options);

// Tells how far a pass is, from any thread.
class PassProgress {
 public:
  explicit PassProgress(const OnDedupProgress& on_progress) : on_progress_(on_progress) {}
  void begin(const char* pass, int64_t num_documents = 0);  // that it will see, if known
  void note(size_t num_documents, size_t num_bytes = 0);
  void set(const DedupProgress& progress);

 private:
  const OnDedupProgress& on_progress_;
  Mutex mutex_;
  DedupProgress progress_ SKEIN_GUARDED_BY(mutex_);
  int64_t told_documents_ SKEIN_GUARDED_BY(mutex_) = 0;
};

// Reads the inputs of this process's share that are not read yet, and signs them.
SigningCounts read_and_sign(Pieces& pieces, const DedupJob& job, const DedupOptions& options,
                            PassProgress& progress);

}  // namespace skein
