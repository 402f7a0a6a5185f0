#include "skein/cli/inputs/reading_line.h"

#include <fmt/format.h>

#include "skein/base/text/log.h"
#include "skein/base/text/units.h"

namespace skein {
namespace {

constexpr auto kLineEvery = std::chrono::seconds(30);  // where there is no terminal

}  // namespace

void ReadingLine::show(const Status& state) {
  const Clock::time_point now = Clock::now();
  if (!is_begun_) begin_ = last_ = now, first_ = state, is_begun_ = true;
  if (log::on_terminal()) {
    fmt::print(stderr, "\r\033[K{}", text(state, now));
  } else if (now - last_ >= kLineEvery) {
    fmt::print(stderr, "{}\n", text(state, now));
    last_ = now;
  }
}

// Rates are of this process: what was taken from before is in none.
std::string ReadingLine::text(const Status& state, Clock::time_point now) const {
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const int64_t done = state.done - first_.done;
  if (seconds < 1 || done <= 0) return state.what;
  const double rate = static_cast<double>(state.num_bytes - first_.num_bytes) / seconds;
  std::string line = state.what;
  if (rate > 0) line += fmt::format("  {:.1f} MB/s", rate / 1e6);
  if (state.of <= 0) return line;
  const double left =
      static_cast<double>(state.of - state.done) * seconds / static_cast<double>(done);
  return line + fmt::format("  {} left", format_duration(left));
}

}  // namespace skein
