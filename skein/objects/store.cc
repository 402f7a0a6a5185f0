#include "skein/objects/store.h"

#include <arrow/buffer.h>
#include <arrow/filesystem/s3fs.h>
#include <arrow/io/interfaces.h>
#include <arrow/util/future.h>
#include <arrow/util/key_value_metadata.h>
#include <fcntl.h>
#include <unistd.h>

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
    if (!object_exists({url.bucket, ""})) {
      fail(ErrorCode::kNotFound, "{}: there is no bucket \"{}\"", url.text(), url.bucket);
    }
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

std::vector<StoredObject> objects_in(const fs::path& folder) {
  const ObjectUrl url = parse_object_url(folder.native());
  const std::string before = url.text() + "/";
  std::vector<StoredObject> found;
  try {
    for (const ObjectInfo& object : list_objects(url)) {
      if (object.url.starts_with(before)) {
        found.push_back({object.url.substr(before.size()), object.num_bytes});
      }
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotFound) throw;
  }
  return found;
}

bool has_object(const ObjectUrl& url) {
  return value_or_fail(store_of(url)->GetFileInfo(url.path()), url.text()).IsFile();
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

namespace {

// An object as it was when it was opened.
class OpenedObject {
 public:
  explicit OpenedObject(const ObjectUrl& url)
      : url_(url),
        file_(open_object(url)),
        num_bytes_(value_or_fail(file_->GetSize(), url.text())),
        tag_(tag_of(*file_, url.text())) {}

  const ObjectUrl& url() const { return url_; }
  int64_t num_bytes() const { return num_bytes_; }
  auto read_async(int64_t begin, int64_t num_bytes) {
    return file_->ReadAsync(file_->io_context(), begin, num_bytes);
  }

  // Bytes that came before are of the object that was opened, if this returns.
  void check_same() {
    const auto now = open_object(url_);
    if (tag_of(*now, url_.text()) == tag_) return;
    fail(ErrorCode::kCorrupt, "{}: replaced while it was read: start again", url_.text());
  }

  // What `request` returns. Of an object that was removed meanwhile AWS's library says only that
  // its answer has another length: asking for the object itself says what is wrong.
  template <typename Request>
  auto explained(const Request& request) {
    try {
      return request();
    } catch (const Error&) {
      check_same();
      throw;
    }
  }

  void read(int64_t begin, std::span<char> out) {
    explained([&] {
      read_whole(*file_, begin, {reinterpret_cast<uint8_t*>(out.data()), out.size()}, url_.text());
      return true;
    });
  }

 private:
  const ObjectUrl url_;
  const std::shared_ptr<arrow::io::RandomAccessFile> file_;
  const int64_t num_bytes_;
  const std::string tag_;
};

class CheckedRanges : public RangeReader {
 public:
  explicit CheckedRanges(const ObjectUrl& url) : object_(url) {}
  std::string name() const override { return object_.url().text(); }
  int64_t num_bytes() const override { return object_.num_bytes(); }
  void read(int64_t begin, std::span<char> out) override {
    object_.read(begin, out);
    object_.check_same();
  }

 private:
  OpenedObject object_;
};

}  // namespace

std::unique_ptr<RangeReader> open_ranges(const ObjectUrl& url) {
  return std::make_unique<CheckedRanges>(url);
}

class ObjectReader::Parts {
 public:
  explicit Parts(const ObjectUrl& url) : object_(url) {}

  size_t read(std::span<char> out) {
    if (part_left_.empty() && !next_part()) return 0;
    const size_t count = std::min(out.size(), part_left_.size());
    std::memcpy(out.data(), part_left_.data(), count);
    part_left_.remove_prefix(count);
    return count;
  }

 private:
  struct PartAhead {
    int64_t begin = 0, num_bytes = 0;
    arrow::Future<std::shared_ptr<arrow::Buffer>> bytes;
  };

  bool next_part() {
    while (ahead_.size() < kPartsAhead && asked_ < object_.num_bytes()) {
      const int64_t count = std::min(kPartBytes, object_.num_bytes() - asked_);
      ahead_.push_back({asked_, count, object_.read_async(asked_, count)});
      asked_ += count;
    }
    if (ahead_.empty()) {
      if (!is_checked_ && asked_ > 0) object_.check_same();
      is_checked_ = true;
      return false;
    }
    const PartAhead part = std::move(ahead_.front());
    ahead_.pop_front();
    part_ = whole(part);
    part_left_ = {reinterpret_cast<const char*>(part_->data()), static_cast<size_t>(part_->size())};
    return true;
  }

  std::shared_ptr<arrow::Buffer> whole(const PartAhead& part) {
    auto bytes =
        object_.explained([&] { return value_or_fail(part.bytes.result(), object_.url().text()); });
    if (bytes->size() == part.num_bytes) return bytes;
    count_repeated_request();
    std::string again(static_cast<size_t>(part.num_bytes), '\0');
    object_.read(part.begin, again);
    return arrow::Buffer::FromString(std::move(again));
  }

  OpenedObject object_;
  int64_t asked_ = 0;
  bool is_checked_ = false;
  std::deque<PartAhead> ahead_;
  std::shared_ptr<arrow::Buffer> part_;
  std::string_view part_left_;
};

ObjectReader::ObjectReader(const ObjectUrl& url) : parts_(std::make_unique<Parts>(url)) {}
ObjectReader::~ObjectReader() = default;
size_t ObjectReader::read(std::span<char> out) { return parts_->read(out); }

bool is_file_or_object(const fs::path& path) {
  return is_object_url(path) ? has_object(parse_object_url(path.native()))
                             : fs::is_regular_file(path);
}

std::string read_file_or_object(const fs::path& path, int64_t max_bytes) {
  if (!is_object_url(path)) return read_file(path, max_bytes);
  const auto object = open_ranges(parse_object_url(path.native()));
  if (object->num_bytes() > max_bytes) {
    fail(ErrorCode::kInvalid, "{}: {} bytes: expected at most {}", path.string(),
         object->num_bytes(), max_bytes);
  }
  std::string bytes(static_cast<size_t>(object->num_bytes()), '\0');
  if (!bytes.empty()) object->read(0, bytes);
  return bytes;
}

MappedFile copy_object(const ObjectUrl& url, const fs::path& folder,
                       const std::function<void(int64_t)>& on_read) {
  std::string name = (folder.empty() ? fs::temp_directory_path() : folder) / "skein_object_XXXXXX";
  const FileDescriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (file.get() < 0) {
    fail(errno_code(errno), "cannot create {} for {}: {}", name, url.text(), errno_text(errno));
  }
  ::unlink(name.c_str());
  ObjectReader object(url);
  std::string buffer(size_t{1} << 20, '\0');
  while (const size_t count = object.read(buffer)) {
    write_all(file.get(), std::as_bytes(std::span(buffer.data(), count)), url.text());
    if (on_read) on_read(static_cast<int64_t>(count));
  }
  return MappedFile(file, url.text());
}

}  // namespace skein
