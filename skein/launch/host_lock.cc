#include "skein/launch/host_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <random>

#include "skein/base/error.h"
#include "skein/base/hash.h"
#include "skein/base/machine.h"
#include "skein/store/key_value_store.h"

namespace skein {
namespace {

// Unlike in what a run writes down, another name than the one that was given will not do.
std::string checked_node_name() {
  const char* given = std::getenv("SKEIN_NODE");
  std::string name = node_name();
  if (given != nullptr && *given != '\0' && name != given) {
    fail(ErrorCode::kUsage,
         "SKEIN_NODE is \"{}\": expected at most 128 letters, digits, '-', '_' and '.'",
         std::string(given).substr(0, 200));
  }
  return name;
}

// Memory of this machine, which a restart of it clears.
fs::path lock_folder() {
  std::error_code problem;
  const fs::path memory = "/dev/shm";
  return fs::is_directory(memory, problem) ? memory : fs::temp_directory_path();
}

// Opens and locks the file of that name. One that was removed meanwhile is somebody's who has left.
FileDescriptor lock_file(const fs::path& path) {
  for (int tries = 0; tries < 100; ++tries) {
    FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) {
      fail(errno_code(errno), "cannot open {}: {}", path.string(), errno_text(errno));
    }
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      struct stat locked {
      }, named{};
      const bool is_there = ::fstat(file.get(), &locked) == 0 &&
                            ::stat(path.c_str(), &named) == 0 && locked.st_ino == named.st_ino;
      if (is_there) return file;
    } else if (errno != EWOULDBLOCK && errno != EINTR) {
      fail(errno_code(errno), "cannot lock {}: {}", path.string(), errno_text(errno));
    }
    ::usleep(100'000);  // the workers of a supervisor that was killed may be about to end
  }
  fail(ErrorCode::kBusy,
       "another `skein train` of this run is on this machine as {}: stop it, or give each another "
       "name in SKEIN_NODE",
       read_file_if_any(path));
}

}  // namespace

HostLock::HostLock(const std::string& rendezvous, const std::string& start_id) {
  const std::string node = checked_node_name();
  // In containers process numbers repeat.
  std::random_device random;
  host_ = fmt::format("{}.{}-{:08x}{:08x}", node, ::getpid(), random(), random());
  std::string key = is_etcd_address(rendezvous)
                        ? rendezvous
                        : fs::absolute(rendezvous).lexically_normal().string();
  if (!start_id.empty()) key += "/" + start_id;
  path_ = lock_folder() / fmt::format("skein-{}-{}-{:016x}.lock", ::getuid(), node, hash_name(key));
  file_ = lock_file(path_);
  succeeds_ = read_file_if_any(path_);
  if (::ftruncate(file_.get(), 0) != 0) {
    fail(errno_code(errno), "cannot write {}: {}", path_.string(), errno_text(errno));
  }
  write_all(file_.get(), std::as_bytes(std::span(host_)), path_);
}

HostLock::~HostLock() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

}  // namespace skein
