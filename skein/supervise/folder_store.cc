#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/log.h"
#include "skein/supervise/store.h"

namespace skein {
namespace {

constexpr int64_t kMaxRecordBytes = 16 << 20;  // a generation of 100,000 hosts
constexpr std::string_view kHost = "host-", kGeneration = "generation-", kJson = ".json";

std::string file_of(const std::string& host) {
  return std::string(kHost) + host + std::string(kJson);
}

fs::path path_of(const fs::path& folder, int64_t number) {
  return folder / fmt::format("{}{:08}{}", kGeneration, number, kJson);
}

// 0: this is not the name of a generation.
int64_t number_of(const std::string& name) {
  if (!name.starts_with(kGeneration)) return 0;
  const std::string digits =
      name.substr(kGeneration.size(), name.size() - kGeneration.size() - kJson.size());
  const bool is_number =
      digits.size() == 8 && digits.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? std::stoll(digits) : 0;
}

// Of the files that are complete: those that are being written end otherwise.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(kJson)) names.push_back(name);
  }
  if (problem) fail(ErrorCode::kIo, "cannot list {}: {}", folder.string(), problem.message());
  return names;
}

std::optional<GenerationRecord> newest_of(const fs::path& folder,
                                          const std::vector<std::string>& names) {
  int64_t newest = 0;
  for (const std::string& name : names) newest = std::max(newest, number_of(name));
  if (newest == 0) return std::nullopt;
  const fs::path path = path_of(folder, newest);
  GenerationRecord generation = generation_from_json(
      parse_json(read_file(path, kMaxRecordBytes), path.string()), path.string());
  if (generation.number != newest) {
    fail(ErrorCode::kInvalid, "{}: number is {}, expected that of its name", path.string(),
         generation.number);
  }
  return generation;
}

class FolderStore : public RendezvousStore {
 public:
  explicit FolderStore(fs::path folder) : folder_(std::move(folder)) {
    std::error_code problem;
    fs::create_directories(folder_, problem);
    if (problem) {
      fail(ErrorCode::kIo, "cannot create the rendezvous folder {}: {}", folder_.string(),
           problem.message());
    }
  }

  StoreView exchange(const HostRecord& record) override {
    replace(folder_ / file_of(record.host), host_to_json(record).dump());
    // From now on this record speaks for the one that it replaces.
    if (!record.succeeds.empty() && !std::exchange(spoke_for_it_, true)) {
      std::error_code ignored;
      fs::remove(folder_ / file_of(record.succeeds), ignored);
    }
    StoreView view;
    const std::vector<std::string> names = names_in(folder_);
    for (const std::string& name : names) {
      if (name.starts_with(kHost)) read_host(folder_ / name, view);
    }
    if (view.host(record.host) == nullptr) {  // a full disk may be told of no earlier
      fail(ErrorCode::kIo, "{} does not hold what was written to it: is its disk full?",
           (folder_ / file_of(record.host)).string());
    }
    view.newest = newest_of(folder_, names);
    return view;
  }

  bool create(const GenerationRecord& generation) override {
    const fs::path path = path_of(folder_, generation.number);
    const fs::path partial = unique_partial(path);
    write_file_atomic(partial, generation_to_json(generation).dump());
    const bool made = ::link(partial.c_str(), path.c_str()) == 0;
    const int problem = made ? 0 : errno;
    std::error_code ignored;
    fs::remove(partial, ignored);
    if (!made && problem != EEXIST) {
      fail(errno_code(problem), "cannot create {}: {}", path.string(), errno_text(problem));
    }
    if (made) fsync_folder(folder_);
    return made;
  }

 private:
  // Without fsync: after a crash of the file server its host writes another one.
  void replace(const fs::path& path, const std::string& text) const {
    const fs::path partial = unique_partial(path);
    {
      const FileDescriptor file(
          ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
      if (file.get() < 0) {
        fail(errno_code(errno), "cannot create {}: {}", partial.string(), errno_text(errno));
      }
      const std::span bytes = std::as_bytes(std::span(text));
      const auto written = try_run([&] { return write_all(file.get(), bytes, partial), true; });
      if (!written.ok()) {
        ::unlink(partial.c_str());
        throw written.error();
      }
    }
    if (::rename(partial.c_str(), path.c_str()) != 0) {
      fail(errno_code(errno), "cannot replace {}: {}", path.string(), errno_text(errno));
    }
  }

  void read_host(const fs::path& path, StoreView& view) {
    try {
      HostRecord host = host_from_json(parse_json(read_file(path, kMaxRecordBytes), path.string()),
                                       path.string());
      const std::string expected = file_of(host.host);
      if (path.filename() != expected) {
        fail(ErrorCode::kInvalid, "{} is the record of host \"{}\": expected the file {}",
             path.string(), host.host.substr(0, 100), expected.substr(0, 100));
      }
      view.hosts.push_back(std::move(host));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kNotFound) return;  // it was replaced meanwhile
      if (told_.insert(path.string()).second) {
        log::warn("passed over in the rendezvous folder: {}", error.what());
      }
    }
  }

  const fs::path folder_;
  bool spoke_for_it_ = false;
  std::set<std::string> told_;  // files that are not what they should be
};

}  // namespace

std::optional<GenerationRecord> newest_generation(const fs::path& folder) {
  return newest_of(folder, names_in(folder));
}

std::unique_ptr<RendezvousStore> folder_store(const fs::path& folder) {
  return std::make_unique<FolderStore>(folder);
}

}  // namespace skein
