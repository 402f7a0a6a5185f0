#include "skein/launch/meeting_place.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <random>

#include "skein/base/error.h"
#include "skein/base/hash.h"
#include "skein/base/machine.h"
#include "skein/supervise/store.h"

namespace skein {
namespace {

constexpr std::string_view kStart = "start-";

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

std::string name_of(int start) { return fmt::format("{}{:04}", kStart, start); }

// The highest number of a start, or 0.
int newest_start(StoreRoot& rendezvous) {
  int newest = 0;
  for (const std::string& name : rendezvous.places()) {
    if (!name.starts_with(kStart)) continue;
    int number = 0;
    const char* last = name.data() + name.size();
    const auto [stop, wrong] = std::from_chars(name.data() + kStart.size(), last, number);
    if (wrong == std::errc() && stop == last) newest = std::max(newest, number);
  }
  return newest;
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

MeetingPlace::MeetingPlace(StoreRoot& rendezvous, const std::string& start_id) {
  choose_start(rendezvous, start_id);
  const std::string node = checked_node_name();
  // In containers process numbers repeat.
  std::random_device random;
  host_ = fmt::format("{}.{}-{:08x}{:08x}", node, ::getpid(), random(), random());
  const std::string& where = store_->text();
  const std::string key =
      is_etcd_address(where) ? where : fs::absolute(where).lexically_normal().string();
  lock_path_ =
      lock_folder() / fmt::format("skein-{}-{}-{:016x}.lock", ::getuid(), node, hash_name(key));
  lock_ = lock_file(lock_path_);
  succeeds_ = read_file_if_any(lock_path_);
  if (::ftruncate(lock_.get(), 0) != 0) {
    fail(errno_code(errno), "cannot write {}: {}", lock_path_.string(), errno_text(errno));
  }
  write_all(lock_.get(), std::as_bytes(std::span(host_)), lock_path_);
}

void MeetingPlace::choose_start(StoreRoot& rendezvous, const std::string& start_id) {
  const auto enter = [&](const std::string& start) {
    start_id_ = start;
    store_ = rendezvous.open(start + "/machines");
  };
  if (!start_id.empty()) return enter(start_id);
  const int newest = newest_start(rendezvous);
  if (newest > 0) {
    try {
      enter(name_of(newest));
      const std::optional<GenerationRecord> last = newest_generation(store_);
      if (!last || !last->verdict) return;
    } catch (const Error& error) {  // of a start that has lapsed
      if (error.code() != ErrorCode::kNotFound) throw;
    }
  }
  enter(name_of(newest + 1));
}

void MeetingPlace::leave() {
  std::error_code ignored;
  fs::remove(lock_path_, ignored);
}

}  // namespace skein
