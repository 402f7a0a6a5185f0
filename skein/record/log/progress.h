// The progress of a run for people: one line that is redrawn on a terminal, separate lines
// elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "skein/record/files/metrics.h"

namespace skein {

struct ProgressLine {
  StepMetrics metrics;
  int64_t total_steps = 0;
  double seconds_left = 0;  // negative: not known yet
};

// One line: "step  120/2000  loss 5.4321  12.3 k tokens/s  61.0% of ceiling  grad 1.23  lr 3.00e-04
// epoch 0.41  left 3 min 20 s". If it is longer than `width` characters, whole fields are dropped,
// the least important first: lr, epoch, grad, ceiling, tokens/s, left. Which metrics it shows, and
// how: the column `progress` of metrics.def.
std::string render_progress(const ProgressLine& line, int width);

// Shows steps on `out`. With `every_steps` above 0 a line is printed every so many steps. Where it
// is 0, "not set", a line is printed every 10 seconds, with level and time of day as lines of the
// log have them, but not on a terminal. On a terminal a line is redrawn in between, at most ten
// times a second. The first and the last step are always shown.
// Threads  one at a time.
class Progress {
 public:
  Progress(std::FILE* out, bool on_terminal, int64_t total_steps, int64_t every_steps);

  // `now_s`: seconds of any monotonic clock.
  void update(const StepMetrics& metrics, double now_s);

  // Erases the redrawn line before other text is written; the next update draws it again.
  void clear();

  // Ends the redrawn line with a line break, so that it stays.
  void finish();

 private:
  bool is_kept(int64_t step) const { return every_steps_ > 0 && step % every_steps_ == 0; }
  bool is_due(int64_t step, double now_s) const;
  void show(const ProgressLine& line);

  std::FILE* out_;
  bool on_terminal_;
  int64_t total_steps_;
  int64_t every_steps_;
  bool drawn_ = false;  // an unfinished line is on the terminal
  bool started_ = false;
  double last_update_s_ = 0;
  double last_shown_s_ = 0;
  double step_seconds_ = 0;  // moving average over about 50 steps; 0: not known yet
};

}  // namespace skein
