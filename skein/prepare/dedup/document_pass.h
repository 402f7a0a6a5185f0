// A pass over the documents of finished pieces: read in order by one thread, worked on by several,
// and handed on in order by the calling thread.
//
// Order    of the pieces that are given, and of the documents in each
// Errors   the first one, of whatever thread
// Memory   4 batches a thread of 1 MiB of text, or of one larger document
// Threads  a worker is called from one thread, `take` from the calling one
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "skein/prepare/pieces.h"

namespace skein {

// Consecutive documents of a piece; of a piece without documents there is an empty one.
struct DocumentBatch {
  int64_t piece = 0;
  bool is_last = false;      // of its piece
  std::string text;          // of all, one after another
  std::vector<size_t> ends;  // of the documents in it

  size_t size() const { return ends.size(); }
  std::string_view document(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends[i - 1];
    return std::string_view(text).substr(begin, ends[i] - begin);
  }
};

// What a thread does: it has one of these, made on it by `make_worker`, for all its batches.
template <typename Result>
using BatchWorker = std::function<Result(const DocumentBatch&)>;

// The same for any result, which a worker leaves in the pointer.
void run_document_pass(const Pieces& pieces, const std::vector<int64_t>& which, int num_threads,
                       const std::function<BatchWorker<std::shared_ptr<void>>()>& make_worker,
                       const std::function<void(const DocumentBatch&, void*)>& take);

template <typename Result>
void run_document_pass(const Pieces& pieces, const std::vector<int64_t>& which, int num_threads,
                       const std::function<BatchWorker<Result>()>& make_worker,
                       const std::function<void(const DocumentBatch&, Result&)>& take) {
  run_document_pass(
      pieces, which, num_threads,
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
