#include "skein/base/files/lost_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/threads/mutex.h"

namespace skein {

// A handler may be walking the list at any time, so places are used again and never freed. One with
// no bytes is free.
struct MappedRegion::Place {
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<bool> lost{false};
  fs::path path;
  Place* next = nullptr;
};

namespace {

Mutex g_mutex;
std::atomic<MappedRegion::Place*> g_first{nullptr};
// Outlives whatever static holds a region.
auto& g_free SKEIN_GUARDED_BY(g_mutex) = *new std::vector<MappedRegion::Place*>;
std::atomic<bool> g_lost{false};  // some region is
// Lifetimes of LostPages, and who handled the signal before the first.
int64_t g_lifetimes SKEIN_GUARDED_BY(g_mutex) = 0;
struct sigaction g_former SKEIN_GUARDED_BY(g_mutex) {};
static_assert(std::atomic<uintptr_t>::is_always_lock_free);

uintptr_t page_size() {
  static const auto size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

// Maps zeros from the page at `address` to the end of its region.
bool replace_by_zeros(uintptr_t address) {
  for (MappedRegion::Place* at = g_first; at != nullptr; at = at->next) {
    if (address < at->begin || address >= at->end) continue;
    const uintptr_t page = address / page_size() * page_size();
    const void* zeros = ::mmap(reinterpret_cast<void*>(page), at->end - page, PROT_READ,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (zeros == MAP_FAILED) return false;
    at->lost = true;
    g_lost = true;
    return true;
  }
  return false;
}

void on_bus_error(int signal, siginfo_t* info, void*) {
  const int saved = errno;
  // The instruction comes again, and with the default action ends the process.
  if (!replace_by_zeros(reinterpret_cast<uintptr_t>(info->si_addr))) ::signal(signal, SIG_DFL);
  errno = saved;
}

}  // namespace

MappedRegion::MappedRegion(std::span<const std::byte> bytes, const fs::path& path) {
  if (bytes.empty()) return;
  const Lock lock(g_mutex);
  const bool is_new = g_free.empty();
  if (is_new) {
    place_ = new Place;
  } else {
    place_ = g_free.back();
    g_free.pop_back();
  }
  place_->path = path;
  place_->lost = false;
  place_->begin = reinterpret_cast<uintptr_t>(bytes.data());
  place_->end = reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size();
  if (is_new) {
    place_->next = g_first;
    g_first = place_;
  }
}

MappedRegion::~MappedRegion() {
  if (place_ == nullptr) return;
  const Lock lock(g_mutex);
  place_->lost = false;
  place_->end = 0;
  g_free.push_back(place_);
}

LostPages::LostPages() {
  page_size();
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  const Lock lock(g_mutex);
  if (++g_lifetimes == 1) sigaction(SIGBUS, &action, &g_former);
}

LostPages::~LostPages() {
  const Lock lock(g_mutex);
  if (--g_lifetimes == 0) sigaction(SIGBUS, &g_former, nullptr);
}

void require_no_lost_pages() {
  if (!g_lost.load(std::memory_order_relaxed)) return;
  const Lock lock(g_mutex);
  g_lost = false;  // before the walk: what is lost behind its back sets it again
  for (const MappedRegion::Place* at = g_first; at != nullptr; at = at->next) {
    if (!at->lost) continue;
    g_lost = true;
    const auto expected = static_cast<uintmax_t>(at->end - at->begin);
    std::error_code problem;
    const uintmax_t found = fs::file_size(at->path, problem);
    if (!problem && found < expected) {
      fail(ErrorCode::kInvalid,
           "{}: the file became shorter while it was read: it had {} bytes and has {}; put back "
           "what it was, and start again",
           at->path.string(), expected, found);
    }
    fail(ErrorCode::kIo,
         "{}: a part of its {} bytes cannot be read: its disk failed, or the file was cut and "
         "rewritten: see dmesg, or restore the file, and start again",
         at->path.string(), expected);
  }
}

}  // namespace skein
