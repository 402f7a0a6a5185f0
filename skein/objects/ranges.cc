#include "skein/objects/ranges.h"

#include <arrow/buffer.h>
#include <arrow/filesystem/s3fs.h>
#include <arrow/io/interfaces.h>
#include <arrow/util/future.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "skein/base/error.h"
#include "skein/objects/s3_store.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

constexpr size_t kPartBytes = size_t{8} << 20;
constexpr size_t kPartsAtOnce = 8;

std::span<uint8_t> raw(std::span<std::byte> bytes) {
  return {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()};
}

arrow::fs::FileInfo info_of(const ObjectUrl& url, int64_t num_bytes) {
  arrow::fs::FileInfo info(url.path(), arrow::fs::FileType::File);
  info.set_size(num_bytes);
  return info;
}

}  // namespace

ObjectRanges::ObjectRanges(const ObjectUrl& url)
    : url_(url.text()),
      file_(open_object(url)),
      num_bytes_(value_or_fail(file_->GetSize(), url_)) {}

ObjectRanges::ObjectRanges(const ObjectUrl& url, int64_t num_bytes)
    : url_(url.text()),
      file_(value_or_fail(store_of(url)->OpenInputFile(info_of(url, num_bytes)), url_)),
      num_bytes_(num_bytes) {}

void ObjectRanges::read(int64_t begin, std::span<std::byte> target) const {
  if (begin < 0 || begin + static_cast<int64_t>(target.size()) > num_bytes_) {
    fail(ErrorCode::kCorrupt, "{} has {} bytes, expected more: bytes {} to {} are wanted", url_,
         num_bytes_, begin, begin + static_cast<int64_t>(target.size()));
  }
  if (target.size() <= kPartBytes) return read_whole(*file_, begin, raw(target), url_);
  struct RequestedPart {
    int64_t begin;
    std::span<std::byte> target;
    arrow::Future<std::shared_ptr<arrow::Buffer>> bytes;
  };
  std::deque<RequestedPart> parts;
  for (size_t asked = 0; asked < target.size() || !parts.empty();) {
    while (parts.size() < kPartsAtOnce && asked < target.size()) {
      const auto part = target.subspan(asked, std::min(kPartBytes, target.size() - asked));
      const int64_t at = begin + static_cast<int64_t>(asked);
      const auto count = static_cast<int64_t>(part.size());
      parts.push_back({at, part, file_->ReadAsync(file_->io_context(), at, count)});
      asked += part.size();
    }
    const RequestedPart& part = parts.front();
    const auto bytes = value_or_fail(part.bytes.result(), url_);
    if (bytes->size() == static_cast<int64_t>(part.target.size())) {
      std::memcpy(part.target.data(), bytes->data(), part.target.size());
    } else {
      count_repeated_request();
      read_whole(*file_, part.begin, raw(part.target), url_);
    }
    parts.pop_front();
  }
}

}  // namespace skein
