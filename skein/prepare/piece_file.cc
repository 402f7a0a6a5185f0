#include "skein/prepare/piece_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <span>
#include <utility>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr size_t kResidentBytes = size_t{8} << 20;  // of a mapped file, a thread

}  // namespace

PieceFile::PieceFile(const fs::path& path)
    : path_(path), partial_(unique_partial(path)), spool_(Spool::named(partial_)) {}

PieceFile::~PieceFile() {
  if (spool_ && !partial_.empty()) ::unlink(partial_.c_str());
}

void PieceFile::append(std::string_view bytes) {
  spool_->append(bytes);
  hash_.update(std::as_bytes(std::span(bytes)));
  num_bytes_ += static_cast<int64_t>(bytes.size());
}

void PieceFile::go_on_in(Spool other) {
  spool_->flush();
  copy_bytes({spool_->fd(), 0, num_bytes_, partial_}, other.fd(), other.path());
  ::unlink(partial_.c_str());
  partial_.clear();
  spool_ = std::move(other);
}

std::string PieceFile::finish() {
  spool_->flush();
  spool_.reset();
  if (partial_.empty()) return hash_.hex();
  if (::rename(partial_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    ::unlink(partial_.c_str());
    fail(errno_code(error), "cannot rename {} to {}: {}", partial_.string(), path_.string(),
         errno_text(error));
  }
  return hash_.hex();
}

std::string hash_of(const MappedFile& file, int64_t begin, int64_t num_bytes) {
  Xxh3Stream hash;
  for (auto rest = file.bytes().subspan(static_cast<size_t>(begin), static_cast<size_t>(num_bytes));
       !rest.empty();) {
    const auto part = rest.first(std::min(kResidentBytes, rest.size()));
    hash.update(part);
    file.forget(part);
    rest = rest.subspan(part.size());
  }
  return hash.hex();
}

std::string hash_of_file(const fs::path& path) {
  const MappedFile file(path);
  return hash_of(file, 0, static_cast<int64_t>(file.bytes().size()));
}

}  // namespace skein
