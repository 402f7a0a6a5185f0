#include "skein/runtime/pjrt/executable_cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"

namespace skein {
namespace {

constexpr std::string_view kMagic = "skein-executable";
constexpr std::string_view kVersion = "1";
constexpr const char* kEnding = ".executable";
constexpr int64_t kMaxFileBytes = int64_t{8} << 30;

std::string hash_of(std::string_view bytes) {
  return xxh3_128_hex(std::as_bytes(std::span(bytes)));
}

// The next word of a line; empty at its end.
std::string_view take_word(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

}  // namespace

std::string cache_file_text(const std::string& key, std::string_view executable) {
  std::string file = fmt::format("{} {} {} {} {}\n", kMagic, kVersion, key, executable.size(),
                                 hash_of(executable));
  file += executable;
  return file;
}

std::string executable_of_cache_file(const std::string& key, std::string_view file) {
  const auto wrong = [](const std::string& what) { fail(ErrorCode::kCorrupt, "{}", what); };
  const size_t end = file.substr(0, 256).find('\n');
  std::string_view line = end == file.npos ? std::string_view() : file.substr(0, end);
  if (take_word(line) != kMagic) wrong("it does not begin as a compiled program of skein does");
  if (const std::string_view version = take_word(line); version != kVersion) {
    wrong(fmt::format("its format has version {}, expected {}", version, kVersion));
  }
  if (const std::string_view other = take_word(line); other != key) {
    wrong(fmt::format("it holds the program {}", other));
  }
  const std::string_view length = take_word(line), checksum = take_word(line);
  const std::string_view executable = file.substr(end + 1);
  if (length != std::to_string(executable.size())) {
    wrong(fmt::format("it has {} bytes after its first line, expected {}", executable.size(),
                      length));
  }
  if (checksum != hash_of(executable)) wrong("its checksum is wrong");
  return std::string(executable);
}

ExecutableCache::ExecutableCache(fs::path folder, int64_t max_bytes, SharedFiles shared)
    : folder_(std::move(folder)), max_bytes_(max_bytes), shared_(std::move(shared)) {
  shares_ = !shared_.place.empty();
}

std::string ExecutableCache::place() const {
  return shared_.place.empty() ? folder_.string()
                               : fmt::format("{} and {}", folder_.string(), shared_.place);
}

fs::path ExecutableCache::path_of(const std::string& key) const {
  return folder_ / (key + kEnding);
}

std::optional<std::string> ExecutableCache::find(const std::string& key, const std::string& name) {
  const fs::path path = path_of(key);
  try {
    if (const auto file = read_file_if_there(path, kMaxFileBytes)) {
      std::string executable = executable_of_cache_file(key, *file);
      ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // it was used
      return executable;
    }
  } catch (const Error& error) {
    refuse(key, name, error.what());
  }
  return find_shared(key, name);
}

std::optional<std::string> ExecutableCache::find_shared(const std::string& key,
                                                        const std::string& name) {
  if (!shares_) return std::nullopt;
  try {
    const auto file = shared_.read(key + kEnding);
    if (!file) return std::nullopt;
    std::string executable = executable_of_cache_file(key, *file);
    write(key, *file);
    return executable;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) shares_ = false;
    log::warn("{}: the compiled program {} is not taken from there: {}", shared_.place, name,
              error.what());
    return std::nullopt;
  }
}

void ExecutableCache::add(const std::string& key, const std::string& name,
                          std::string_view executable) {
  const std::string file = cache_file_text(key, executable);
  write(key, file);
  if (!shares_) return;
  try {
    shared_.write(key + kEnding, file);
  } catch (const Error& error) {
    shares_ = false;
    log::warn("{}: the compiled program {} is not written there: {}", shared_.place, name,
              error.what());
  }
}

void ExecutableCache::refuse(const std::string& key, const std::string& name,
                             std::string_view why) {
  const fs::path path = path_of(key);
  log::warn("{}: the compiled program {} there is not used, and is compiled again: {}",
            path.string(), name, why);
  std::error_code ignored;
  fs::remove(path, ignored);
}

// The folder is not tried again once something could not be written: the next one would not be
// either.
void ExecutableCache::write(const std::string& key, const std::string& file) {
  if (!writes_) return;
  try {
    make_folders(folder_);
    make_room(std::ssize(file));
    write_file_atomic(path_of(key), file);
  } catch (const Error& error) {
    if (!writes_.exchange(false)) return;
    log::warn("compiled programs are not kept for the next start: {}", error.what());
  }
}

// Also removes what processes that died were writing.
void ExecutableCache::make_room(int64_t num_bytes) {
  struct File {
    fs::file_time_type used;
    fs::path path;
    int64_t num_bytes;
  };
  std::vector<File> files;
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(24);
  std::error_code error;  // a file that another process removes meanwhile is none
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const fs::path& path = entry.path();
    const fs::file_time_type used = entry.last_write_time(error);
    if (!error && path.extension() == ".partial" && used < old) fs::remove(path, error);
    const auto size = static_cast<int64_t>(entry.file_size(error));
    if (error || path.extension() != kEnding) continue;
    files.push_back({used, path, size});
    num_bytes += size;
  }
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& file : files) {
    if (num_bytes <= max_bytes_) return;
    if (fs::remove(file.path, error)) num_bytes -= file.num_bytes;
  }
}

}  // namespace skein
