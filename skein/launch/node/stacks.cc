#include "skein/launch/node/stacks.h"

#include <execinfo.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <cstring>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/files/open_file.h"

namespace skein {
namespace {

int stack_signal() { return SIGRTMIN + 1; }

std::atomic_flag g_writes = ATOMIC_FLAG_INIT;  // one thread at a time

std::atomic<int> g_output = STDERR_FILENO;

void put(const char* text, size_t size) {
  if (::write(g_output, text, size) < 0) return;  // nobody could be told
}

void write_stack(int) {
  const int saved = errno;
  // A thread that was stopped while it wrote must not hold up the others for ever.
  for (int tries = 0; tries < 1000 && g_writes.test_and_set(std::memory_order_acquire); ++tries) {
    const struct timespec moment = {0, 1'000'000};
    ::nanosleep(&moment, nullptr);
  }
  std::array<char, 16> name{};
  ::prctl(PR_GET_NAME, name.data());
  std::array<char, 32> number{};
  const auto end = std::to_chars(number.begin(), number.end(), ::syscall(SYS_gettid)).ptr;
  put("stack of thread ", 16);
  put(number.data(), static_cast<size_t>(end - number.data()));
  put(" ", 1);
  put(name.data(), ::strnlen(name.data(), name.size()));
  put(":\n", 2);
  std::array<void*, 64> frames{};
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  ::backtrace_symbols_fd(frames.data(), count, g_output);
  g_writes.clear(std::memory_order_release);
  errno = saved;
}

std::string first_line(const fs::path& path) {
  const std::string text = read_file_if_any(path);
  return text.substr(0, text.find('\n'));
}

// "S (sleeping)", from the line that begins with "State:".
std::string state_of(const fs::path& status) {
  constexpr std::string_view kState = "State:\t";
  const std::string text = read_file_if_any(status);
  const size_t begin = text.find(kState);
  if (begin == text.npos) return "gone";
  const size_t from = begin + kState.size();
  return text.substr(from, text.find('\n', from) - from);
}

}  // namespace

void answer_with_stacks(const fs::path& log) {
  if (!log.empty()) {
    Result<FileDescriptor> opened = try_run([&] { return open_to_append(log); });
    const int file = opened.ok() ? opened.value().get() : -1;
    // For as long as the process lives, in place of the log of the generation before.
    if (file >= 0 && g_output != STDERR_FILENO) {
      ::dup3(file, g_output, O_CLOEXEC);
    } else if (file >= 0) {
      g_output = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
    }
  }
  std::array<void*, 1> frame{};
  ::backtrace(frame.data(), 1);
  struct sigaction action {};
  action.sa_handler = write_stack;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  sigaction(stack_signal(), &action, nullptr);
}

std::string ask_for_stacks(pid_t pid) {
  std::string said;
  std::error_code error;
  const fs::path tasks = fmt::format("/proc/{}/task", pid);
  for (fs::directory_iterator task(tasks, error), end; !error && task != end;
       task.increment(error)) {
    const std::string thread = task->path().filename().string();
    const std::string where = first_line(task->path() / "wchan");
    said += fmt::format("thread {} {}: {}{}\n", thread, first_line(task->path() / "comm"),
                        state_of(task->path() / "status"),
                        where.empty() || where == "0" ? "" : " in " + where);
    ::syscall(SYS_tgkill, pid, std::stoi(thread), stack_signal());
  }
  return said;
}

}  // namespace skein
