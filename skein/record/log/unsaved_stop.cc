#include "skein/record/log/unsaved_stop.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <exception>
#include <string_view>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/machine/machine.h"
#include "skein/base/text/log.h"
#include "skein/record/files/event_fields.h"
#include "skein/record/files/events.h"
#include "skein/record/files/failure_record.h"

namespace skein {
namespace {

// A line in memory of its own: a signal handler must not allocate.
class SignalSafeLine {
 public:
  void add(std::string_view text) {
    const size_t count = std::min(text.size(), text_.size() - size_);
    text.copy(text_.data() + size_, count);
    size_ += count;
  }
  void add(int64_t number) {
    std::array<char, 20> digits{};
    const char* end = std::to_chars(digits.begin(), digits.end(), number).ptr;
    add({digits.data(), static_cast<size_t>(end - digits.data())});
  }
  void add_now(clockid_t clock) {  // seconds, to the microsecond
    struct timespec now {};
    ::clock_gettime(clock, &now);
    add(static_cast<int64_t>(now.tv_sec));
    std::array<char, 7> fraction = {'.', '0', '0', '0', '0', '0', '0'};
    int64_t micros = now.tv_nsec / 1000;
    for (size_t i = fraction.size() - 1; i > 0; --i, micros /= 10) {
      fraction.at(i) = static_cast<char>('0' + micros % 10);
    }
    add({fraction.data(), fraction.size()});
  }
  std::string_view text() const { return {text_.data(), size_}; }

 private:
  std::array<char, 1024> text_{};
  size_t size_ = 0;
};

}  // namespace

UnsavedStop::UnsavedStop(const fs::path& run_dir) {
  const fs::path path = run_dir / "events.jsonl";
  file_ = open_lines(path, /*create=*/false);
  machine_ = fmt::format(R"(, "host": "{}", "boot": "{}", "clock": )", node_name(), boot_name());
}

void UnsavedStop::write(int64_t step, int64_t saved_step) const noexcept {
  SignalSafeLine line;
  line.add(R"({"time": )");
  line.add_now(CLOCK_REALTIME);
  line.add(R"(, "event": "stop", "step": )");
  line.add(step);
  line.add(R"(, "reason": ")");
  line.add(kUnsavedStopReason);
  line.add(R"(", "saved": false, "saved_step": )");
  line.add(saved_step);
  line.add(machine_);
  line.add_now(CLOCK_BOOTTIME);
  line.add("}\n");
  if (::write(file_.get(), line.text().data(), line.text().size()) < 0) return;  // it is lost
}

void record_unsaved_stop(const fs::path& run_dir, int64_t saved_step) noexcept {
  try {
    if (!is_there(run_dir / "events.jsonl")) return;
    bool stopped = false;
    for_each_json_line(run_dir / "events.jsonl", [&](const Json& json) {
      const std::string event = text_or(json, "event", "");
      if (event == "start" || event == "stop") stopped = event == "stop";
    });
    if (stopped) return;
    OrderedJson fields = OrderedJson::object();
    if (const auto step = last_known_step(run_dir)) fields["step"] = *step;
    fields["reason"] = kUnsavedStopReason;
    fields["saved"] = false;
    fields["saved_step"] = saved_step;
    EventLog(run_dir).append("stop", fields);
  } catch (const std::exception& problem) {
    log::error("cannot write down in {} that the run was ended without saving: {}",
               run_dir.string(), problem.what());
  }
}

}  // namespace skein
