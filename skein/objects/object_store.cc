#include "skein/objects/object_store.h"

#include <arrow/buffer.h>
#include <arrow/filesystem/s3fs.h>
#include <arrow/io/interfaces.h>
#include <arrow/util/future.h>
#include <arrow/util/key_value_metadata.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "skein/base/error.h"
#include "skein/objects/s3_store.h"

namespace skein {
namespace {

// Two readers of four parts each keep the eight threads of Arrow's input busy.
constexpr int64_t kPartBytes = int64_t{8} << 20;
constexpr size_t kPartsAhead = 4;

ObjectInfo object_info(const arrow::fs::FileInfo& info, bool named) {
  return {"s3://" + info.path(), info.size(), info.mtime().time_since_epoch().count(), named};
}

// What a store says that an object holds; empty if it does not say.
std::string tag_of(arrow::io::RandomAccessFile& file, const std::string& url) {
  const auto metadata = value_or_fail(file.ReadMetadata(), url);
  return metadata == nullptr ? "" : metadata->Get("ETag").ValueOr("");
}

}  // namespace

std::vector<ObjectInfo> list_objects(const ObjectUrl& url) {
  const auto store = store_of(url);
  const arrow::fs::FileInfo found = value_or_fail(store->GetFileInfo(url.path()), url.text());
  if (found.type() == arrow::fs::FileType::NotFound) {
    fail(ErrorCode::kNotFound, "{}: no such object, and none under it", url.text());
  }
  if (found.IsFile()) return {object_info(found, true)};
  arrow::fs::FileSelector under;
  under.base_dir = url.path();
  under.recursive = true;
  std::vector<ObjectInfo> objects;
  for (const auto& info : value_or_fail(store->GetFileInfo(under), url.text())) {
    if (info.IsFile()) objects.push_back(object_info(info, false));
  }
  std::sort(objects.begin(), objects.end(),
            [](const ObjectInfo& a, const ObjectInfo& b) { return a.url < b.url; });
  return objects;
}

bool object_exists(const ObjectUrl& url) {
  const auto found = value_or_fail(store_of(url)->GetFileInfo(url.path()), url.text());
  return found.type() != arrow::fs::FileType::NotFound;
}

void require_store(const std::string& url, const std::string& setting) {
  try {
    const ObjectUrl place = parse_object_url(url);
    if (!object_exists({place.bucket, ""})) {
      fail(ErrorCode::kNotFound, "{}: there is no bucket \"{}\"", url, place.bucket);
    }
  } catch (const Error& error) {
    fail(ErrorCode::kUsage, "{}: {}", setting, error.what());
  }
}

std::shared_ptr<arrow::io::RandomAccessFile> open_object(const ObjectUrl& url) {
  return value_or_fail(store_of(url)->OpenInputFile(url.path()), url.text());
}

class ObjectReader::Parts {
 public:
  explicit Parts(const ObjectUrl& url)
      : url_(url),
        file_(open_object(url)),
        num_bytes_(value_or_fail(file_->GetSize(), url.text())),
        tag_(tag_of(*file_, url.text())) {}

  size_t read(std::span<char> out) {
    if (part_left_.empty() && !next_part()) return 0;
    const size_t count = std::min(out.size(), part_left_.size());
    std::memcpy(out.data(), part_left_.data(), count);
    part_left_.remove_prefix(count);
    return count;
  }

 private:
  struct Part {
    int64_t begin = 0, num_bytes = 0;
    arrow::Future<std::shared_ptr<arrow::Buffer>> bytes;
  };

  bool next_part() {
    while (ahead_.size() < kPartsAhead && asked_ < num_bytes_) {
      const int64_t count = std::min(kPartBytes, num_bytes_ - asked_);
      ahead_.push_back({asked_, count, file_->ReadAsync(file_->io_context(), asked_, count)});
      asked_ += count;
    }
    if (ahead_.empty()) {
      check_same();
      return false;
    }
    const Part part = std::move(ahead_.front());
    ahead_.pop_front();
    part_ = whole(part);
    part_left_ = {reinterpret_cast<const char*>(part_->data()), static_cast<size_t>(part_->size())};
    return true;
  }

  std::shared_ptr<arrow::Buffer> whole(const Part& part) {
    auto bytes = value_or_fail(part.bytes.result(), url_.text());
    if (bytes->size() == part.num_bytes) return bytes;
    count_repeated_request();
    std::shared_ptr<arrow::Buffer> again =
        value_or_fail(arrow::AllocateBuffer(part.num_bytes), url_.text());
    read_whole(*file_, part.begin, {again->mutable_data(), static_cast<size_t>(part.num_bytes)},
               url_.text());
    return again;
  }

  void check_same() {
    if (is_checked_ || num_bytes_ == 0) return;
    is_checked_ = true;
    const auto now = open_object(url_);
    if (tag_of(*now, url_.text()) == tag_) return;
    fail(ErrorCode::kCorrupt, "{}: replaced while it was read: start again", url_.text());
  }

  ObjectUrl url_;
  std::shared_ptr<arrow::io::RandomAccessFile> file_;
  int64_t num_bytes_;
  std::string tag_;
  int64_t asked_ = 0;
  bool is_checked_ = false;
  std::deque<Part> ahead_;
  std::shared_ptr<arrow::Buffer> part_;
  std::string_view part_left_;
};

ObjectReader::ObjectReader(const ObjectUrl& url) : parts_(std::make_unique<Parts>(url)) {}
ObjectReader::~ObjectReader() = default;
size_t ObjectReader::read(std::span<char> out) { return parts_->read(out); }

}  // namespace skein
