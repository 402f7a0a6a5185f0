// Reads inputs in pieces, several at a time, and keeps what is finished: what `ingest` and the
// other passes over text are built upon.
//
//   Pieces pieces(find_inputs(...).files, options);      // takes finished pieces as they are
//   pieces.make([] { return std::make_unique<MyWorker>(); });
//   for (int64_t i = 0; i < pieces.num_pieces(); ++i) {   // all documents, in the order of inputs
//     pieces.read(i, [](const PieceDocument& document) { … });
//   }
//
// A piece is a large file, or small ones that follow each other, so that a hundred thousand texts
// are not as many pieces. Each thread has a worker, which sees the documents of one piece after
// another in order, and hands on none, one or several texts for each. What a worker does must
// follow from the piece alone: which thread makes which piece is chance.
//
// Restart  a piece is finished when its report is written (piece.h). Its name and its key
//          follow from path, size and time of its inputs and all options that matter: another
//          process takes what is finished, removes pieces of other options and inputs, and says
//          both in `notes`.
//          Pieces stay until remove(), which belongs behind the commit of what was made of them.
// Shares   with `share`, this process makes and checks some of the pieces, and others may do theirs
//          in the same folder at the same time, on other machines; nothing is removed from it then.
//          A process without a share, later, takes all of them.
// Errors   as in read/readers.h, and Error{kBusy} as in work_folder.h. The error of the first piece
//          that has one, in their order, however many threads there are; pieces that are finished
//          then are kept. Files in a folder that hold no documents are passed over.
// Memory   per thread a document and the buffers of read/readers.h
// Threads  one makes calls; workers are called by one thread each
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/prepare/piece.h"
#include "skein/prepare/read/inputs/inputs.h"
#include "skein/prepare/read/readers.h"
#include "skein/prepare/work_folder.h"

namespace skein {

struct InputDocument {
  std::string_view text;
  Origin origin;
  size_t input = 0;                       // index of the file in what Pieces was given
  std::span<const ByteRange> spans = {};  // the bytes of it that count, where it says so
};

class PieceWorker {
 public:
  virtual ~PieceWorker() = default;
  // Views are valid during the call.
  virtual void add(const InputDocument& document, PieceOutput& out) = 0;
  // What was counted since the piece began. Called at its end; counting begins anew.
  virtual Json take_counters() { return Json::object(); }
};

using WorkerFactory = std::function<std::unique_ptr<PieceWorker>()>;

struct PiecesOptions {
  fs::path work_folder;
  std::optional<WorkShare> share;  // none: all pieces, and the folder alone
  int num_threads = 0;             // 0: as many as this process may use cores
  ReadOptions read;                // what it calls is set here
  bool skip_invalid_lines = false;
  // The texts of all pieces lie in one file, one after another, as CorpusWriter::take_file() wants
  // them: they are written once.
  bool joins_texts = false;
  Json worker;  // all that the output depends on besides inputs and `read`, with the kind of worker
};

struct PiecesProgress {
  int64_t num_files = 0;  // in all
  int64_t num_files_done = 0;
  int64_t num_input_bytes = 0;  // of all files, as they lie on the disk
  int64_t num_input_bytes_done = 0;
  int64_t num_documents = 0;  // read
  int64_t num_bytes = 0;
  int64_t num_invalid_lines = 0;  // passed over
};

// How many threads `wanted` stands for; 0: as many as this process may use cores.
int num_threads_or_cores(int wanted);

class Pieces {
 public:
  Pieces(std::vector<InputFile> inputs, PiecesOptions options);

  // Makes the pieces that are not finished. `on_progress` is called by the calling thread some
  // times a second, and at the end; what it throws ends the making.
  void make(const WorkerFactory& new_worker,
            const std::function<void(const PiecesProgress&)>& on_progress = {});

  int64_t num_pieces() const { return static_cast<int64_t>(pieces_.size()); }
  // Whether it is of this process's share.
  bool is_mine(int64_t piece) const;
  // The beginning of the names of its files, for what else is kept of a piece: STEM.<ending>.
  const fs::path& stem(int64_t piece) const { return pieces_[static_cast<size_t>(piece)].stem; }
  const PieceReport& report(int64_t piece) const;
  fs::path text_file(int64_t piece) const;

  // The documents of a piece, in order; all pieces one after another are those of the inputs.
  void read(int64_t piece, const std::function<void(const PieceDocument&)>& visit) const;

  // The reports of all pieces of the share together, without sources and counters.
  PieceReport total() const;

  // What was taken from before, and what was not; a line each.
  const std::vector<std::string>& notes() const { return notes_; }

  // For the end of an error message: what is kept for another try. Empty if nothing is.
  std::string kept() const;

  // Removes all pieces and what else is kept of them, and the folder with them. Not with a share.
  void remove();

  // The same for a folder of which nothing is needed any more.
  static void remove_all(const fs::path& work_folder);

 private:
  struct PieceState {
    size_t first_input = 0, num_inputs = 0;
    int64_t num_input_bytes = 0;
    std::string key;
    fs::path stem;
    bool is_done = false;
    PieceReport report;
  };
  class Making;  // the threads of make()

  std::vector<PieceState> plan() const;
  int64_t num_mine() const;
  void find_finished();
  void remove_stale();
  void remove_unused_texts() const;
  void join_finished();
  void join(size_t piece);
  void join_left();

  std::vector<InputFile> inputs_;
  PiecesOptions options_;
  WorkFolder folder_;
  std::vector<PieceState> pieces_;
  JoinedTexts joined_;
  std::vector<std::string> notes_;
};

}  // namespace skein
