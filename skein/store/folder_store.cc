#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
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

// Nothing where there is no such file; whatever else keeps it from being read is an error. The
// folder is opened first: over NFS this makes the client ask the server again about a name that it
// recently found missing.
std::optional<std::string> read_now(const fs::path& path) {
  const int folder = ::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0 && !is_absence(errno)) {
    fail(ErrorCode::kIo, "cannot open {}: {}", path.parent_path().string(), errno_text(errno));
  }
  const FileDescriptor opened(folder);
  return folder < 0 ? std::nullopt : read_file_if_there(path, kMaxValueBytes);
}

class FolderStore : public KeyValueStore {
 public:
  explicit FolderStore(const fs::path& folder) : folder_(folder), text_(folder.string()) {
    make_folders(folder_);
  }

  const std::string& text() const override { return text_; }

  std::optional<std::string> read(const std::string& name) override {
    constexpr int kTries = 3;
    for (int tries = 1;; ++tries) {
      try {
        return read_now(folder_ / name);
      } catch (const Error& error) {  // ESTALE: it was replaced since it was opened, over NFS
        if (error.code() != ErrorCode::kIo || tries == kTries) throw;
      }
    }
  }

  std::vector<std::string> names(const std::string& prefix) override {
    return names_in(folder_, prefix);
  }

  void visit(const std::string& prefix, const std::set<std::string>& known,
             const Visit& visit) override {
    for (const std::string& name : names(prefix)) {
      if (known.contains(name)) continue;
      const auto value = try_run([&] { return read(name); });
      if (!value.ok()) {
        visit(name, value.error());
      } else if (std::optional<std::string> text = Result(value).value()) {  // else it was removed
        visit(name, *std::move(text));
      }
    }
  }

  // Without fsync: after a crash of the file server its writer writes another one.
  void write(const std::string& name, const std::string& value) override {
    const fs::path path = folder_ / name, partial = unique_partial(path);
    const auto written = try_run([&] {
      FileDescriptor file = create_record(partial);
      write_all(file.get(), std::as_bytes(std::span(value)), partial);
      close_written(std::move(file), partial);
      return true;
    });
    if (!written.ok()) {
      ::unlink(partial.c_str());
      throw written.error();
    }
    if (retry_interrupted([&] { return ::rename(partial.c_str(), path.c_str()); }) != 0) {
      fail(errno_code(errno), "cannot replace {}: {}", path.string(), errno_text(errno));
    }
  }

  bool create(const std::string& name, const std::string& value) override {
    const fs::path path = folder_ / name, partial = unique_partial(path);
    const auto made = try_run([&] {
      const FileDescriptor file = create_record(partial);
      write_all(file.get(), std::as_bytes(std::span(value)), partial);
      fsync_file(file.get(), partial);
      return name_once(partial, path);
    });
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
  // Records are for this run's own processes, whoever else may read the folder.
  FileDescriptor create_record(const fs::path& partial) const {
    try {
      return create_new(partial, 0600);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kNotFound) throw;
      fail(ErrorCode::kNotFound,
           "the folder {} is there no more: mount its file system again, or, where it was "
           "removed, stop `skein train` on every machine, then start it again on each",
           text_);
    }
  }

  const fs::path folder_;
  const std::string text_;
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
