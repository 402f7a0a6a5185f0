#include "skein/comm/shared_memory/mailbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <new>
#include <stdexcept>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr uint64_t kMagic = 0x3178426e69656b53;  // "SkeinBx1"
constexpr size_t kPage = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

size_t bytes_of(int num_lanes) { return kPage * (static_cast<size_t>(num_lanes) + 1); }

[[noreturn]] void fail_with(const char* what) {
  throw std::runtime_error(fmt::format("{}: {}", what, errno_text(errno)));
}

}  // namespace

struct Mailbox::Header {
  uint64_t magic;
  std::atomic<uint32_t> bell;
  std::atomic<uint32_t> sleepers;
  std::atomic<uint32_t> is_closed;
};

struct Mailbox::Lane {
  alignas(64) std::atomic<uint64_t> num_put;
  std::atomic<uint32_t> writer_waits;
  alignas(64) std::atomic<uint64_t> num_taken;
  alignas(64) MailboxEntry entries[kLaneEntries];
};

Mailbox::Mailbox(int num_lanes)
    : file_(::memfd_create("skein-mailbox", MFD_CLOEXEC | MFD_ALLOW_SEALING)),
      bytes_(bytes_of(num_lanes)) {
  static_assert(sizeof(Lane) <= kPage && std::atomic<uint64_t>::is_always_lock_free);
  if (file_.get() < 0 || ::ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0 ||
      ::fcntl(file_.get(), F_ADD_SEALS, kSeals) != 0) {
    fail_with("no memory file can be made");
  }
  map();
  header_->magic = kMagic;  // the rest is zero, as new pages are
}

Mailbox::Mailbox(FileDescriptor file, int num_lanes)
    : file_(std::move(file)), bytes_(bytes_of(num_lanes)) {
  struct stat status = {};
  const int seals = ::fcntl(file_.get(), F_GET_SEALS);
  if (::fstat(file_.get(), &status) != 0 || static_cast<size_t>(status.st_size) != bytes_ ||
      seals < 0 || (seals & kSeals) != kSeals) {
    throw std::runtime_error("what it offers is no mailbox");
  }
  map();
  file_.reset();
  if (header_->magic != kMagic) {
    ::munmap(header_, bytes_);
    throw std::runtime_error("what it offers is no mailbox of this version");
  }
}

void Mailbox::map() {
  void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED) fail_with("its mailbox cannot be mapped");
  header_ = static_cast<Header*>(memory);
}

Mailbox::~Mailbox() { ::munmap(header_, bytes_); }

Mailbox::Lane& Mailbox::lane(int index) const {
  return *reinterpret_cast<Lane*>(reinterpret_cast<char*>(header_) +
                                  kPage * (static_cast<size_t>(index) + 1));
}

bool Mailbox::put(int index, const MailboxEntry& entry) {
  Lane& to = lane(index);
  const uint64_t number = to.num_put.load(std::memory_order_relaxed);
  if (number - to.num_taken.load(std::memory_order_acquire) >= kLaneEntries) {
    // Either the owner sees this after it made room, or this rank sees the room.
    to.writer_waits.store(1);
    if (number - to.num_taken.load() >= kLaneEntries) return false;
  }
  to.entries[number % kLaneEntries] = entry;
  to.num_put.store(number + 1, std::memory_order_release);
  return true;
}

std::optional<MailboxEntry> Mailbox::take(int index) {
  Lane& from = lane(index);
  const uint64_t number = from.num_taken.load(std::memory_order_relaxed);
  if (from.num_put.load(std::memory_order_acquire) == number) return std::nullopt;
  const MailboxEntry entry = from.entries[number % kLaneEntries];
  from.num_taken.store(number + 1);
  return entry;
}

bool Mailbox::writer_waits(int index) {
  Lane& from = lane(index);
  return from.writer_waits.load() != 0 && from.writer_waits.exchange(0) != 0;
}

// The bell and the number of sleepers are each written before the other is read: either the owner
// sees that the bell rang, or who rings sees that the owner sleeps.
void Mailbox::ring_bell() {
  header_->bell.fetch_add(1);
  if (!has_sleepers()) return;
  ::syscall(SYS_futex, &header_->bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool Mailbox::has_sleepers() const { return header_->sleepers.load() != 0; }
uint32_t Mailbox::bell() const { return header_->bell.load(); }

bool Mailbox::sleep(uint32_t bell, std::chrono::nanoseconds longest) {
  constexpr int64_t kSecond = 1'000'000'000;
  const timespec limit = {.tv_sec = longest.count() / kSecond,
                          .tv_nsec = longest.count() % kSecond};
  header_->sleepers.fetch_add(1);
  ::syscall(SYS_futex, &header_->bell, FUTEX_WAIT, bell, &limit, nullptr, 0);
  header_->sleepers.fetch_sub(1);
  return header_->bell.load() != bell;
}

void Mailbox::close() { header_->is_closed.store(1); }

// On x86-64 loads keep their order: what a system call copied before this was there before it.
bool Mailbox::is_closed() const { return header_->is_closed.load() != 0; }

}  // namespace skein
