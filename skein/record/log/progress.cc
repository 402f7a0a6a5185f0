#include "skein/record/log/progress.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "skein/base/text/units.h"
#include "skein/record/files/metrics_table.h"

namespace skein {
namespace {

constexpr int kPlainWidth = 200;
constexpr double kRedrawSeconds = 0.1;
constexpr double kPlainSeconds = 10;
constexpr double kAverageSteps = 50;

// Ignores errors: a closed terminal is no reason to end the run.
void write(std::FILE* out, const std::string& text) {
  (void)std::fwrite(text.data(), 1, text.size(), out);
  (void)std::fflush(out);
  std::clearerr(out);
}

int terminal_width(std::FILE* out) {
  struct winsize size {};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

}  // namespace

std::string render_progress(const ProgressLine& line, int width) {
  const std::string total = std::to_string(line.total_steps);
  struct ProgressField {
    int place;
    int importance;
    std::string text;
  };
  constexpr int kLeftImportance = 6, kMostImportant = 8;
  std::vector<ProgressField> fields = {
      {0, kMostImportant, fmt::format("step {:>{}}/{}", line.metrics.step, total.size(), total)}};
  for (const Metric& metric : metrics_table()) {
    const auto* value = std::get_if<float StepMetrics::*>(&metric.member);
    if (value == nullptr || metric.progress.place == 0) continue;
    fields.push_back({metric.progress.place, metric.progress.importance,
                      metric.progress.text(line.metrics.**value)});
  }
  std::stable_sort(
      fields.begin(), fields.end(),
      [](const ProgressField& a, const ProgressField& b) { return a.place < b.place; });
  fields.push_back({fields.back().place + 1, kLeftImportance,
                    "left " + (line.seconds_left < 0 ? "?" : format_duration(line.seconds_left))});
  const auto join = [&](int least) {
    std::string text;
    for (const ProgressField& field : fields) {
      if (field.importance < least) continue;
      if (!text.empty()) text += "  ";
      text += field.text;
    }
    return text;
  };
  std::string text;
  for (int least = 1; least <= kMostImportant; ++least) {
    text = join(least);
    if (static_cast<int>(text.size()) <= width) return text;
  }
  return text.substr(0, static_cast<size_t>(std::max(width, 0)));
}

Progress::Progress(std::FILE* out, bool on_terminal, int64_t total_steps, int64_t every_steps)
    : out_(out), on_terminal_(on_terminal), total_steps_(total_steps), every_steps_(every_steps) {}

bool Progress::is_due(int64_t step, double now_s) const {
  if (!started_ || step >= total_steps_) return true;
  if (is_kept(step)) return true;
  if (on_terminal_) return now_s - last_shown_s_ >= kRedrawSeconds;
  return every_steps_ == 0 && now_s - last_shown_s_ >= kPlainSeconds;
}

void Progress::update(const StepMetrics& metrics, double now_s) {
  if (started_) {
    const double seconds = now_s - last_update_s_;
    step_seconds_ += (seconds - step_seconds_) / (step_seconds_ == 0 ? 1 : kAverageSteps);
  }
  last_update_s_ = now_s;
  const bool due = is_due(metrics.step, now_s);
  started_ = true;
  if (!due) return;
  last_shown_s_ = now_s;

  const auto steps_left = static_cast<double>(std::max<int64_t>(total_steps_ - metrics.step, 0));
  const ProgressLine line{.metrics = metrics,
                          .total_steps = total_steps_,
                          .seconds_left = step_seconds_ > 0 ? steps_left * step_seconds_ : -1};
  show(line);
}

void Progress::show(const ProgressLine& line) {
  if (on_terminal_) {
    // Leaves the last column free, since a full line would wrap.
    const std::string text = render_progress(line, terminal_width(out_) - 1);
    drawn_ = !is_kept(line.metrics.step);
    write(out_, "\r\x1b[K" + text + (drawn_ ? "" : "\n"));
  } else if (every_steps_ > 0) {
    write(out_, render_progress(line, kPlainWidth) + "\n");
  } else {
    write(out_, fmt::format("I {:%H:%M:%S} {}\n", fmt::localtime(std::time(nullptr)),
                            render_progress(line, kPlainWidth)));
  }
}

void Progress::clear() {
  if (!drawn_) return;
  write(out_, "\r\x1b[K");
  drawn_ = false;
}

void Progress::finish() {
  if (!drawn_) return;
  write(out_, "\n");
  drawn_ = false;
}

}  // namespace skein
