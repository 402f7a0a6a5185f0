#include "skein/objects/object_store.h"

#include <arrow/buffer.h>
#include <arrow/filesystem/s3fs.h>
#include <arrow/io/interfaces.h>
#include <arrow/util/future.h>
#include <arrow/util/key_value_metadata.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr int64_t kMaxRepeats = 10;
constexpr int64_t kFirstPauseMs = 200, kLongestPauseMs = 20'000;
constexpr double kConnectSeconds = 10, kSilentSeconds = 20;
// Two readers of four parts each keep the eight threads of Arrow's input busy.
constexpr int64_t kPartBytes = int64_t{8} << 20;
constexpr size_t kPartsAhead = 4;

std::atomic<int64_t> num_repeated{0};

// Full jitter: readers that were refused together do not come back together.
int64_t pause_ms(int64_t num_repeats) {
  thread_local std::minstd_rand random(std::random_device{}());
  const int64_t longest =
      std::min(kLongestPauseMs, kFirstPauseMs << std::min<int64_t>(num_repeats, 20));
  return std::uniform_int_distribution<int64_t>(0, longest)(random);
}

class Repeats : public arrow::fs::S3RetryStrategy {
 public:
  bool ShouldRetry(const AWSErrorDetail& error, int64_t num_repeats) override {
    const bool again = error.should_retry && num_repeats < kMaxRepeats;
    if (again) ++num_repeated;
    return again;
  }
  int64_t CalculateDelayBeforeNextRetry(const AWSErrorDetail&, int64_t num_repeats) override {
    return pause_ms(num_repeats);
  }
};

std::string variable(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  }
  return "";
}

std::string endpoint() { return variable({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}); }

[[noreturn]] void fail_object(const std::string& url, const std::string& found) {
  const auto says = [&](std::initializer_list<const char*> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](const char* word) { return found.find(word) != std::string::npos; });
  };
  if (says({"NO_SUCH_BUCKET", "NO_SUCH_KEY", "RESOURCE_NOT_FOUND", "Path does not exist"})) {
    fail(ErrorCode::kNotFound, "{}: no such object or bucket ({})", url, found);
  }
  if (says({"ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE", "INVALID_CLIENT_TOKEN_ID",
            "EXPIRED_TOKEN", "HTTP status 403", "HTTP status 401"})) {
    fail(ErrorCode::kInvalid,
         "{}: refused ({}): expected credentials that may read it, in AWS_ACCESS_KEY_ID and "
         "AWS_SECRET_ACCESS_KEY, ~/.aws/credentials or the role of this machine",
         url, found);
  }
  fail(ErrorCode::kIo, "{}: cannot be read, after {} repeated requests: {} (store: {})", url,
       num_repeated.load(), found,
       endpoint().empty() ? "AWS's own; AWS_ENDPOINT_URL names another" : endpoint());
}

void check(const arrow::Status& status, const std::string& url) {
  if (!status.ok()) fail_object(url, status.message());
}

template <typename T>
T value_or_fail(arrow::Result<T> result, const std::string& url) {
  check(result.status(), url);
  return std::move(result).ValueUnsafe();
}

// AWS's library must end before what it uses does. Arrow keeps a list of clients that ends at exit,
// too, and begins with the first client: so one is made before the end is arranged.
void start_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    arrow::fs::S3GlobalOptions options = arrow::fs::S3GlobalOptions::Defaults();
    options.log_level = arrow::fs::S3LogLevel::Off;  // each refusal would be a line
    if (const arrow::Status status = arrow::fs::InitializeS3(options); !status.ok()) {
      fail(ErrorCode::kInternal, "S3: {}", status.message());
    }
    arrow::fs::S3Options options_of_none = arrow::fs::S3Options::Anonymous();
    options_of_none.region = "us-east-1";
    if (const auto made = arrow::fs::S3FileSystem::Make(options_of_none); !made.ok()) {
      fail(ErrorCode::kInternal, "S3: {}", made.status().message());
    }
    std::atexit([] { (void)arrow::fs::EnsureS3Finalized(); });
  });
}

