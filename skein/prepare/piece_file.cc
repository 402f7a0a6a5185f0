#include "skein/prepare/piece_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <span>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr size_t kResidentBytes = size_t{8} << 20;  // of a mapped file, a thread

}  // namespace

PieceFile::PieceFile(const fs::path& path)
    : path_(path), partial_(unique_partial(path)), spool_(Spool::named(partial_)) {}

PieceFile::~PieceFile() {
  if (spool_) ::unlink(partial_.c_str());
}

void PieceFile::append(std::string_view bytes) {
  spool_->append(bytes);
  hash_.update(std::as_bytes(std::span(bytes)));
  num_bytes_ += static_cast<int64_t>(bytes.size());
}

std::string PieceFile::finish() {
  spool_->flush();
  spool_.reset();
  if (::rename(partial_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    ::unlink(partial_.c_str());
    fail(errno_code(error), "cannot rename {} to {}: {}", partial_.string(), path_.string(),
         errno_text(error));
  }
  return hash_.hex();
}

std::string hash_of_file(const fs::path& path) {
  const MappedFile file(path);
  Xxh3Stream hash;
  for (auto rest = file.bytes(); !rest.empty();) {
    const auto part = rest.first(std::min(kResidentBytes, rest.size()));
    hash.update(part);
    file.forget(part);
    rest = rest.subspan(part.size());
  }
  return hash.hex();
}

}  // namespace skein
