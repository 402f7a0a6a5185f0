// What a worker tells its supervisor while it works, in memory that both map: a counter that grows
// whenever anything was done, the last training step, and until when it may stand still because it
// waits with a deadline of its own. And what the supervisor tells its workers: until when they may
// train without hearing of it again, and that the generation is over.
//
// Cost     a tick is a relaxed store to a cache line of the worker's own: about a nanosecond
// Threads  ticks may come from any; without a supervisor they go nowhere
// Times    milliseconds of CLOCK_BOOTTIME, which goes on while a machine sleeps
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "skein/base/files/file.h"

namespace skein {

int64_t boot_millis();

struct alignas(64) HeartbeatSlot {
  std::atomic<int64_t> progress{0};
  std::atomic<int64_t> step{0};
  std::atomic<int64_t> excused_until{0};
  std::atomic<int64_t> saved{0};      // the number of the newest complete save in memory
  std::atomic<int64_t> passed_on{0};  // the newest of which another machine keeps a copy
  std::atomic<int64_t> work_us{0};    // of its own in all steps so far, without waiting for peers
  std::atomic<int64_t> stored{0};     // the step of the newest checkpoint in storage
};

// One page, or more, of a file without a name: the supervisor makes it, workers inherit it.
class HeartbeatPage {
 public:
  explicit HeartbeatPage(int num_workers);        // Errors kIo
  HeartbeatPage(FileDescriptor file, int index);  // a worker's view of it
  ~HeartbeatPage();
  HeartbeatPage(const HeartbeatPage&) = delete;
  HeartbeatPage& operator=(const HeartbeatPage&) = delete;

  int file() const { return file_.get(); }
  HeartbeatSlot& slot(int index) const { return slots_[index + 1]; }
  std::atomic<int64_t>& permitted_until() const { return slots_[0].excused_until; }
  std::atomic<int64_t>& is_over() const { return slots_[0].progress; }  // not 0: it is
  // The signal by which the supervisor was asked to stop, whichever it passes on; 0: none.
  std::atomic<int64_t>& stop_signal() const { return slots_[0].step; }

 private:
  void map();

  FileDescriptor file_;
  size_t bytes_ = 0;
  HeartbeatSlot* slots_ = nullptr;  // the first one is the supervisor's
};

namespace heartbeat {

// From here on this process is worker `index` of the supervisor whose page `file` is.
void attach(FileDescriptor file, int index);

void tick();
void reach_step(int64_t step);
// The newest save in memory is complete: replica/writer.h.
void reach_save(int64_t number);
int64_t passed_on();
// The newest checkpoint in storage is of this step.
void reach_checkpoint(int64_t step);
bool has_supervisor();
// HeartbeatPage::stop_signal; 0 without a supervisor.
int stop_signal();
// A step took so long, without the time in collectives. Called before reach_step.
void worked(double seconds);
// Before what must not be done once other machines train without this one. Throws Error{kPeerLost},
// "<what>: ...", where the supervisor has not said for too long that this machine may train.
void require_permit(const std::string& what);

// In the middle of a step, whose result nobody needs any more once the generation is over. Throws
// Error{kPeerLost}.
void require_generation();

// This process waits, for at most `seconds`.
class Wait {
 public:
  explicit Wait(double seconds);
  ~Wait();
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;
};

}  // namespace heartbeat
}  // namespace skein
