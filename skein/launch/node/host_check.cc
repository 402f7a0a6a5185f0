#include "skein/launch/node/host_check.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "skein/base/ending.h"
#include "skein/base/error.h"

namespace skein {
namespace {

constexpr std::string_view kFailed = ": FAILED";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

HostCheck::HostCheck(int64_t number, const std::vector<std::string>& arguments,
                     const sigset_t& signal_mask)
    : number_(number), output_(::memfd_create("skein-check", MFD_CLOEXEC)) {
  if (output_.get() < 0) {
    fail(ErrorCode::kIo, "cannot make the memory for the check of this machine: {}",
         errno_text(errno));
  }
  WorkerProcess::Start start;
  start.arguments = arguments;
  start.environment = {fmt::format("SKEIN_PARENT_PID={}", ::getpid())};
  start.output_file = output_.get();
  start.signal_mask = signal_mask;
  process_ = std::make_unique<WorkerProcess>(0, start);
}

HostCheck::~HostCheck() {
  kill();
  process_->let_go();
}

std::optional<CheckOutcome> HostCheck::poll() {
  const std::optional<int> status = process_->poll();
  if (!status) return std::nullopt;
  ::lseek(output_.get(), 0, SEEK_SET);  // the check wrote by the same description
  return outcome_of(read_file(output_, "the output of the check", 1 << 20), *status);
}

CheckOutcome outcome_of(const std::string& output, int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitDone) return {};
  const std::vector<std::string> lines = lines_of(output);
  std::string problem;
  for (const std::string& line : lines) {
    const size_t failed = line.find(kFailed);
    if (failed == line.npos) continue;
    problem += (problem.empty() ? "" : "; ") + line.substr(0, failed) + ":" +
               line.substr(failed + kFailed.size());
  }
  if (!problem.empty()) return {.problem = problem, .unmade = ""};
  const std::string last = lines.empty() ? "nothing" : lines.back();
  if (WIFSIGNALED(status)) {
    return {.problem = fmt::format("its check was killed by signal {} after it said: {}",
                                   WTERMSIG(status), last),
            .unmade = ""};
  }
  return {.problem = "",
          .unmade =
              fmt::format("its check ended with {} after it said: {}", WEXITSTATUS(status), last)};
}

}  // namespace skein
