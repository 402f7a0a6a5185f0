// launch.on_event: a command that is run for each event of a run that a person may have to know.
//
// Which    all of events.jsonl but those of a run that goes well: start, checkpoint_begin,
//          checkpoint_commit, validation, spike, epoch, and a stop to take a machine in
// How      by /bin/sh, with the event's JSON line on standard input, and in the environment
//          SKEIN_RUN_DIR, SKEIN_EVENT and SKEIN_EVENT_<FIELD> for each text, number and boolean.
//          What it prints is appended to logs/on_event.log
// Bounds   one at a time, each for at most kDeadline, then killed with all that it started; at most
//          kMostWaiting events wait, then the oldest is left out. At the end of the run what waits
//          has kDeadline together
// Once     <run>/.events_told holds how far events.jsonl is told. After a supervisor was killed,
//          the next one goes on from there; an event whose command ran just then is told again
// Failures of the command are logged once; training does not wait for it, nor end because of it
// Threads  one of its own
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "skein/base/files/file.h"

namespace skein {

class EventCommand {
 public:
  static constexpr std::chrono::seconds kDeadline{10};
  static constexpr size_t kMostWaiting = 100;

  // Events that are there already are not told, unless an earlier launch was about to.
  EventCommand(const fs::path& run_dir, const std::string& command,
               std::chrono::milliseconds deadline = kDeadline);
  ~EventCommand();

  // Only one of the run's machines tells; not before this was called with true.
  void lead(bool leads);

 private:
  class Teller;
  std::unique_ptr<Teller> teller_;
};

}  // namespace skein
