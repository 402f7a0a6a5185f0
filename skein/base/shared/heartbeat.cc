#include "skein/base/shared/heartbeat.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <limits>
#include <new>

#include "skein/base/error.h"

namespace skein {
namespace {

// Where ticks go without a supervisor.
HeartbeatSlot g_nobody;
std::atomic<HeartbeatSlot*> g_slot{&g_nobody};
std::unique_ptr<HeartbeatPage> g_page;
std::atomic<int> g_waiting{0};  // threads; several where ranks are threads of this process

HeartbeatSlot& own_slot() { return *g_slot.load(std::memory_order_acquire); }

}  // namespace

int64_t boot_millis() {
  struct timespec time {};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
}

HeartbeatPage::HeartbeatPage(int num_workers)
    : file_(::memfd_create("skein-heartbeats", MFD_CLOEXEC)),
      bytes_((static_cast<size_t>(num_workers) + 1) * sizeof(HeartbeatSlot)) {
  if (file_.get() < 0 || ::ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0) {
    fail(ErrorCode::kIo, "cannot make the memory for heartbeats: {}", errno_text(errno));
  }
  map();
  for (int index = -1; index < num_workers; ++index) new (&slot(index)) HeartbeatSlot;
  permitted_until() = std::numeric_limits<int64_t>::max();
}

HeartbeatPage::HeartbeatPage(FileDescriptor file, int index) : file_(std::move(file)) {
  struct stat status {};
  const bool is_there = ::fstat(file_.get(), &status) == 0;
  bytes_ = is_there ? static_cast<size_t>(status.st_size) : 0;
  if (bytes_ < (static_cast<size_t>(index) + 2) * sizeof(HeartbeatSlot)) {
    fail(ErrorCode::kInternal, "the memory for heartbeats has {} bytes: no place for worker {}",
         bytes_, index);
  }
  map();
}

void HeartbeatPage::map() {
  void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED) {
    fail(ErrorCode::kIo, "cannot map the memory for heartbeats: {}", errno_text(errno));
  }
  slots_ = static_cast<HeartbeatSlot*>(memory);
}

HeartbeatPage::~HeartbeatPage() { ::munmap(slots_, bytes_); }

namespace heartbeat {

void attach(FileDescriptor file, int index) {
  g_page = std::make_unique<HeartbeatPage>(std::move(file), index);
  g_slot = &g_page->slot(index);
  tick();
}

void tick() { own_slot().progress.fetch_add(1, std::memory_order_relaxed); }

void reach_step(int64_t step) {
  own_slot().step.store(step, std::memory_order_relaxed);
  tick();
}

void reach_save(int64_t number) {
  own_slot().saved.store(number, std::memory_order_release);
  tick();
}

int64_t passed_on() { return own_slot().passed_on.load(std::memory_order_acquire); }

void reach_checkpoint(int64_t step) { own_slot().stored.store(step, std::memory_order_relaxed); }

bool has_supervisor() { return g_page != nullptr; }

int stop_signal() { return g_page == nullptr ? 0 : static_cast<int>(g_page->stop_signal().load()); }

void worked(double seconds) {
  own_slot().work_us.fetch_add(static_cast<int64_t>(seconds * 1e6), std::memory_order_relaxed);
}

void require_permit(const std::string& what) {
  if (g_page == nullptr || boot_millis() < g_page->permitted_until()) return;
  fail(ErrorCode::kPeerLost,
       "{}: this machine's supervisor has not reached the rendezvous store for so long that other "
       "machines may train without this one",
       what);
}

void require_generation() {
  if (g_page == nullptr || g_page->is_over().load(std::memory_order_relaxed) == 0) return;
  fail(ErrorCode::kPeerLost, "the supervisor says that the generation is over: a worker has ended");
}

Wait::Wait(double seconds) {
  ++g_waiting;
  const auto millis = static_cast<int64_t>(seconds * 1000);
  own_slot().excused_until.store(boot_millis() + millis, std::memory_order_relaxed);
}

Wait::~Wait() {
  if (--g_waiting == 0) own_slot().excused_until.store(0, std::memory_order_relaxed);
  tick();
}

}  // namespace heartbeat
}  // namespace skein
