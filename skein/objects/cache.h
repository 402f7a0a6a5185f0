// Objects as if they were mapped files: the pages of them that are read are fetched and kept, as
// many as fit into a limit.
//
// Layout   pages of 64 KiB, in a temporary file without a name that is mapped at an object's whole
//          length, so that text lies together however it was fetched. Pages that were not used for
//          longest are given back first; those that somebody holds never are, so that the limit is
//          passed where more is held at once.
// Fetch    pages that are missing side by side are one request, of at most 4 MiB; where the pages
//          before are there already, as many again are fetched as there are of them, since somebody
//          reads on. A page that is being fetched is waited for, not asked for twice.
// Memory   the file's pages are the kernel's, which may write them to the disk; a buffer of up to
//          4 MiB a thread that fetches
// Errors   those of the reader; of background tasks none: who needs the bytes asks again
// Threads  several may call all functions at once. Background tasks run on 24 threads, which start
//          with the first.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "skein/base/threads/mutex.h"
#include "skein/objects/range_reader.h"
#include "skein/objects/sparse_file.h"

namespace skein {

class CachedObject;

// Keeps bytes of an object where they are. The object must outlive it.
class ObjectHold {
 public:
  ObjectHold() = default;  // of nothing
  ObjectHold(ObjectHold&& other) noexcept { swap(other); }
  ObjectHold& operator=(ObjectHold&& other) noexcept {
    swap(other);
    return *this;
  }
  ~ObjectHold();

 private:
  friend class CachedObject;
  ObjectHold(CachedObject* object, int64_t first, int64_t end)
      : object_(object), first_(first), end_(end) {}
  void swap(ObjectHold& other) noexcept;

  CachedObject* object_ = nullptr;
  int64_t first_ = 0, end_ = 0;  // pages
};

class ObjectCache {
 public:
  static constexpr int64_t kPageBytes = int64_t{64} << 10;
  static constexpr int64_t kDefaultBytes = int64_t{2} << 30;

  // The file lies in `folder`; empty: TMPDIR, else /tmp.
  explicit ObjectCache(int64_t max_bytes = kDefaultBytes, fs::path folder = {});
  ~ObjectCache();
  ObjectCache(const ObjectCache&) = delete;
  ObjectCache& operator=(const ObjectCache&) = delete;

  // Nothing is fetched yet. The cache must outlive the object.
  std::shared_ptr<CachedObject> add(std::unique_ptr<RangeReader> reader);

  // Runs `task` soon. Where too many wait already, it is left out; so are those that have not begun
  // when the cache ends. A task may hold objects of this cache.
  void in_background(std::function<void()> task);

  int64_t max_bytes() const { return max_bytes_; }
  int64_t num_bytes() const;     // in the file now
  int64_t num_requests() const;  // so far

 private:
  friend class CachedObject;
  struct PageOf {
    CachedObject* object;
    int64_t page;
  };
  void shrink();
  void work();

  const int64_t max_bytes_;
  const fs::path folder_;
  mutable Mutex mutex_;
  ConditionVariable changed_;  // a page came or went
  std::vector<std::unique_ptr<SparseFile>> files_ SKEIN_GUARDED_BY(mutex_);
  std::list<PageOf> unused_ SKEIN_GUARDED_BY(mutex_);  // that nobody holds, the latest at the front
  int64_t num_pages_ SKEIN_GUARDED_BY(mutex_) = 0;
  int64_t num_requests_ SKEIN_GUARDED_BY(mutex_) = 0;

  Mutex tasks_mutex_;
  ConditionVariable tasks_changed_;
  std::deque<std::function<void()>> tasks_ SKEIN_GUARDED_BY(tasks_mutex_);
  std::vector<std::thread> threads_ SKEIN_GUARDED_BY(tasks_mutex_);
  int num_idle_ SKEIN_GUARDED_BY(tasks_mutex_) = 0;
  bool stopping_ SKEIN_GUARDED_BY(tasks_mutex_) = false;
};

class CachedObject {
 public:
  ~CachedObject();
  CachedObject(const CachedObject&) = delete;
  CachedObject& operator=(const CachedObject&) = delete;

  std::string name() const { return reader_->name(); }
  // Of the whole object; only what is held may be read, the rest may be zeros.
  std::span<const std::byte> bytes() const { return {data_, static_cast<size_t>(num_bytes_)}; }

  // Fetches what is missing of these bytes, all of which lie in bytes().
  ObjectHold hold(std::span<const std::byte> part);
  // Whether they are there, or on their way.
  bool has(std::span<const std::byte> part) const;

  ObjectCache& cache() const { return cache_; }

 private:
  friend class ObjectCache;
  friend class ObjectHold;
  struct Page {
    enum class State { kComing, kThere, kGoing } state = State::kComing;
    int num_holds = 0;
    std::list<ObjectCache::PageOf>::iterator place;  // in unused_, while it is there and not held
  };
  struct Pages {
    int64_t first = 0, end = 0;
  };
  CachedObject(ObjectCache& cache, std::unique_ptr<RangeReader> reader, SparseFile& file,
               int64_t begin);
  Pages pages_of(std::span<const std::byte> part) const;
  int64_t hold_those_there(int64_t first, int64_t end) SKEIN_REQUIRES(cache_.mutex_);
  Pages claim(int64_t first, int64_t end) SKEIN_REQUIRES(cache_.mutex_);
  void fetch(const Pages& pages);
  void settle(const Pages& pages, bool came) SKEIN_REQUIRES(cache_.mutex_);
  void release(const Pages& pages);

  ObjectCache& cache_;
  const std::unique_ptr<RangeReader> reader_;
  SparseFile& file_;
  const int64_t begin_;  // in the file
  const int64_t num_bytes_;
  const std::byte* data_ = nullptr;
  std::unordered_map<int64_t, Page> pages_;  // guarded by the cache's mutex
};

}  // namespace skein
