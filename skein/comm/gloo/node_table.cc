#include "skein/comm/gloo/node_table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/log.h"

namespace skein {
namespace {

constexpr std::chrono::nanoseconds kBetweenLooks = std::chrono::milliseconds(100);

int64_t now() {  // one clock for all processes of a kernel
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

}  // namespace

TableRecord::TableRecord(std::span<const char> bytes) : num_bytes_(bytes.size()) {
  if (bytes.size() > kMaxBytes) {
    fail(ErrorCode::kInternal, "{} bytes do not fit a record of {}", bytes.size(), kMaxBytes);
  }
  std::memcpy(bytes_, bytes.data(), bytes.size());
  checksum_ = expected();
}

uint64_t TableRecord::expected() const {
  return hash_name({reinterpret_cast<const char*>(this), sizeof(TableRecord) - sizeof(checksum_)});
}

std::optional<std::vector<char>> TableRecord::bytes() const {
  if (num_bytes_ == 0 || num_bytes_ > kMaxBytes || checksum_ != expected()) return std::nullopt;
  return std::vector<char>(bytes_, bytes_ + num_bytes_);
}

std::optional<std::vector<char>> TableRecord::read(int fd, int64_t offset) {
  TableRecord record;
  if (::pread(fd, &record, sizeof(record), offset) != sizeof(record)) return std::nullopt;
  return record.bytes();
}

bool TableRecord::write(int fd, int64_t offset) const {
  return ::pwrite(fd, this, sizeof(*this), offset) == sizeof(*this);
}

NodeTable::NodeTable(const std::string& rendezvous, const std::string& host, int rank, int size)
    : rank_(rank), size_(size), members_{rank} {
  std::error_code error;
  const fs::path folder = fs::canonical(rendezvous, error);
  const std::string name =
      fmt::format("{}\n{}\n{}", host, error ? rendezvous : folder.string(), size);
  try {
    folder_.emplace();
    name_ = fmt::format("ranks-{:016x}", hash_name(name));
    file_ = folder_->open(name_);
  } catch (const Error& problem) {  // every rank looks in the folder itself
    name_.clear();
    log::warn("the ranks of this machine find the others more slowly: {}", problem.what());
    return;
  }
  const char here = 1;
  if (::pwrite(file_.get(), &here, 1, rank) != 1) file_.reset();
}

NodeTable::~NodeTable() { forget_name(); }

void NodeTable::forget_name() {
  if (!name_.empty()) folder_->remove(name_);
  name_.clear();
}

void NodeTable::all_met() {
  std::vector<char> is_member(static_cast<size_t>(size_));
  const ssize_t num = ::pread(file_.get(), is_member.data(), is_member.size(), 0);
  members_.clear();
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_ || (rank < num && is_member[static_cast<size_t>(rank)] != 0)) {
      members_.push_back(rank);
    }
  }
  forget_name();
}

int64_t NodeTable::record_at(int reader, int peer) const {
  const int64_t looks_end = size_ + int64_t{8} * (size_ + 1);
  return looks_end + (int64_t{reader} * size_ + peer) * int64_t{sizeof(TableRecord)};
}

std::optional<std::vector<char>> NodeTable::find(int reader, int peer) const {
  return TableRecord::read(file_.get(), record_at(reader, peer));
}

void NodeTable::put(int reader, int peer, std::span<const char> address) {
  TableRecord(address).write(file_.get(), record_at(reader, peer));
}

// The table's record lies after all addresses.
std::optional<std::vector<char>> NodeTable::find_table() const {
  return TableRecord::read(file_.get(), record_at(size_, 0));
}

void NodeTable::put_table(std::string_view table) {
  if (table.size() <= TableRecord::kMaxBytes)
    TableRecord(table).write(file_.get(), record_at(size_, 0));
}

bool NodeTable::may_look(int file) {
  const int64_t at = size_ + int64_t{8} * file, time = now();
  int64_t last = 0;
  const bool looked = ::pread(file_.get(), &last, sizeof(last), at) == sizeof(last) && last != 0;
  if (looked && time - last < kBetweenLooks.count()) return false;
  (void)!::pwrite(file_.get(), &time, sizeof(time), at);
  return true;
}

}  // namespace skein
