// The second line behind a lock: a lock file's text, and a beat in it. It tells that a folder is in
// use where flock does not: on a file system without locks, and on one where each machine grants
// them for itself (base/shared/file_lock.h).
//
// Format   lines of .lock (docs/run_folder.md): "process 4711 on some.host, …", "boot <id>", "space
//          <pid namespace>", "beat <20 digits>", "holder <32 hex digits>". What follows is ignored.
//          The file is empty where its last holder ended in order
// Beat     each second the holder reads the file and, where the text is still its own, writes it
//          again with the next beat. It opens and closes the file for that, since NFS shows others
//          what was written when it is closed
// Taking   who gets the lock reads the text of the holder before. A process of this boot and pid
//          namespace that is gone is dead, at once. Of another one the beat is watched for 5 s, if
//          the file changed within the last 10 minutes; a beat that moves is a holder that lives
// Rule     the last text that was written says whose the folder is. Whoever finds another one has
//          lost it, and commits nothing any more
// Errors   Error{kBusy} naming the process that has the folder; kIo | kNoSpace
// Threads  one of its own a LockBeat; require() any
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "skein/base/files/file.h"

namespace skein {

struct BeatTimes {
  std::chrono::milliseconds beat = std::chrono::seconds(1), look = std::chrono::seconds(5);
  std::chrono::seconds fresh = std::chrono::minutes(10);  // older text is nobody's
};

enum class HolderState {
  kGone,
  kHolds,
  kUnknown  // it lives, and what it has open cannot be seen: another user's, or there is no /proc
};

// Whether process `pid` of this machine has the file `path` open.
HolderState holder_state(int64_t pid, const fs::path& path);

// What a lock file says.
struct LockText {
  std::string holder;  // "process 4711 on some.host, which trains runs/a", for people
  std::string boot, space, beat, id;

  // Of the process that calls, with a new id.
  static LockText own(const std::string& note);
  static LockText parse(const std::string& text);
  std::string text() const;
  int64_t pid() const;   // 0: it names none
  bool is_here() const;  // of a process that this one would see in /proc
  bool names_this_host() const;
  bool has_beat() const { return !beat.empty() && !id.empty(); }
};

// Throws Error{kBusy}, which says that `folder` is in use and ends with `advice`, where the holder
// that `path` names lives. `proven`: this process got the lock.
void require_left(const fs::path& path, bool proven, const std::string& folder,
                  const std::string& advice, const BeatTimes& times = {});

// Holds `path` from its construction to its destruction.
class LockBeat {
 public:
  LockBeat(const fs::path& path, const std::string& note, const BeatTimes& times = {});
  ~LockBeat();  // empties the file, where it is still its own
  LockBeat(const LockBeat&) = delete;
  LockBeat& operator=(const LockBeat&) = delete;

  // Throws Error{kBusy}, as `folder`, where another process has written its own text meanwhile. A
  // file that somebody removed or emptied is written again, which is a warning.
  void require(const std::string& folder) const;

 private:
  class Beating;
  std::unique_ptr<Beating> beating_;
};

}  // namespace skein
