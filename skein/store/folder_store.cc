#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "skein/base/error.h"
#include "skein/base/log.h"
#include "skein/base/mutex.h"
#include "skein/store/key_value_store.h"

namespace skein {
namespace {

constexpr std::string_view kPartial = ".partial";

std::vector<std::string> names_in(const fs::path& folder, std::string_view prefix) {
  std::vector<std::string> names;
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    std::string name = entry->path().filename().string();
    if (name.starts_with(prefix) && !name.ends_with(kPartial)) names.push_back(std::move(name));
  }
  if (problem) fail(ErrorCode::kIo, "cannot list {}: {}", folder.string(), problem.message());
  std::sort(names.begin(), names.end());
  return names;
}

// Opens for reading; -1 if there is no such file. The folder is opened first: over NFS this makes
// the client ask the server again about a name that it recently found missing.
FileDescriptor open_now(const fs::path& path) {
  const FileDescriptor folder(
      ::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return FileDescriptor(::openat(folder.get(), path.filename().c_str(), O_RDONLY | O_CLOEXEC));
}

class FolderStore : public KeyValueStore {
 public:
  explicit FolderStore(const fs::path& folder) : folder_(folder), text_(folder.string()) {
    make_folders(folder_);
  }

  const std::string& text() const override { return text_; }

  std::optional<std::string> read(const std::string& name) override {
    const fs::path path = folder_ / name;
    if (open_now(path).get() < 0) return std::nullopt;
    try {
      return read_file(path, kMaxValueBytes);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kNotFound) return std::nullopt;  // it was removed meanwhile
      throw;
    }
  }

  std::vector<std::string> names(const std::string& prefix) override {
    return names_in(folder_, prefix);
  }

  std::map<std::string, std::string> entries(const std::string& prefix,
                                             const std::set<std::string>& known) override {
    std::map<std::string, std::string> entries;
    for (const std::string& name : names(prefix)) {
      if (known.contains(name)) continue;
      try {
        if (std::optional<std::string> value = read(name)) entries[name] = *std::move(value);
      } catch (const Error& error) {
        const Lock lock(mutex_);
        if (told_.insert(name).second) {
          log::warn("passed over in the rendezvous folder: {}", error.what());
        }
      }
    }
    return entries;
  }

  // Without fsync: after a crash of the file server its writer writes another one.
  void write(const std::string& name, const std::string& value) override {
    const fs::path path = folder_ / name, partial = unique_partial(path);
    {
      const FileDescriptor file(retry_interrupted(
          [&] { return ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); }));
      if (file.get() < 0 && errno == ENOENT) {
        fail(ErrorCode::kNotFound,
             "the folder {} is there no more: mount its file system again, or, where it was "
             "removed, stop `skein train` on every machine, then start it again on each",
             text_);
      }
      if (file.get() < 0) {
        fail(errno_code(errno), "cannot create {}: {}", partial.string(), errno_text(errno));
      }
      const std::span bytes = std::as_bytes(std::span(value));
      const auto written = try_run([&] { return write_all(file.get(), bytes, partial), true; });
      if (!written.ok()) {
        ::unlink(partial.c_str());
        throw written.error();
      }
    }
    if (retry_interrupted([&] { return ::rename(partial.c_str(), path.c_str()); }) != 0) {
      fail(errno_code(errno), "cannot replace {}: {}", path.string(), errno_text(errno));
    }
  }

  bool create(const std::string& name, const std::string& value) override {
    const fs::path path = folder_ / name, partial = unique_partial(path);
    write_file_atomic(partial, value);
    const auto made = try_run([&] { return name_once(partial, path); });
    ::unlink(partial.c_str());
    if (!made.ok()) throw made.error();
    if (Result<bool>(made).value()) fsync_folder(folder_);
    return Result<bool>(made).value();
  }

  void remove(const std::string& name) override {
    std::error_code ignored;
    fs::remove(folder_ / name, ignored);
  }

  void remove_all() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

 private:
  const fs::path folder_;
  const std::string text_;
  Mutex mutex_;
  std::set<std::string> told_ SKEIN_GUARDED_BY(mutex_);  // files that cannot be read
};

class FolderRoot : public StoreRoot {
 public:
  explicit FolderRoot(const fs::path& folder) : folder_(folder), text_(folder.string()) {}

  const std::string& text() const override { return text_; }
  std::vector<std::string> places() override {
    make_folders(folder_);
    return names_in(folder_, "");
  }
  std::unique_ptr<KeyValueStore> open(const std::string& place) override {
    return folder_store(folder_ / place);
  }

 private:
  const fs::path folder_;
  const std::string text_;
};

}  // namespace

std::unique_ptr<KeyValueStore> folder_store(const fs::path& folder) {
  return std::make_unique<FolderStore>(folder);
}

std::unique_ptr<StoreRoot> folder_root(const fs::path& folder) {
  return std::make_unique<FolderRoot>(folder);
}

}  // namespace skein
