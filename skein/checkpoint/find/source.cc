#include "skein/checkpoint/find/source.h"

#include <map>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/threads/mutex.h"
#include "skein/checkpoint/find/hold.h"

namespace skein {
namespace {

class FolderSource : public CheckpointSource {
 public:
  FolderSource(std::shared_ptr<const CheckpointHold> hold, fs::path path)
      : hold_(std::move(hold)), path_(std::move(path)) {}

  Bytes bytes(const ManifestFile& file, int64_t begin, int64_t count) override {
    return {mapped(file).bytes().subspan(begin, count), {}};
  }
  void forget(const ManifestFile& file, std::span<const std::byte> bytes) override {
    mapped(file).forget(bytes);
  }

 private:
  const MappedFile& mapped(const ManifestFile& expected) {
    const Lock lock(mutex_);
    const auto known = files_.find(expected.name);
    if (known != files_.end()) return known->second;
    const fs::path path = path_ / expected.name;
    MappedFile file(hold_->open(expected.name), path);
    if (static_cast<int64_t>(file.bytes().size()) != expected.file_bytes) {
      fail(ErrorCode::kCorrupt, "{} has {} bytes, expected {}", path.string(), file.bytes().size(),
           expected.file_bytes);
    }
    if (xxh3_128_hex(file.bytes().first(expected.header_bytes)) != expected.header_xxh3_128) {
      fail(ErrorCode::kCorrupt, "{}: its header does not match its checksum", path.string());
    }
    return files_.emplace(expected.name, std::move(file)).first->second;
  }

  const std::shared_ptr<const CheckpointHold> hold_;
  const fs::path path_;
  Mutex mutex_;
  std::map<std::string, MappedFile> files_ SKEIN_GUARDED_BY(mutex_);
};

class ObjectsSource : public CheckpointSource {
 public:
  explicit ObjectsSource(fs::path path) : path_(std::move(path)) {}

  Bytes bytes(const ManifestFile& file, int64_t begin, int64_t count) override {
    Bytes read;
    read.own.resize(static_cast<size_t>(count));
    opened(file).read(begin, read.own);
    read.bytes = read.own;
    return read;
  }
  void forget(const ManifestFile&, std::span<const std::byte>) override {}

 private:
  const StoredFile& opened(const ManifestFile& expected) {
    const Lock lock(mutex_);
    const auto known = files_.find(expected.name);
    if (known != files_.end()) return known->second;
    StoredFile file(path_ / expected.name, expected.file_bytes);
    const std::string header = file.text(expected.header_bytes);
    if (xxh3_128_hex(std::as_bytes(std::span(header))) != expected.header_xxh3_128) {
      fail(ErrorCode::kCorrupt, "{}: its header does not match its checksum",
           (path_ / expected.name).string());
    }
    return files_.emplace(expected.name, std::move(file)).first->second;
  }

  const fs::path path_;
  Mutex mutex_;
  std::map<std::string, StoredFile> files_ SKEIN_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<CheckpointSource> objects_source(const fs::path& path) {
  return std::make_unique<ObjectsSource>(path);
}

std::unique_ptr<CheckpointSource> folder_source(std::shared_ptr<const CheckpointHold> hold,
                                                const fs::path& path) {
  return std::make_unique<FolderSource>(std::move(hold), path);
}

}  // namespace skein
