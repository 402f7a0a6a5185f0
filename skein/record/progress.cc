#include "skein/record/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>

#include "skein/base/units.h"

namespace skein {
namespace {

constexpr int kPlainWidth = 200;
constexpr double kRedrawSeconds = 0.1;
constexpr double kAverageSteps = 50;

// Two decimals, or two significant digits for a small share of a large corpus.
std::string epoch_text(float epoch) {
  return epoch >= 0.1f || epoch == 0 ? fmt::format("{:.2f}", epoch) : fmt::format("{:.2g}", epoch);
}

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
  struct Field {
    std::string text;
    int importance;
  };
  const std::string left = line.seconds_left < 0 ? "?" : format_duration(line.seconds_left);
  constexpr int kMostImportant = 8;
  std::array<Field, 8> fields = {{
      {fmt::format("step {:>{}}/{}", line.step, total.size(), total), kMostImportant},
      {fmt::format("loss {:.4f}", line.loss), 7},
      {format_count(line.tokens_per_s) + " tokens/s", 5},
      {fmt::format("{:.1f}% of ceiling", 100 * line.ceiling_share), 4},
      {fmt::format("grad {:.3g}", line.grad_norm), 3},
      {fmt::format("lr {:.2e}", line.learning_rate), 1},
      {"epoch " + epoch_text(line.epoch), 2},
      {"left " + left, 6},
  }};
  const auto join = [&](int least) {
    std::string text;
    for (const Field& field : fields) {
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
  if (on_terminal_) return now_s - last_shown_s_ >= kRedrawSeconds;
  return step % every_steps_ == 0;
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
  const ProgressLine line{.step = metrics.step,
                          .total_steps = total_steps_,
                          .loss = metrics.loss,
                          .tokens_per_s = metrics.tokens_per_s,
                          .ceiling_share = metrics.matmul_ceiling_share,
                          .grad_norm = metrics.grad_norm,
                          .learning_rate = metrics.learning_rate,
                          .epoch = metrics.epoch,
                          .seconds_left = step_seconds_ > 0 ? steps_left * step_seconds_ : -1};
  if (on_terminal_) {
    // Leaves the last column free, since a full line would wrap.
    write(out_, "\r\x1b[K" + render_progress(line, terminal_width(out_) - 1));
    drawn_ = true;
  } else {
    write(out_, render_progress(line, kPlainWidth) + "\n");
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
