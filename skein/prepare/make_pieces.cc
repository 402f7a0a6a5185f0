// The threads of Pieces::make().
#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

#include "skein/base/machine/cores.h"
#include "skein/base/threads/mutex.h"
#include "skein/base/threads/quiet_thread.h"
#include "skein/prepare/make_piece.h"

namespace skein {
namespace {

constexpr auto kTellEvery = std::chrono::milliseconds(200);

}  // namespace

int num_threads_or_cores(int wanted) { return wanted > 0 ? wanted : num_cores(); }

// Pieces are begun in their order. When one fails, those before it are finished, since one of them
// may fail too, and those behind it are given up: so the error is that of the first one.
class Pieces::Making {
 public:
  Making(Pieces& pieces, const WorkerFactory& new_worker)
      : all_(pieces), new_worker_(new_worker), failed_(pieces.pieces_.size()) {
    for (size_t i = 0; i < all_.pieces_.size(); ++i) {
      const PieceState& piece = all_.pieces_[i];
      if (!all_.is_mine(static_cast<int64_t>(i))) continue;
      num_files_ += static_cast<int64_t>(piece.num_inputs);
      num_input_bytes_ += piece.num_input_bytes;
      if (!piece.is_done) {
        waiting_.push_back(i);
        continue;
      }
      shared_.num_files_done += static_cast<int64_t>(piece.num_inputs);
      shared_.num_input_bytes_done += piece.num_input_bytes;
      shared_.num_documents += piece.report.num_documents_read;
      shared_.num_bytes += piece.report.num_bytes_read;
      shared_.num_invalid_lines += piece.report.num_invalid_lines;
    }
  }

  void run(const std::function<void(const PiecesProgress&)>& on_progress)
      SKEIN_NO_OTHER_THREAD {  // before the threads begin and after they have ended
    const auto wanted = static_cast<size_t>(num_threads_or_cores(all_.options_.num_threads));
    const size_t num_threads = std::min(wanted, waiting_.size());
    num_running_ = num_threads;
    std::vector<std::thread> threads;
    while (threads.size() < num_threads) threads.push_back(quiet_thread([this] { work(); }));
    while (!wait_a_moment()) {
      try {
        if (on_progress && failed_ > 0) on_progress(progress());
      } catch (...) {
        note_failure(0, std::current_exception());
      }
    }
    for (std::thread& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
    if (on_progress) on_progress(progress());
  }

 private:
  void work() {
    try {
      const std::unique_ptr<PieceWorker> worker = new_worker_();
      for (size_t next = 0; take(next);) make(next, *worker);
    } catch (...) {
      note_failure(0, std::current_exception());  // no worker, no piece
    }
    const Lock lock(mutex_);
    --num_running_;
    ended_.notify_all();
  }

  // The next piece to make; false if there is none.
  bool take(size_t& next) {
    Lock lock(mutex_);
    while (num_taken_ < waiting_.size() && waiting_[num_taken_] <= failed_) {
      next = waiting_[num_taken_];
      if (!all_.options_.joins_texts || all_.joined_.may_begin(next)) return ++num_taken_, true;
      ended_.wait_for(lock, kTellEvery);
    }
    return false;
  }

  void make(size_t index, PieceWorker& worker) {
    PieceState& piece = all_.pieces_[index];
    const PieceTask task{std::span(all_.inputs_).subspan(piece.first_input, piece.num_inputs),
                         piece.first_input,
                         piece.key,
                         piece.stem,
                         index,
                         all_.options_.joins_texts ? &all_.joined_ : nullptr};
    try {
      std::optional<PieceReport> report =
          make_piece(task, all_.options_, worker, shared_, [&] { return index < failed_; });
      if (!report) return;
      piece.report = std::move(*report);
      piece.is_done = true;
    } catch (...) {
      return note_failure(index, std::current_exception());
    }
    if (all_.options_.joins_texts) join(index);
  }

  // `index` is finished. With it may come those behind it that are.
  void join(size_t index) {
    try {
      all_.join(index);
    } catch (...) {
      note_failure(index, std::current_exception());
    }
  }

  void note_failure(size_t index, std::exception_ptr error) {
    const Lock lock(mutex_);
    if (index >= failed_) return;
    failed_ = index;
    error_ = std::move(error);
  }

  // True once all threads have ended.
  bool wait_a_moment() {
    Lock lock(mutex_);
    return ended_.wait_for(lock, kTellEvery,
                           [this]() SKEIN_REQUIRES(mutex_) { return num_running_ == 0; });
  }

  PiecesProgress progress() const {
    PiecesProgress progress;
    progress.num_input_bytes = num_input_bytes_;
    progress.num_files = num_files_;
    progress.num_files_done = shared_.num_files_done;
    progress.num_input_bytes_done = shared_.num_input_bytes_done;
    progress.num_documents = shared_.num_documents;
    progress.num_bytes = shared_.num_bytes;
    progress.num_invalid_lines = shared_.num_invalid_lines;
    return progress;
  }

  Pieces& all_;
  const WorkerFactory& new_worker_;
  SharedProgress shared_;
  int64_t num_files_ = 0, num_input_bytes_ = 0;  // of the pieces of this process
  std::vector<size_t> waiting_;                  // the pieces to make
  std::atomic<size_t> failed_;  // the first piece that failed; none: the number of pieces
  Mutex mutex_;
  ConditionVariable ended_;
  size_t num_taken_ SKEIN_GUARDED_BY(mutex_) = 0;  // of waiting_
  size_t num_running_ SKEIN_GUARDED_BY(mutex_) = 0;
  std::exception_ptr error_ SKEIN_GUARDED_BY(mutex_);
};

void Pieces::make(const WorkerFactory& new_worker,
                  const std::function<void(const PiecesProgress&)>& on_progress) {
  if (options_.joins_texts) join_finished();
  try {
    Making(*this, new_worker).run(on_progress);
  } catch (...) {
    joined_.close();
    remove_unused_texts();
    throw;
  }
  joined_.close();
}

}  // namespace skein
