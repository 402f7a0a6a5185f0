// One piece of work of Pieces: reads its inputs, and has a worker hand their documents on.
#pragma once

#include <atomic>
#include <span>

#include "skein/prepare/pieces.h"

namespace skein {

// What the threads of a Pieces::make() have done so far, and whether they should go on.
struct SharedProgress {
  std::atomic<int64_t> num_files_done = 0;
  std::atomic<int64_t> num_input_bytes_done = 0;
  std::atomic<int64_t> num_documents = 0;
  std::atomic<int64_t> num_bytes = 0;
  std::atomic<int64_t> num_invalid_lines = 0;
};

struct PieceTask {
  std::span<const InputFile> inputs;
  size_t first_input = 0;  // index of the first of them among all inputs
  std::string key;
  fs::path stem;
  size_t piece = 0;               // index among all pieces
  JoinedTexts* joined = nullptr;  // if texts are joined
};

// `go_on` is asked before each document; false: the piece is given up, and nothing is returned.
std::optional<PieceReport> make_piece(const PieceTask& task, const PiecesOptions& options,
                                      PieceWorker& worker, SharedProgress& progress,
                                      const std::function<bool()>& go_on);

// The first few warnings of `more` are added to those of `report`.
void add_warning(PieceReport& report, const std::string& warning);

// Adds to what was found of files.
void add_found(PieceReport& report, const std::string& what, int64_t num_files,
               const std::string& first);

}  // namespace skein
