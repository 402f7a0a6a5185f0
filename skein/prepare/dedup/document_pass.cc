#include "skein/prepare/dedup/document_pass.h"

#include <deque>
#include <exception>
#include <utility>

#include "skein/base/threads/mutex.h"
#include "skein/base/threads/quiet_thread.h"

namespace skein {
namespace {

constexpr size_t kBatchBytes = size_t{1} << 20;
constexpr size_t kBatchDocuments = 4096;  // of few bytes each
constexpr size_t kBatchesOfThread = 4;

// Batches between the thread that reads, those that work and the one that takes, in order.
class BatchQueue {
 public:
  explicit BatchQueue(size_t capacity) : capacity_(capacity) {}

  struct QueuedBatch {
    DocumentBatch batch;
    std::shared_ptr<void> result;
    bool is_done = false;
  };

  // Waits for room. False: an error ended the pass.
  bool push(DocumentBatch batch) {
    Lock lock(mutex_);
    changed_.wait(
        lock, [this]() SKEIN_REQUIRES(mutex_) { return error_ || entries_.size() < capacity_; });
    if (error_) return false;
    entries_.push_back(
        std::make_shared<QueuedBatch>(QueuedBatch{std::move(batch), nullptr, false}));
    changed_.notify_all();
    return true;
  }
  void end() {
    Lock lock(mutex_);
    is_ended_ = true;
    changed_.notify_all();
  }
  void fail_with(std::exception_ptr error) {
    Lock lock(mutex_);
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
  }

  // The next batch to work on; null at the end.
  std::shared_ptr<QueuedBatch> begin_work() {
    Lock lock(mutex_);
    changed_.wait(lock, [this]() SKEIN_REQUIRES(mutex_) {
      return error_ || num_begun_ < entries_.size() || is_ended_;
    });
    if (error_ || num_begun_ == entries_.size()) return nullptr;
    return entries_[num_begun_++];
  }
  void finish_work(QueuedBatch& entry) {
    Lock lock(mutex_);
    entry.is_done = true;
    changed_.notify_all();
  }

  // The next batch in order, worked on; null at the end. Throws what a thread threw.
  std::shared_ptr<QueuedBatch> take() {
    Lock lock(mutex_);
    changed_.wait(lock, [this]() SKEIN_REQUIRES(mutex_) {
      return error_ || (entries_.empty() ? is_ended_ : entries_.front()->is_done);
    });
    if (error_) std::rethrow_exception(error_);
    if (entries_.empty()) return nullptr;
    std::shared_ptr<QueuedBatch> entry = std::move(entries_.front());
    entries_.pop_front();
    --num_begun_;
    changed_.notify_all();
    return entry;
  }

 private:
  const size_t capacity_;
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::shared_ptr<QueuedBatch>> entries_ SKEIN_GUARDED_BY(mutex_);
  size_t num_begun_ SKEIN_GUARDED_BY(mutex_) = 0;
  bool is_ended_ SKEIN_GUARDED_BY(mutex_) = false;
  std::exception_ptr error_ SKEIN_GUARDED_BY(mutex_);
};

// What the thread that reads throws to stop reading, once another thread has failed.
struct ReadingStopped {};

// Fills the queue with batches of all documents.
class BatchReader {
 public:
  BatchReader(const Pieces& pieces, BatchQueue& queue) : pieces_(pieces), queue_(queue) {}

  void read(int64_t piece) {
    batch_.piece = piece;
    pieces_.read(piece, [this](const PieceDocument& document) { add(document.text); });
    batch_.is_last = true;
    push();
  }

 private:
  void add(std::string_view text) {
    const bool is_full =
        batch_.text.size() + text.size() > kBatchBytes || batch_.size() == kBatchDocuments;
    if (is_full && batch_.size() > 0) push();
    batch_.text.append(text);
    batch_.ends.push_back(batch_.text.size());
  }

  void push() {
    const int64_t piece = batch_.piece;
    if (!queue_.push(std::exchange(batch_, {}))) throw ReadingStopped();
    batch_.piece = piece;
    batch_.text.reserve(kBatchBytes);
  }

  const Pieces& pieces_;
  BatchQueue& queue_;
  DocumentBatch batch_;
};

}  // namespace

void run_document_pass(const Pieces& pieces, const std::vector<int64_t>& which, int num_threads,
                       const std::function<BatchWorker<std::shared_ptr<void>>()>& make_worker,
                       const std::function<void(const DocumentBatch&, void*)>& take) {
  BatchQueue queue(kBatchesOfThread * static_cast<size_t>(num_threads));
  const auto guarded = [&queue](const auto& body) {
    return [&queue, body] {
      try {
        body();
      } catch (const ReadingStopped&) {
        return;
      } catch (...) {
        queue.fail_with(std::current_exception());
      }
    };
  };
  std::vector<std::thread> threads;
  threads.push_back(quiet_thread(guarded([&] {
    BatchReader reader(pieces, queue);
    for (const int64_t piece : which) reader.read(piece);
    queue.end();
  })));
  for (int i = 0; i < num_threads; ++i) {
    threads.push_back(quiet_thread(guarded([&] {
      const BatchWorker<std::shared_ptr<void>> work = make_worker();
      while (const auto entry = queue.begin_work()) {
        entry->result = work(entry->batch);
        queue.finish_work(*entry);
      }
    })));
  }
  std::exception_ptr error;
  try {
    while (const auto entry = queue.take()) take(entry->batch, entry->result.get());
  } catch (...) {
    error = std::current_exception();
    queue.fail_with(error);
  }
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace skein
