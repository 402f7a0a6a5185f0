#include "skein/health/storage_check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/machine/clock.h"
#include "skein/base/text/units.h"

namespace skein {
namespace {

FileDescriptor open_without_name(const fs::path& folder) {
  const fs::path path = unique_partial(folder / ".skein-check");
  FileDescriptor file = create_new(path, 0600);
  ::unlink(path.c_str());
  return file;
}

// Some file systems cannot use a file that has lost its name; those of checkpoints keep theirs.
[[noreturn]] void refuse(const char* verb, const fs::path& folder, int problem) {
  const bool is_unable = problem == EINVAL || problem == ENOSYS || problem == EOPNOTSUPP;
  if (problem == EFBIG) {
    fail(ErrorCode::kNoSpace,
         "cannot write it all to a file in {}: {}, by a limit of this process (ulimit -f)",
         folder.string(), errno_text(problem));
  }
  fail(is_unable ? ErrorCode::kUnsupported : errno_code(problem),
       "cannot {} a file that was removed from {}: {}", verb, folder.string(), errno_text(problem));
}

void write_and_sync(int file, const std::vector<std::byte>& bytes, const fs::path& folder) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::write(file, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse("write", folder, errno);
    done += static_cast<size_t>(count);
  }
  if (::fsync(file) != 0) refuse("fsync", folder, errno);
}

std::vector<std::byte> pattern(int64_t bytes) {
  std::vector<std::byte> result(static_cast<size_t>(bytes));
  uint32_t state = static_cast<uint32_t>(::getpid());
  for (std::byte& byte : result) byte = std::byte((state = state * 1664525 + 1013904223) >> 24);
  return result;
}

// The share of the file's pages that the kernel still has in memory.
double share_in_cache(int file, int64_t bytes) {
  void* map = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ, MAP_SHARED, file, 0);
  if (map == MAP_FAILED) return 1;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((static_cast<size_t>(bytes) + page - 1) / page);
  const bool known = ::mincore(map, static_cast<size_t>(bytes), pages.data()) == 0;
  ::munmap(map, static_cast<size_t>(bytes));
  const auto there =
      std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return p & 1; });
  return known ? static_cast<double>(there) / static_cast<double>(pages.size()) : 1;
}

std::vector<std::byte> read_back(int file, int64_t bytes, const fs::path& folder) {
  std::vector<std::byte> result(static_cast<size_t>(bytes));
  for (size_t done = 0; done < result.size();) {
    const ssize_t count =
        ::pread(file, result.data() + done, result.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse("read", folder, errno);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return result;
}

}  // namespace

fs::path nearest_folder(const fs::path& folder) {
  fs::path nearest = fs::absolute(folder);
  std::error_code ignored;
  while (!fs::is_directory(nearest, ignored) && nearest.has_relative_path()) {
    nearest = nearest.parent_path();
  }
  return nearest;
}

CheckResult check_storage(const fs::path& wanted, int64_t bytes) {
  const fs::path folder = nearest_folder(wanted);
  CheckResult result;
  result.advice = "Look at this machine's mount of " + folder.string();
  try {
    const FileDescriptor file = open_without_name(folder);
    const std::vector<std::byte> written = pattern(bytes);
    const auto start = Clock::now();
    write_and_sync(file.get(), written, folder);
    const double write_seconds = seconds_since(start);
    ::posix_fadvise(file.get(), 0, bytes, POSIX_FADV_DONTNEED);
    const double in_cache = share_in_cache(file.get(), bytes);
    const std::vector<std::byte> read = read_back(file.get(), bytes, folder);
    const auto wrong = std::mismatch(written.begin(), written.end(), read.begin()).first;
    if (wrong != written.end()) {
      result.health = Health::kSick;
      result.found = fmt::format("{}: byte {} of {} reads back otherwise", folder.string(),
                                 wrong - written.begin(), bytes);
      result.expected = "the bytes that were written";
      return result;
    }
    result.advice.clear();
    result.rate = static_cast<double>(bytes) / write_seconds;
    result.unit = "B/s";
    result.found =
        fmt::format("{}: {} written, fsynced and read back{}", folder.string(), format_bytes(bytes),
                    in_cache > 0 ? ", from the page cache: this file system keeps it" : "");
  } catch (const Error& error) {
    const bool is_full = error.code() == ErrorCode::kNoSpace;
    const bool is_unable = error.code() == ErrorCode::kUnsupported;
    result.health = is_full || is_unable ? Health::kDoubtful : Health::kSick;
    result.found = error.what();
    result.expected = fmt::format("to write and read {}", format_bytes(bytes));
    if (is_full)
      result.advice = "Training continues, but cannot save: make room, or raise the limit";
    if (is_unable) result.advice = "This file system cannot be checked so: training continues";
  }
  return result;
}

CheckResult judge_clock(double seconds_ahead, const std::string& of) {
  CheckResult result;
  result.found =
      fmt::format("this machine's clock is {:.2f} s {} that of {}", std::abs(seconds_ahead),
                  seconds_ahead < 0 ? "behind" : "ahead of", of);
  if (std::abs(seconds_ahead) <= kClockDoubtful) return result;
  result.health = std::abs(seconds_ahead) <= kClockSick ? Health::kDoubtful : Health::kSick;
  result.expected = fmt::format("at most {:g} s", kClockDoubtful);
  result.advice = "Start a time service (chrony, systemd-timesyncd) on both";
  return result;
}

CheckResult check_clock(const fs::path& wanted) {
  const fs::path folder = nearest_folder(wanted);
  const FileDescriptor file = open_without_name(folder);
  struct timespec before {
  }, after{};
  struct stat status {};
  ::clock_gettime(CLOCK_REALTIME, &before);
  write_and_sync(file.get(), pattern(1), folder);
  ::clock_gettime(CLOCK_REALTIME, &after);
  if (::fstat(file.get(), &status) != 0) {
    fail(errno_code(errno), "cannot look at {}: {}", folder.string(), errno_text(errno));
  }
  const auto seconds = [](const struct timespec& time) {
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  // The server may have set it at any moment of the write.
  const double stored = seconds(status.st_mtim);
  const double ahead =
      std::max(0.0, seconds(before) - stored) - std::max(0.0, stored - seconds(after));
  return judge_clock(ahead, folder.string());
}

}  // namespace skein