arrow::fs::S3Options options_for(const ObjectUrl& url) {
  arrow::fs::S3Options options = arrow::fs::S3Options::Defaults();
  options.region = variable({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (std::string store = endpoint(); !store.empty()) {
    if (const size_t colon = store.find("://"); colon != std::string::npos) {
      options.scheme = store.substr(0, colon);
      store.erase(0, colon + 3);
    }
    while (store.ends_with('/')) store.pop_back();
    options.endpoint_override = store;
    if (options.region.empty()) options.region = "us-east-1";  // its name is part of signatures
  } else if (options.region.empty()) {
    options.region = value_or_fail(arrow::fs::ResolveS3BucketRegion(url.bucket), url.text());
  }
  options.connect_timeout = kConnectSeconds;
  options.request_timeout = kSilentSeconds;
  options.retry_strategy = std::make_shared<Repeats>();
  return options;
}

// One a bucket: buckets lie in regions.
std::shared_ptr<arrow::fs::S3FileSystem> store_of(const ObjectUrl& url) {
  static std::mutex mutex;
  // Never destroyed: AWS's library ends before static objects do.
  static auto& stores = *new std::map<std::string, std::shared_ptr<arrow::fs::S3FileSystem>>();
  const std::lock_guard lock(mutex);
  auto& store = stores[url.bucket];
  if (store == nullptr) {
    start_library();
    store = value_or_fail(arrow::fs::S3FileSystem::Make(options_for(url)), url.text());
  }
  return store;
}

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

bool has_object(const ObjectUrl& url) {
  return value_or_fail(store_of(url)->GetFileInfo(url.path()), url.text()).IsFile();
}

std::shared_ptr<arrow::io::RandomAccessFile> open_object(const ObjectUrl& url) {
  return value_or_fail(store_of(url)->OpenInputFile(url.path()), url.text());
}

int64_t repeated_requests() { return num_repeated; }

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

  // Arrow hands on what came of a body that ends early.
  void read(int64_t begin, std::span<char> out) {
    const auto wanted = static_cast<int64_t>(out.size());
    for (int64_t repeats = 0;; ++repeats) {
      const arrow::Result<int64_t> came = file_->ReadAt(begin, wanted, out.data());
      if (came.ok() && *came == wanted) return;
      if (!came.ok()) check_same();  // one that is gone, or may not be read, is not asked for again
      if (repeats == kMaxRepeats) {
        check(came.status(), url_.text());
        fail_object(url_.text(),
                    fmt::format("{} bytes came instead of {}, from byte {}", *came, wanted, begin));
      }
      ++num_repeated;
      std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms(repeats)));
    }
  }

 private:
  const ObjectUrl url_;
  const std::shared_ptr<arrow::io::RandomAccessFile> file_;
  const int64_t num_bytes_;
  const std::string tag_;
};

class ObjectRanges : public RangeReader {
 public:
  explicit ObjectRanges(const ObjectUrl& url) : object_(url) {}
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
  return std::make_unique<ObjectRanges>(url);
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
  struct Part {
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
    const Part part = std::move(ahead_.front());
    ahead_.pop_front();
    part_ = whole(part);
    part_left_ = {reinterpret_cast<const char*>(part_->data()), static_cast<size_t>(part_->size())};
    return true;
  }

  std::shared_ptr<arrow::Buffer> whole(const Part& part) {
    const arrow::Result<std::shared_ptr<arrow::Buffer>> came = part.bytes.result();
    if (came.ok() && (*came)->size() == part.num_bytes) return *came;
    ++num_repeated;
    std::string bytes(static_cast<size_t>(part.num_bytes), '\0');
    object_.read(part.begin, bytes);
    return arrow::Buffer::FromString(std::move(bytes));
  }

  OpenedObject object_;
  int64_t asked_ = 0;
  bool is_checked_ = false;
  std::deque<Part> ahead_;
  std::shared_ptr<arrow::Buffer> part_;
  std::string_view part_left_;
};

ObjectReader::ObjectReader(const ObjectUrl& url) : parts_(std::make_unique<Parts>(url)) {}
ObjectReader::~ObjectReader() = default;
size_t ObjectReader::read(std::span<char> out) { return parts_->read(out); }

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
