// Decompressed bytes of a source, streamed in bounded memory: what the formats of compression.h
// have in common, and a function for each library that decodes them.
//
// Errors   Error{kCorrupt} naming the file: damaged, or it ends early; Error{kUnsupported}: more
//          memory would be needed than is given (128 MiB of zstd, 160 MiB of xz)
// Threads  an object: one at a time
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "skein/prepare/read/bytes/byte_source.h"

namespace skein {

constexpr size_t kPackedBytes = size_t{1} << 18;  // compressed bytes that are read at once

// The common part: compressed bytes, refilled from `source`.
class Decompressor : public ByteSource {
 protected:
  Decompressor(std::unique_ptr<ByteSource> source, const std::string& name)
      : name_(name), source_(std::move(source)), compressed_(kPackedBytes, '\0') {}

  // More compressed bytes; empty at the end of the file.
  std::string_view refill() {
    return {compressed_.data(), source_->read({compressed_.data(), compressed_.size()})};
  }
  [[noreturn]] void fail_corrupt(const char* format, std::string_view found) const {
    fail(ErrorCode::kCorrupt, "{}: damaged {} file: {}", name_, format, found);
  }

  std::string name_;

 private:
  std::unique_ptr<ByteSource> source_;
  std::string compressed_;
};

std::unique_ptr<ByteSource> gunzip(std::unique_ptr<ByteSource> source, const std::string& name);
std::unique_ptr<ByteSource> unzstd(std::unique_ptr<ByteSource> source, const std::string& name);
// xz, and the older lzma and lzip.
std::unique_ptr<ByteSource> unxz(std::unique_ptr<ByteSource> source, const std::string& name);
// By the codecs of Arrow's library.
std::unique_ptr<ByteSource> unbzip2(std::unique_ptr<ByteSource> source, const std::string& name);
std::unique_ptr<ByteSource> unlz4(std::unique_ptr<ByteSource> source, const std::string& name);
std::unique_ptr<ByteSource> unbrotli(std::unique_ptr<ByteSource> source, const std::string& name);

}  // namespace skein
