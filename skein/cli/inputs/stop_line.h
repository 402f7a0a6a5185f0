// What is said where Ctrl-C, SIGTERM or a closed terminal ends a command that saves nothing then,
// since what it finished lies on the disk already.
//
// Threads  one object at a time
#pragma once

#include <array>
#include <csignal>

namespace skein {

constexpr char kGoesOn[] =
    "\nskein: stopped; finished work is kept, and the same command resumes\n";

class StopLine {
 public:
  // `line` must outlive this. The process ends by the signal all the same.
  explicit StopLine(const char* line);
  ~StopLine();
  StopLine(const StopLine&) = delete;

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<void (*)(int), kSignals.size()> former_{};
};

}  // namespace skein
