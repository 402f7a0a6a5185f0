#include "skein/replica/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "skein/base/error.h"
#include "skein/base/text/units.h"

namespace skein {
namespace {

constexpr int64_t kPageBytes = 4096;
constexpr int64_t kMarkBytes = sizeof(uint64_t);
constexpr uint64_t kMagic = 0x31616c7065726b73;  // "skrepla1"
constexpr size_t kMostOfSave = 256;
constexpr int64_t kMostBytes = int64_t{1} << 50;  // more is no part's

int64_t file_bytes(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 ? status.st_size : 0;
}

bool change_room(int file, int mode, int64_t begin, int64_t bytes) {
  int outcome = 0;
  do {
    outcome = ::fallocate(file, mode, begin, bytes);
  } while (outcome != 0 && errno == EINTR);
  return outcome == 0;
}

// Memory of another size belongs to another layout. Its file never becomes shorter, because a
// process that still reads behind the new end would be killed; what it held there is given back.
// What lies behind the data is the record, which is small.
void make_room(int file, int64_t wanted) {
  struct stat status {};
  const bool is_known = wanted <= kMostBytes && ::fstat(file, &status) == 0;
  const int64_t taken = int64_t{status.st_blocks} * 512;
  const bool is_there = status.st_size >= wanted && taken >= wanted;
  if (!is_known || (!is_there && !change_room(file, 0, 0, wanted))) {
    fail(ErrorCode::kNoSpace, "a copy of the state needs {} of memory: {}", format_bytes(wanted),
         errno_text(is_known ? errno : EFBIG));
  }
  if (taken <= 2 * wanted) return;
  change_room(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, wanted, status.st_size - wanted);
}

}  // namespace

struct ReplicaMemory::Header {
  uint64_t magic = 0;  // written last
  int64_t number = 0, timeline = 0, step = 0;
  int32_t rank = 0, num_ranks = 0;
  int64_t data_bytes = 0, record_bytes = 0;
  char save[kMostOfSave] = {};

  int64_t record_at() const { return kPageBytes + data_bytes; }
  int64_t image_bytes() const { return record_at() + record_bytes; }
  ReplicaLabel label() const {
    return {
        std::string(save, ::strnlen(save, kMostOfSave)), number, timeline, step, rank, num_ranks};
  }
};

FileDescriptor make_replica_file(const std::string& name) {
  FileDescriptor file(::memfd_create(name.c_str(), MFD_CLOEXEC));
  if (file.get() < 0) {
    fail(ErrorCode::kIo, "cannot make memory for copies of the state: {}", errno_text(errno));
  }
  return file;
}

void ReplicaMemory::unmap() {
  if (memory_ != nullptr) ::munmap(memory_, mapped_);
  memory_ = nullptr;
  mapped_ = 0;
}

void ReplicaMemory::map(int64_t bytes) {
  if (memory_ != nullptr && mapped_ >= bytes) return;
  unmap();
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) {
    fail(ErrorCode::kNoSpace, "a copy of the state needs {} of memory: {}", format_bytes(bytes),
         errno_text(errno));
  }
  memory_ = static_cast<std::byte*>(memory);
  mapped_ = bytes;
}

void ReplicaMemory::forget() {
  const uint64_t none = 0;
  if (file_bytes(file_) > 0) (void)::pwrite(file_, &none, sizeof none, 0);
}

void ReplicaMemory::release() {
  forget();
  const int64_t all = file_bytes(file_) + kPageBytes;  // a page in part would be kept
  change_room(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, all);
}

std::span<std::byte> ReplicaMemory::reserve(int64_t bytes) {
  forget();
  const int64_t wanted = kPageBytes + bytes;
  make_room(file_, wanted);
  map(wanted);
  reserved_ = bytes;
  return {memory_ + kPageBytes, static_cast<size_t>(bytes)};
}

std::span<const std::byte> ReplicaMemory::reserved() const {
  return {memory_ + kPageBytes, static_cast<size_t>(reserved_)};
}

void ReplicaMemory::complete(const ReplicaLabel& label, std::string_view record) {
  if (label.save.empty() || label.save.size() > kMostOfSave) {
    fail(ErrorCode::kInternal, "a copy of the state is of \"{}\"", label.save);
  }
  Header header{.magic = 0,
                .number = label.number,
                .timeline = label.timeline,
                .step = label.step,
                .rank = label.rank,
                .num_ranks = label.num_ranks,
                .data_bytes = reserved_,
                .record_bytes = static_cast<int64_t>(record.size())};
  label.save.copy(header.save, kMostOfSave);
  const ssize_t written = ::pwrite(file_, record.data(), record.size(), header.record_at());
  if (written != static_cast<ssize_t>(record.size())) {
    fail(ErrorCode::kNoSpace, "the record of a copy of the state needs {} of memory: {}",
         format_bytes(std::ssize(record)), errno_text(errno));
  }
  std::memcpy(memory_, &header, sizeof header);
  set_label();
}

// The other bytes are there before the mark is.
void ReplicaMemory::set_label() {
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(memory_))
      .store(kMagic, std::memory_order_release);
}

std::optional<ReplicaMemory::Header> ReplicaMemory::header() const {
  Header header;
  const ssize_t got = ::pread(file_, &header, sizeof header, 0);
  if (got != static_cast<ssize_t>(sizeof header) || header.magic != kMagic) return std::nullopt;
  const int64_t bytes = file_bytes(file_);
  const bool fits = header.data_bytes >= 0 && header.record_bytes >= 0 &&
                    header.data_bytes <= bytes && header.record_bytes <= bytes &&
                    header.image_bytes() <= bytes && header.num_ranks > 0 && header.rank >= 0 &&
                    header.rank < header.num_ranks && header.step >= 0 && header.number >= 0;
  if (!fits) return std::nullopt;
  return header;
}

ReplicaMemory::Header ReplicaMemory::complete_header() const {
  const auto found = header();
  if (!found) fail(ErrorCode::kInvalid, "a copy of the state is not complete");
  return *found;
}

std::optional<ReplicaLabel> ReplicaMemory::label() const {
  const auto found = header();
  if (!found) return std::nullopt;
  return found->label();
}

std::span<const std::byte> ReplicaMemory::data() {
  const Header header = complete_header();
  map(header.image_bytes());
  return {memory_ + kPageBytes, static_cast<size_t>(header.data_bytes)};
}

std::string ReplicaMemory::record() {
  const Header header = complete_header();
  map(header.image_bytes());
  return {reinterpret_cast<const char*>(memory_) + header.record_at(),
          static_cast<size_t>(header.record_bytes)};
}

std::span<const std::byte> ReplicaMemory::image() {
  const Header header = complete_header();
  map(header.image_bytes());
  return {memory_ + kMarkBytes, static_cast<size_t>(header.image_bytes() - kMarkBytes)};
}

bool ReplicaMemory::take(int64_t image_bytes, const ReplicaLabel& label,
                         const std::function<bool(std::span<std::byte>)>& fill) {
  if (image_bytes < kPageBytes || image_bytes > kMostBytes) return false;
  const int64_t bytes = image_bytes + kMarkBytes;
  reserve(bytes - kPageBytes);
  const bool is_whole = fill({memory_ + kMarkBytes, static_cast<size_t>(bytes - kMarkBytes)});
  if (is_whole) set_label();
  const auto found = header();
  if (found && found->label() == label && found->image_bytes() == bytes) return true;
  forget();
  return false;
}

}  // namespace skein
