#include "skein/launch/node/worker_failure.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "skein/base/files/open_file.h"
#include "skein/base/text/json_text.h"

namespace skein {
namespace {

constexpr int64_t kMaxReportBytes = 1 << 20;

fs::path report_path(const fs::path& rendezvous_folder, int rank) {
  return rendezvous_folder / fmt::format("failed-{:05}", rank);
}

std::string killed_text(int signal, bool out_of_memory) {
  const char* name = sigabbrev_np(signal);
  std::string text = fmt::format("was killed by signal {}", signal);
  if (name != nullptr) text += fmt::format(" (SIG{})", name);
  if (signal == SIGKILL && out_of_memory) text += ", because memory ran out (see dmesg)";
  return text;
}

}  // namespace

void report_failure(const fs::path& rendezvous_folder, int rank, const Error& error) {
  const Json report = {{"code", static_cast<int>(error.code())}, {"message", error.what()}};
  write_file_atomic(report_path(rendezvous_folder, rank), json_text(report));
}

std::optional<Error> read_failure(const fs::path& rendezvous_folder, int rank) {
  const fs::path path = report_path(rendezvous_folder, rank);
  try {
    const std::optional<std::string> text = read_file_if_there(path, kMaxReportBytes);
    if (!text) return std::nullopt;
    const Json report = parse_json(*text, path.string());
    const int code = std::clamp(report.at("code").get<int>(), 0, kNumErrorCodes - 1);
    return Error(static_cast<ErrorCode>(code), report.at("message").get<std::string>());
  } catch (const std::exception& problem) {
    return Error(ErrorCode::kInternal,
                 fmt::format("its report cannot be read: {}", problem.what()));
  }
}

WorkerFailure worker_failure(int rank, int status, const std::optional<Error>& report,
                             const fs::path& log, bool out_of_memory, bool is_first) {
  WorkerFailure failure;
  failure.rank = rank;
  std::string what;
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    failure.code = ErrorCode::kPeerLost;
    failure.ending = out_of_memory                            ? Ending::kOutOfMemory
                     : signal == SIGKILL || signal == SIGTERM ? Ending::kKilled
                                                              : Ending::kCrashed;
    what = killed_text(signal, out_of_memory);
  } else if (report) {
    failure.code = report->code();
    failure.ending = ending_of(report->code(), is_first);
    failure.told = true;
    what = fmt::format("failed: {}", report->what());
  } else {
    const int exit_code = WEXITSTATUS(status);
    failure.code = error_code_of_exit(exit_code, ErrorCode::kInternal);
    failure.ending = ending_of_exit(exit_code);
    what = fmt::format("ended with exit code {} without saying why", exit_code);
  }
  failure.message = fmt::format("rank {} {} (log: {})", rank, what, log.string());
  return failure;
}

int64_t oom_kills() {
  int64_t kills = 0;
  for (const char* path : {"/sys/fs/cgroup/memory.events", "/proc/vmstat"}) {
    const std::string text = read_file_if_any(path);
    const size_t at = text.find("oom_kill ");
    if (at != text.npos) kills += std::atoll(text.c_str() + at + 9);
  }
  return kills;
}

}  // namespace skein
