#include "skein/checkpoint/find/lock_beat.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <random>
#include <sstream>
#include <system_error>
#include <thread>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/shared/file_lock.h"
#include "skein/base/text/log.h"
#include "skein/base/threads/mutex.h"
#include "skein/base/threads/quiet_thread.h"

namespace skein {
namespace {

constexpr std::string_view kProcess = "process ", kBoot = "boot ", kSpace = "space ",
                           kBeat = "beat ", kHolder = "holder ";
constexpr int64_t kMostBytes = 64 << 10;

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "an unknown host";
}

std::string boot_id() {
  const std::string id = read_file_if_any("/proc/sys/kernel/random/boot_id");
  return id.substr(0, id.find('\n'));
}

// "pid:[4026531836]"; empty without /proc.
std::string pid_space() {
  std::error_code none;
  return fs::read_symlink("/proc/self/ns/pid", none).string();
}

std::string beat_text(int64_t beat) { return fmt::format("{:020}", beat); }

// Newlines would end the line.
std::string on_one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

LockText read_lock(const fs::path& path) {
  return LockText::parse(read_file_if_there(path, kMostBytes).value_or(""));
}

void cut(const FileDescriptor& file, const fs::path& path, size_t num_bytes) {
  if (retry_interrupted([&] { return ::ftruncate(file.get(), static_cast<off_t>(num_bytes)); }) !=
      0) {
    fail(errno_code(errno), "cannot write {}: {}", path.string(), errno_text(errno));
  }
}

// In place, so that a full disk is no obstacle once it is there.
void write_lock(const fs::path& path, const LockText& own) {
  const FileDescriptor file = open_or_create(path);
  const std::string text = own.text();
  write_all(file.get(), std::as_bytes(std::span(text)), path);
}

// By this machine's clock: one that is wrong costs a look, or the second line.
bool is_fresh(const fs::path& path, std::chrono::seconds most) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (is_absence(errno)) return false;
    fail(errno_code(errno), "cannot stat {}: {}", path.string(), errno_text(errno));
  }
  return std::abs(std::time(nullptr) - status.st_mtim.tv_sec) <= most.count();
}

bool beat_moves(const fs::path& path, const LockText& before, const BeatTimes& times) {
  const auto end = std::chrono::steady_clock::now() + times.look;
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::min(times.beat / 4, times.look));
    const LockText now = read_lock(path);
    if (now.has_beat() && (now.id != before.id || now.beat != before.beat)) return true;
  }
  return false;
}

}  // namespace

HolderState holder_state(int64_t pid, const fs::path& path) {
  if (pid <= 0) return HolderState::kGone;
  const fs::path process = fmt::format("/proc/{}", pid);
  if (!is_there("/proc/self")) {
    const bool lives = ::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM;
    return lives ? HolderState::kUnknown : HolderState::kGone;
  }
  if (!is_there(process)) return HolderState::kGone;
  std::error_code error;
  const fs::path wanted = fs::canonical(path, error);
  fs::directory_iterator files(process / "fd", error);
  for (const fs::directory_iterator end; !error && files != end; files.increment(error)) {
    std::error_code gone;
    if (fs::read_symlink(files->path(), gone) == wanted) return HolderState::kHolds;
  }
  return error ? HolderState::kUnknown
               : HolderState::kGone;  // another user's, or one that just ended
}

LockText LockText::own(const std::string& note) {
  std::random_device random;
  LockText own;
  own.holder = on_one_line(fmt::format("process {} on {}{}", ::getpid(), host_name(), note));
  own.boot = boot_id();
  own.space = pid_space();
  own.beat = beat_text(1);
  own.id = fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
  return own;
}

LockText LockText::parse(const std::string& text) {
  LockText found;
  std::istringstream lines(text);
  std::getline(lines, found.holder);
  const auto field = [&](std::string_view name) {
    std::string line;
    std::getline(lines, line);
    return line.starts_with(name) ? line.substr(name.size()) : "";
  };
  found.boot = field(kBoot);
  found.space = field(kSpace);
  found.beat = field(kBeat);
  found.id = field(kHolder);
  return found;
}

std::string LockText::text() const {
  return fmt::format("{}\n{}{}\n{}{}\n{}{}\n{}{}\n", holder, kBoot, boot, kSpace, space, kBeat,
                     beat, kHolder, id);
}

