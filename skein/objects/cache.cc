#include "skein/objects/cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"

namespace skein {
namespace {

constexpr int64_t kPage = ObjectCache::kPageBytes;
constexpr int64_t kMostPages = 64;                // of one request
constexpr int64_t kFileBytes = int64_t{1} << 40;  // file systems limit the length of a file
constexpr int kThreads = 24;  // connections that Arrow opens to a store at once are 25
constexpr size_t kMostTasks = 8192;

}  // namespace

ObjectHold::~ObjectHold() {
  if (object_ != nullptr && first_ < end_) object_->release({first_, end_});
}

void ObjectHold::swap(ObjectHold& other) noexcept {
  std::swap(object_, other.object_);
  std::swap(first_, other.first_);
  std::swap(end_, other.end_);
}

ObjectCache::ObjectCache(int64_t max_bytes, fs::path folder)
    : max_bytes_(max_bytes), folder_(std::move(folder)) {}

ObjectCache::~ObjectCache() {
  std::vector<std::thread> threads;
  {
    const Lock lock(tasks_mutex_);
    stopping_ = true;
    threads.swap(threads_);
  }
  tasks_changed_.notify_all();
  for (std::thread& thread : threads) thread.join();
  std::deque<std::function<void()>> left;
  const Lock lock(tasks_mutex_);
  left.swap(tasks_);  // whose objects end before the rest of the cache does
}

std::shared_ptr<CachedObject> ObjectCache::add(std::unique_ptr<RangeReader> reader) {
  const int64_t num_bytes = ceil_div(std::max<int64_t>(reader->num_bytes(), 1), kPage) * kPage;
  const Lock lock(mutex_);
  if (files_.empty() || files_.back()->num_bytes() + num_bytes > kFileBytes) {
    files_.push_back(std::make_unique<SparseFile>(folder_));
  }
  SparseFile& file = *files_.back();
  const int64_t begin = file.grow(num_bytes);
  return std::shared_ptr<CachedObject>(new CachedObject(*this, std::move(reader), file, begin));
}

int64_t ObjectCache::num_bytes() const {
  const Lock lock(mutex_);
  return num_pages_ * kPage;
}

int64_t ObjectCache::num_requests() const {
  const Lock lock(mutex_);
  return num_requests_;
}

// Gives back pages that nobody holds until the rest fits. Others see them go, and wait.
void ObjectCache::shrink() {
  std::vector<PageOf> going;
  {
    const Lock lock(mutex_);
    while (num_pages_ * kPage > max_bytes_ && !unused_.empty()) {
      const PageOf last = unused_.back();
      unused_.pop_back();
      last.object->pages_.at(last.page).state = CachedObject::Page::State::kGoing;
      going.push_back(last);
      --num_pages_;
    }
  }
  if (going.empty()) return;
  try {
    for (const auto& [object, page] : going) {
      object->file_.punch(object->begin_ + page * kPage, kPage);
    }
  } catch (const Error& problem) {
    log::warn("{}: more than data.cache_bytes is in use", problem.what());
  }
  {
    const Lock lock(mutex_);
    for (const auto& [object, page] : going) object->pages_.erase(page);
  }
  changed_.notify_all();
}

void ObjectCache::in_background(std::function<void()> task) {
  {
    const Lock lock(tasks_mutex_);
    if (stopping_ || tasks_.size() >= kMostTasks) return;
    tasks_.push_back(std::move(task));
    if (static_cast<size_t>(num_idle_) < tasks_.size() && threads_.size() < kThreads) {
      threads_.emplace_back([this] { work(); });
    }
  }
  tasks_changed_.notify_one();
}

void ObjectCache::work() {
  Lock lock(tasks_mutex_);
  while (true) {
    ++num_idle_;
    tasks_changed_.wait(
        lock, [&]() SKEIN_REQUIRES(tasks_mutex_) { return stopping_ || !tasks_.empty(); });
    --num_idle_;
    if (stopping_) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    try {
      task();
    } catch (const std::exception&) {  // who needs the bytes is told
    }
    task = {};  // and what it held goes, before the lock comes back
    lock.lock();
  }
}

CachedObject::CachedObject(ObjectCache& cache, std::unique_ptr<RangeReader> reader,
                           SparseFile& file, int64_t begin)
    : cache_(cache),
      reader_(std::move(reader)),
      file_(file),
      begin_(begin),
      num_bytes_(reader_->num_bytes()),
      data_(file.map(begin, std::max<int64_t>(num_bytes_, 1))) {}

CachedObject::~CachedObject() {
  bool has_any = false;
  {
    Lock lock(cache_.mutex_);
    cache_.changed_.wait(lock, [&] {
      return std::all_of(pages_.begin(), pages_.end(),
                         [](const auto& each) { return each.second.state == Page::State::kThere; });
    });
    for (auto& [number, page] : pages_) cache_.unused_.erase(page.place);
    cache_.num_pages_ -= static_cast<int64_t>(pages_.size());
    has_any = !pages_.empty();
    pages_.clear();
  }
  ::munmap(const_cast<std::byte*>(data_), static_cast<size_t>(std::max<int64_t>(num_bytes_, 1)));
  try {
    if (has_any) file_.punch(begin_, ceil_div(num_bytes_, kPage) * kPage);
  } catch (const Error&) {  // its room comes back with the file
  }
}

CachedObject::Pages CachedObject::pages_of(std::span<const std::byte> part) const {
  const int64_t begin = part.data() - data_;
  const int64_t end = begin + static_cast<int64_t>(part.size());
  if (begin < 0 || end > num_bytes_) {
    fail(ErrorCode::kInternal, "{}: bytes {} to {} asked for: there are {}", name(), begin, end,
         num_bytes_);
  }
  return {begin / kPage, ceil_div(end, kPage)};
}

bool CachedObject::has(std::span<const std::byte> part) const {
  const Pages pages = pages_of(part);
  const Lock lock(cache_.mutex_);
  for (int64_t page = pages.first; page < pages.end; ++page) {
    if (!pages_.contains(page)) return false;
  }
  return true;
}

ObjectHold CachedObject::hold(std::span<const std::byte> part) {
  if (part.empty()) return {};
  const Pages wanted = pages_of(part);
  ObjectHold held(this, wanted.first, wanted.first);
  bool fetched = false;
  while (true) {
    Pages missing;
    {
      Lock lock(cache_.mutex_);
      held.end_ = hold_those_there(held.end_, wanted.end);
      if (held.end_ == wanted.end) break;
      missing = claim(held.end_, wanted.end);
      if (missing.first == missing.end) {  // another thread fetches it
        cache_.changed_.wait(lock);
        continue;
      }
    }
    try {
      fetch(missing);
    } catch (...) {
      const Lock lock(cache_.mutex_);
      settle(missing, false);
      throw;
    }
    const Lock lock(cache_.mutex_);
    settle(missing, true);
    held.end_ = hold_those_there(held.end_, wanted.end);
    fetched = true;
  }
  if (fetched) cache_.shrink();
  return held;
}

// Holds the pages from `first` on that are there; returns the first that is not.
int64_t CachedObject::hold_those_there(int64_t first, int64_t end) {
  for (; first < end; ++first) {
    const auto found = pages_.find(first);
    if (found == pages_.end() || found->second.state != Page::State::kThere) break;
    if (found->second.num_holds++ == 0) cache_.unused_.erase(found->second.place);
  }
  return first;
}

// Marks missing pages as coming, from `first` on.
CachedObject::Pages CachedObject::claim(int64_t first, int64_t end) {
  int64_t before = 0;
  while (before < kMostPages && pages_.contains(first - 1 - before)) ++before;
  const int64_t most = std::min(first + std::min(std::max(end - first, before), kMostPages),
                                ceil_div(num_bytes_, kPage));
  Pages claimed{first, first};
  while (claimed.end < most && pages_.try_emplace(claimed.end).second) ++claimed.end;
  return claimed;
}

void CachedObject::fetch(const Pages& pages) {
  const int64_t begin = pages.first * kPage;
  std::string bytes(static_cast<size_t>(std::min(pages.end * kPage, num_bytes_) - begin), '\0');
  reader_->read(begin, bytes);
  file_.write(begin_ + begin, bytes);
}

// Claimed pages came, or will not.
void CachedObject::settle(const Pages& pages, bool came) {
  ++cache_.num_requests_;
  for (int64_t number = pages.first; number < pages.end; ++number) {
    if (!came) {
      pages_.erase(number);
      continue;
    }
    Page& page = pages_.at(number);
    page.state = Page::State::kThere;
    cache_.unused_.push_front({this, number});
    page.place = cache_.unused_.begin();
    ++cache_.num_pages_;
  }
  cache_.changed_.notify_all();
}

void CachedObject::release(const Pages& pages) {
  bool is_full = false;
  {
    const Lock lock(cache_.mutex_);
    for (int64_t number = pages.first; number < pages.end; ++number) {
      Page& page = pages_.at(number);
      if (--page.num_holds > 0) continue;
      cache_.unused_.push_front({this, number});
      page.place = cache_.unused_.begin();
    }
    is_full = cache_.num_pages_ * kPage > cache_.max_bytes_;
  }
  if (is_full) cache_.shrink();
}

}  // namespace skein
