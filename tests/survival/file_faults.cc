// A library to preload into skein: kills it, or makes a call fail, at a chosen call that changes a
// file of the run, or writes down all of them, for what a disk may hold after a power cut.
//
// SKEIN_FILE_FAULTS names a file with the plan (`Plan` below), shared by all processes;
// tests/survival/file_faults.py writes and reads it. Without it, and for every file outside of
// `folder`, calls pass through.
//
// A call is addressed by its rank (SKEIN_RANK; -1 without), the save that it belongs to and its
// index within that. A save of a rank begins with the first file or folder that it creates for a
// step. Calls on other files, `step` 0, are counted from the start of the process.
#include "tests/survival/file_faults.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>

namespace skein::test {
namespace {

template <typename Function>
Function* next(Function*, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}
#define NEXT(function) next(static_cast<decltype(&::function)>(nullptr), #function)

std::recursive_mutex g_mutex;
Plan* g_plan = nullptr;
int g_log = -1;
int g_rank = -1;
int64_t g_step = 0;       // that is being saved
int64_t g_in_save = 0;    // calls so far, of this save
int64_t g_elsewhere = 0;  // and on other files
int g_stale[1024];        // of a descriptor that is of no use any more: the error; else 0

bool has_place(int fd) { return fd >= 0 && fd < static_cast<int>(std::size(g_stale)); }

__attribute__((constructor)) void begin() {
  const char* rank = ::getenv("SKEIN_RANK");
  if (rank != nullptr) g_rank = std::atoi(rank);
  const char* path = ::getenv("SKEIN_FILE_FAULTS");
  if (path == nullptr) return;
  const int fd = NEXT(open)(path, O_RDWR | O_CLOEXEC);
  void* memory = ::mmap(nullptr, sizeof(Plan), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd < 0 || memory == MAP_FAILED) {
    ::perror("cannot map SKEIN_FILE_FAULTS");
    ::abort();
  }
  g_plan = static_cast<Plan*>(memory);
  if (g_plan->log[0] != '\0') {
    g_log = NEXT(open)(g_plan->log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  }
}

// The path of an open file; empty if it has none.
std::string path_of(int fd) {
  char path[4096];
  const ssize_t size =
      ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  return size > 0 && path[0] == '/' ? std::string(path, static_cast<size_t>(size)) : "";
}

bool is_in_folder(std::string_view path) {
  return g_plan != nullptr && path.substr(0, std::strlen(g_plan->folder)) == g_plan->folder;
}

// The step of a checkpoint's folder in `path`; 0: none.
int64_t step_of(std::string_view path) {
  const size_t name = path.find("/checkpoints/step-");
  return name == path.npos ? 0 : std::atoll(path.data() + name + std::strlen("/checkpoints/step-"));
}

uint64_t inode(const char* path) {
  struct stat status {};
  return ::lstat(path, &status) == 0 ? status.st_ino : 0;
}

std::string parent(const std::string& path) { return path.substr(0, path.rfind('/')); }
std::string name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// One call on a file of the run: constructed before it, `after` follows it.
class Call {
 public:
  Call(Kind kind, std::string path, std::string to = "")
      : lock_(g_mutex), kind_(kind), path_(std::move(path)), to_(std::move(to)) {
    is_counted_ = is_in_folder(path_);
    if (!is_counted_) {
      lock_.unlock();
      return;
    }
    if (g_log >= 0) ::flock(g_log, LOCK_EX);
    count();
    if (point_ != nullptr && point_->after == 0) strike();
  }
  ~Call() {
    if (is_counted_ && g_log >= 0) ::flock(g_log, LOCK_UN);
  }

  // Whether the call, on `fd` if that is not -1, is to fail: errno is set. Else `bytes` may have
  // become fewer.
  bool fails(int fd = -1, size_t* bytes = nullptr) {
    if (is_counted_ && has_place(fd) && g_stale[fd] != 0) {
      errno = g_stale[fd];
      return true;
    }
    if (point_ == nullptr || point_->action == kKill) return false;
    if (point_->action == kShortWrite) {
      if (bytes != nullptr) *bytes = *bytes / 2 + *bytes % 2;
      return false;
    }
    if (point_->action == kStale && has_place(fd)) g_stale[fd] = point_->error;
    errno = point_->error;
    return true;
  }

  // Returns `result` of the call, which succeeded unless it is negative.
  template <typename Result>
  Result after(Result result, int fd = -1, const void* data = nullptr, int64_t offset = 0) {
    const int problem = errno;
    if (is_counted_) {
      if (g_log >= 0 && result >= 0) write_down(fd, data, static_cast<int64_t>(result), offset);
      if (point_ != nullptr && point_->after != 0) strike();
    }
    errno = problem;
    return result;
  }
  void remember(uint64_t node, uint64_t other) { node_ = node, other_ = other; }
  bool is_counted() const { return is_counted_; }

 private:
  void count() {
    const int64_t step = step_of(path_);
    const bool creates = kind_ == kMakeFolder || kind_ == kCreate;
    if (creates && step > g_step) g_step = step, g_in_save = 0;
    const bool in_save =
        g_step > 0 && path_.find("/checkpoints") != path_.npos && name(path_) != ".lock";
    index_ = in_save ? g_in_save++ : g_elsewhere++;
    int64_t& most = in_save ? g_plan->most_in_save[g_rank + 1] : g_plan->most_elsewhere[g_rank + 1];
    if (most < index_ + 1) most = index_ + 1;
    choose(in_save ? g_step : 0);
  }
  void choose(int64_t step) {
    if (g_plan->next >= g_plan->num_points) return;
    Point& point = g_plan->points[g_plan->next];
    if (point.rank != g_rank || (point.elsewhere != 0) != (step == 0)) return;
    if (point.elsewhere == 0 && step < g_plan->armed_step) return;
    if (point.elsewhere == 0 && step > g_plan->armed_step && point.first_step != 0 &&
        step > point.first_step) {  // that save had fewer calls
      point.fired = -1;
      ++g_plan->next;
      return;
    }
    point.first_step = step;
    if (point.index != index_) return;
    point.fired = step == 0 ? 1 : step;
    point.kind = kind_;
    std::strncpy(point.path, path_.c_str() + std::strlen(g_plan->folder), sizeof point.path - 1);
    g_plan->armed_step = step + g_plan->gap;
    ++g_plan->next;
    point_ = &point;
  }
  void strike() {
    if (point_->action == kKill) ::kill(::getpid(), SIGKILL);
  }
  void write_down(int fd, const void* data, int64_t result, int64_t offset) {
    Record record{};
    record.kind = kind_;
    record.rank = g_rank;
    struct stat status {};
    if (fd >= 0 && ::fstat(fd, &status) == 0) {
      record.inode = status.st_ino;
    } else {
      record.inode = node_ != 0 ? node_ : inode(path_.c_str());
    }
    record.other = other_;
    record.folder = inode(parent(path_).c_str());
    record.to_folder = to_.empty() ? 0 : inode(parent(to_).c_str());
    record.offset = offset;
    record.bytes = kind_ == kWrite ? result : 0;
    const std::string from = name(path_), to = name(to_);
    record.name_bytes = static_cast<uint32_t>(from.size());
    record.to_bytes = static_cast<uint32_t>(to.size());
    std::string whole(reinterpret_cast<const char*>(&record), sizeof record);
    whole += from + to;
    whole.append(static_cast<const char*>(data), static_cast<size_t>(record.bytes));
    if (NEXT(write)(g_log, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) {
      ::abort();
    }
  }

  std::unique_lock<std::recursive_mutex> lock_;
  Kind kind_;
  std::string path_, to_;
  bool is_counted_ = false;
  int64_t index_ = 0;
  uint64_t node_ = 0, other_ = 0;
  Point* point_ = nullptr;
};

std::string absolute(const char* path) {
  if (path[0] == '/') return path;
  char here[4096];
  return std::string(::getcwd(here, sizeof here)) + "/" + path;
}

bool is_folder(const char* path) {
  struct stat status {};
  return ::lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

int open_file(decltype(&::open) real, const char* path, int flags, mode_t mode) {
  const bool exists = ::access(path, F_OK) == 0;
  if ((flags & O_CREAT) == 0 || exists) return real(path, flags, mode);
  Call call(kCreate, absolute(path));
  if (call.fails()) return -1;
  const int fd = real(path, flags, mode);
  return call.after(fd, fd);
}

// remove, unlink, rmdir and unlinkat with AT_FDCWD.
template <typename Real>
int remove_name(const char* path, const Real& real) {
  Call call(is_folder(path) ? kRemoveFolder : kUnlink, absolute(path));
  if (call.fails()) return -1;
  call.remember(inode(path), 0);
  return call.after(real());
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  return open_file(NEXT(open), path, flags, mode);
}

FILE* fopen64(const char* path, const char* mode) {
  const bool creates = mode[0] != 'r' && ::access(path, F_OK) != 0;
  if (!creates) return NEXT(fopen64)(path, mode);
  Call call(kCreate, absolute(path));
  if (call.fails()) return nullptr;
  FILE* file = NEXT(fopen64)(path, mode);
  call.after(file == nullptr ? -1 : 0, file == nullptr ? -1 : ::fileno(file));
  return file;
}

ssize_t write(int fd, const void* data, size_t bytes) {
  if (g_plan == nullptr) return NEXT(write)(fd, data, bytes);
  Call call(kWrite, path_of(fd));
  if (call.fails(fd, &bytes)) return -1;
  const ssize_t count = NEXT(write)(fd, data, bytes);
  const int64_t end = call.is_counted() ? ::lseek(fd, 0, SEEK_CUR) : 0;
  return call.after(count, fd, data, end - count);
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  if (g_plan == nullptr) return NEXT(pwrite)(fd, data, bytes, offset);
  Call call(kWrite, path_of(fd));
  if (call.fails(fd, &bytes)) return -1;
  return call.after(NEXT(pwrite)(fd, data, bytes, offset), fd, data, offset);
}

int close(int fd) {
  if (has_place(fd)) g_stale[fd] = 0;
  return NEXT(close)(fd);
}

int fsync(int fd) {
  Call call(kSync, path_of(fd));
  if (call.fails(fd)) return -1;
  return call.after(NEXT(fsync)(fd), fd);
}

int fdatasync(int fd) {
  Call call(kSync, path_of(fd));
  if (call.fails(fd)) return -1;
  return call.after(NEXT(fdatasync)(fd), fd);
}

int ftruncate(int fd, off_t bytes) {
  Call call(kTruncate, path_of(fd));
  if (call.fails(fd)) return -1;
  return call.after(NEXT(ftruncate)(fd, bytes), fd, nullptr, bytes);
}

int rename(const char* from, const char* to) noexcept {
  Call call(kRename, absolute(from), absolute(to));
  if (call.fails()) return -1;
  call.remember(inode(from), inode(to));
  return call.after(NEXT(rename)(from, to));
}

int renameat2(int folder, const char* from, int to_folder, const char* to,
              unsigned flags) noexcept {
  Call call((flags & RENAME_EXCHANGE) != 0 ? kExchange : kRename, absolute(from), absolute(to));
  if (call.fails()) return -1;
  call.remember(inode(from), inode(to));
  return call.after(NEXT(renameat2)(folder, from, to_folder, to, flags));
}

int link(const char* from, const char* to) noexcept {
  Call call(kLink, absolute(to));
  if (call.fails()) return -1;
  return call.after(NEXT(link)(from, to));
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (::access(path, F_OK) == 0) return NEXT(mkdir)(path, mode);
  Call call(kMakeFolder, absolute(path));
  if (call.fails()) return -1;
  return call.after(NEXT(mkdir)(path, mode));
}

int unlink(const char* path) noexcept {
  return remove_name(path, [&] { return NEXT(unlink)(path); });
}
int rmdir(const char* path) noexcept {
  return remove_name(path, [&] { return NEXT(rmdir)(path); });
}
int remove(const char* path) noexcept {
  return remove_name(path, [&] { return NEXT(remove)(path); });
}

}  // extern "C"
}  // namespace skein::test