int64_t LockText::pid() const {
  int64_t pid = 0;
  if (!holder.starts_with(kProcess)) return 0;
  std::from_chars(holder.data() + kProcess.size(), holder.data() + holder.size(), pid);
  return pid;
}

bool LockText::names_this_host() const { return holder.find(" on " + host_name()) != holder.npos; }

bool LockText::is_here() const {
  return !boot.empty() && !space.empty() && boot == boot_id() && space == pid_space();
}

void require_left(const fs::path& path, bool proven, const std::string& folder,
                  const std::string& advice, const BeatTimes& times) {
  const LockText before = read_lock(path);
  if (!before.has_beat()) return;
  if (before.is_here() && before.pid() == ::getpid()) return;  // an earlier lock of its own
  const HolderState state =
      before.is_here() ? holder_state(before.pid(), path) : HolderState::kUnknown;
  if (state == HolderState::kGone) return;
  // A lock is granted right among the processes of one machine; a zombie cannot be looked into.
  if (state == HolderState::kUnknown && before.is_here() && proven) return;
  const bool lives = state == HolderState::kHolds ||
                     (is_fresh(path, times.fresh) && beat_moves(path, before, times));
  if (!lives) return;
  fail(ErrorCode::kBusy, "{} is in use by {}{}: {}", folder, before.holder,
       proven ? fmt::format(" ({} granted a lock to both: it locks each machine for itself)",
                            file_system_of(path))
              : "",
       advice);
}

class LockBeat::Beating {
 public:
  Beating(const fs::path& path, const std::string& note, const BeatTimes& times)
      : path_(path), times_(times), own_(LockText::own(note)) {
    // First, and not behind the text: there it could cut what another one wrote meanwhile.
    cut(open_or_create(path_), path_, 0);
    write_lock(path_, own_);
    thread_ = quiet_thread([this] { beat(); });
  }

  ~Beating() {
    {
      const Lock lock(mutex_);
      stops_ = true;
    }
    changed_.notify_all();
    thread_.join();
    try {
      if (read_lock(path_).id == own_.id) cut(open_to_change(path_), path_, 0);
    } catch (const std::exception&) {
      // The next holder sees that this process is gone, or that its beat stands still.
    }
  }

  void require(const std::string& folder) {
    constexpr int kTries = 5;
    for (int tries = 1; tries <= kTries; ++tries) {
      const LockText found = read_lock(path_);
      if (found.id == own_.id) return;
      if (!found.holder.empty()) {
        fail(ErrorCode::kBusy,
             "{} was taken over by {} while this process used it, and is left to that one: this "
             "file system does not keep two processes apart; start one `skein train` at a time in "
             "one folder",
             folder, found.holder);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it may just be written
    }
    std::error_code ignored;
    if (!fs::exists(path_.parent_path(), ignored)) {
      make_folders(path_.parent_path());
      log::warn(
          "{} was removed while this process used it: it was made again, and the checkpoints that "
          "it held are gone",
          path_.parent_path().string());
    }
    log::warn("{} was removed or emptied while this process used the folder: it was written again",
              path_.string());
    write_lock(path_, own_);
  }

 private:
  void beat() {
    for (int64_t beats = 2;; ++beats) {
      {
        Lock lock(mutex_);
        changed_.wait_for(lock, times_.beat, [this]() SKEIN_REQUIRES(mutex_) { return stops_; });
        if (stops_) return;
      }
      try {
        if (read_lock(path_).id != own_.id) continue;  // require() says what it is
        LockText next = own_;
        next.beat = beat_text(beats);
        write_lock(path_, next);
      } catch (const std::exception&) {
        // A beat that is missed: the file system may be back for the next one.
      }
    }
  }

  const fs::path path_;
  const BeatTimes times_;
  const LockText own_;
  Mutex mutex_;
  ConditionVariable changed_;
  bool stops_ SKEIN_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

LockBeat::LockBeat(const fs::path& path, const std::string& note, const BeatTimes& times)
    : beating_(std::make_unique<Beating>(path, note, times)) {}
LockBeat::~LockBeat() = default;
void LockBeat::require(const std::string& folder) const { beating_->require(folder); }

}  // namespace skein
