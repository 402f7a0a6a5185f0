// A pass over all documents of the inputs: read in order by one thread, worked on by several, and
// handed on in order by the calling thread.
//
// Order    of the inputs as inputs.h lists them, and of the documents in them; a document's number
//          is its place. Empty documents are left out and have none.
// Errors   the first one, of whatever thread; in a folder, files that hold no documents are passed
//          over as `skein data ingest` does
// Memory   4 batches a thread of 1 MiB of text, or of one larger document
// Threads  `work` is called from several threads at once, `take` from the calling one alone
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "skein/prepare/read/inputs.h"
#include "skein/prepare/read/readers.h"

namespace skein {

// Consecutive documents.
struct DocumentBatch {
  uint64_t first_document = 0;
  std::string text;          // of all, one after another
  std::vector<size_t> ends;  // of the documents in it

  size_t size() const { return ends.size(); }
  std::string_view document(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends[i - 1];
    return std::string_view(text).substr(begin, ends[i] - begin);
  }
};

struct DocumentPassCounts {
  int64_t num_files = 0;  // that were read
  int64_t num_documents = 0;
  int64_t num_bytes = 0;
  int64_t num_empty_documents = 0;
  int64_t num_skipped_files = 0;
  int64_t num_invalid_lines = 0;
  std::vector<std::string> warnings;  // the first few of what was skipped, one line each
};

struct DocumentPass {
  const std::vector<InputFile>& files;
  ReadOptions read;
  bool skip_invalid_lines = false;
  int num_threads = 1;
};

// What a thread does: it has one of these, made on it by `make_worker`, for all its batches.
template <typename Result>
using BatchWorker = std::function<Result(const DocumentBatch&)>;

// The same for any result, which a worker leaves in the pointer.
DocumentPassCounts run_document_pass(
    const DocumentPass& pass,
    const std::function<BatchWorker<std::shared_ptr<void>>()>& make_worker,
    const std::function<void(const DocumentBatch&, void*)>& take);

template <typename Result>
DocumentPassCounts run_document_pass(
    const DocumentPass& pass, const std::function<BatchWorker<Result>()>& make_worker,
    const std::function<void(const DocumentBatch&, Result&)>& take) {
  return run_document_pass(
      pass,
      [&]() -> BatchWorker<std::shared_ptr<void>> {
        return [worker = make_worker()](const DocumentBatch& batch) -> std::shared_ptr<void> {
          return std::make_shared<Result>(worker(batch));
        };
      },
      [&](const DocumentBatch& batch, void* result) {
        take(batch, *static_cast<Result*>(result));
      });
}

}  // namespace skein
