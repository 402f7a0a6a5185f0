#include "skein/checkpoint/format/file_ops.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/shared/partials.h"
#include "skein/objects/object_writer.h"

namespace skein {
namespace {

// `announce` as FileOps has it.
using Announce = std::function<void(std::string_view)>;

class LocalOutput : public OutputFile {
 public:
  LocalOutput(const fs::path& path, const FileOps& ops)
      : path_(path), ops_(ops), file_(ops.create(path)) {}
  void write(std::span<const std::byte> bytes) override { ops_.write(file_.get(), bytes, path_); }
  void finish() override {
    ops_.sync(file_.get(), path_);
    file_.reset();
  }

 private:
  fs::path path_;
  const FileOps& ops_;
  FileDescriptor file_;
};

class ObjectOutput : public OutputFile {
 public:
  ObjectOutput(const fs::path& url, Announce announce)
      : announce_(std::move(announce)), object_(parse_object_url(url.native())) {}
  void write(std::span<const std::byte> bytes) override {
    announce_("write");
    object_.write(bytes);
  }
  void finish() override {
    announce_("finish");
    object_.finish();
  }

 private:
  Announce announce_;
  ObjectWriter object_;
};

[[noreturn]] void fail_io(std::string_view verb, const fs::path& path, int error_number) {
  fail(errno_code(error_number), "cannot {} {}: {}", verb, path.string(), errno_text(error_number));
}

}  // namespace

FileDescriptor FileOps::create(const fs::path& path) const {
  announce("create", path);
  return create_new(path);
}

std::unique_ptr<OutputFile> FileOps::open_output(const fs::path& path) const {
  if (!is_object_url(path)) return std::make_unique<LocalOutput>(path, *this);
  announce("create", path);
  return std::make_unique<ObjectOutput>(
      path, [this, path](std::string_view operation) { announce(operation, path); });
}

void FileOps::put_object(const fs::path& url, std::string_view bytes) const {
  announce("put", url);
  skein::put_object(parse_object_url(url.native()), bytes);
}

void FileOps::write(int fd, std::span<const std::byte> bytes, const fs::path& path) const {
  announce("write", path);
  write_all(fd, bytes, path);
}

void FileOps::sync(int fd, const fs::path& path) const {
  announce("sync", path);
  fsync_file(fd, path);
}

void FileOps::sync_folder(const fs::path& folder) const {
  announce("sync_folder", folder);
  fsync_folder(folder);
}

void FileOps::make_folder(const fs::path& folder) const {
  announce("make_folder", folder);
  make_folders(folder);
}

void FileOps::rename(const fs::path& from, const fs::path& to) const {
  announce("rename", from);
  if (retry_interrupted([&] { return ::rename(from.c_str(), to.c_str()); }) != 0) {
    const int error_number = errno;
    fail(errno_code(error_number), "cannot rename {} to {}: {}", from.string(), to.string(),
         errno_text(error_number));
  }
}

bool FileOps::exchange(const fs::path& a, const fs::path& b) const {
  try {
    announce("exchange", a);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnsupported) return false;
    throw;
  }
  return exchange_names(a, b);
}

void FileOps::remove_tree(const fs::path& path) const {
  if (is_object_url(path)) {
    announce("remove", path);
    const ObjectUrl url = parse_object_url(path.native());
    remove_object(url);
    return remove_objects_under(url);
  }
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) return;
  if (error) fail_io("stat", path, error.value());
  if (fs::is_directory(status)) {
    for (fs::directory_iterator entry(path, error), end; !error && entry != end;
         entry.increment(error)) {
      remove_tree(entry->path());
    }
    if (error) fail_io("list", path, error.value());
  }
  announce("remove", path);
  do {
    fs::remove(path, error);
  } while (error == std::errc::interrupted);
  if (error) fail_io("remove", path, error.value());
}

fs::path parent_folder(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace skein
