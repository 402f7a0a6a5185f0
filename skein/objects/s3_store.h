// The connection to the store of a bucket: Arrow's file system over AWS's library, and what it says
// when something fails. For the sources of this room; store.h says how stores are found.
#pragma once

#include <arrow/result.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "skein/objects/url.h"

namespace arrow::fs {
class S3FileSystem;
}
namespace arrow::io {
class RandomAccessFile;
}

namespace skein {

// For requests that are made again by somebody else than AWS's library.
void count_repeated_request();

// One a bucket: buckets lie in regions.
std::shared_ptr<arrow::fs::S3FileSystem> store_of(const ObjectUrl& url);

// Throws the Error for what the store said of `url`.
[[noreturn]] void fail_object(const std::string& url, const std::string& found);

inline void check_done(const arrow::Status& status, const std::string& url) {
  if (!status.ok()) fail_object(url, status.message());
}

template <typename T>
T value_or_fail(arrow::Result<T> result, const std::string& url) {
  check_done(result.status(), url);
  return std::move(result).ValueUnsafe();
}

// Reads bytes of an object. Arrow repeats what failed, if that may help, and hands on what came of
// a body that ends early: this asks for it again.
void read_whole(arrow::io::RandomAccessFile& file, int64_t begin, std::span<uint8_t> target,
                const std::string& url);

}  // namespace skein
