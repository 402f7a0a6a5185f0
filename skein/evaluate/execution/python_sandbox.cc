#include "skein/evaluate/execution/python_sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <span>

#include "skein/base/error.h"
#include "skein/base/text/visible_text.h"
#include "skein/base/threads/parallel_for.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kStartSeconds = 60;  // of Python itself, on a machine that is busy
constexpr size_t kMostReport = 4096, kMostErrors = 4096;

// The first process of the namespace waits for the second, which runs the program. File 3 is the
// program; file 4 takes lines: begun, the verdict, ended and a status.
constexpr const char* kRunner = R"(
import io, os, sys

sys.path[:] = [folder for folder in sys.path if folder]
write, end, own_pid = os.write, os._exit, os.getpid


class Stream(io.TextIOBase):
    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError(f"string argument expected, got {type(text).__name__!r}")
        return len(text)


def describe(error):
    name = type(error).__name__
    try:
        text = " ".join(str(error)[:200].splitlines())
    except BaseException:
        text = ""
    return f"failed: {name}: {text}\n".encode("utf-8", "backslashreplace")


def run(program):
    pid = own_pid()
    sys.stdin, sys.stdout, sys.stderr = Stream(), Stream(), Stream()
    write(4, b"begun\n")
    try:
        exec(program, {})
        verdict = b"passed\n"
    except BaseException as error:
        verdict = describe(error)
    if own_pid() == pid:
        write(4, verdict)
    end(0)


with open(3, "rb") as file:
    text = file.read().decode("utf-8", "surrogateescape")
child = os.fork()
if child == 0:
    run(text)
while True:
    ended, status = os.wait()
    if ended == child:
        write(4, b"ended %d\n" % status)
        end(0)
)";

FileDescriptor file_with(const std::string& text) {
  FileDescriptor file(::memfd_create("skein-program", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.get() < 0) {
    fail(ErrorCode::kIo, "cannot make a file in memory for a program: {}", errno_text(errno));
  }
  write_all(file.get(), std::as_bytes(std::span(text)), "a program");
  ::lseek(file.get(), 0, SEEK_SET);
  ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  return file;
}

// What comes out of a pipe, up to a number of bytes; the rest is read and dropped.
class Drain {
 public:
  explicit Drain(size_t most) : most_(most) {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
      fail(ErrorCode::kIo, "cannot make a pipe for a program: {}", errno_text(errno));
    }
    read_ = FileDescriptor(ends[0]);
    write_ = FileDescriptor(ends[1]);
    ::fcntl(ends[1], F_SETFL, 0);  // the program's end waits
  }
  int file() const { return read_.get(); }
  int program_end() const { return write_.get(); }
  void close_program_end() { write_.reset(); }
  const std::string& text() const { return text_; }
  bool has_ended() const { return has_ended_; }

  void read_some() {
    char part[4096];
    const ssize_t size = ::read(read_.get(), part, sizeof part);
    if (size == 0) has_ended_ = true;
    if (size <= 0) return;
    text_.append(part, std::min(static_cast<size_t>(size), most_ - text_.size()));
  }

 private:
  size_t most_;
  FileDescriptor read_, write_;
  std::string text_;
  bool has_ended_ = false;
};

// The lines of a program's report.
class Report {
 public:
  explicit Report(const std::string& text) {
    for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
      lines_.push_back(text.substr(begin, end - begin));
    }
  }
  bool has_begun() const { return !lines_.empty() && lines_[0] == "begun"; }
  const std::string* verdict() const { return lines_.size() > 1 ? &lines_[1] : nullptr; }

 private:
  std::vector<std::string> lines_;
};

ProgramResult result_of(const std::string& verdict) {
  constexpr std::string_view kEnded = "ended ";
  if (verdict == "passed") return {ProgramVerdict::kPassed, verdict};
  if (!verdict.starts_with(kEnded)) return {ProgramVerdict::kFailed, visible_line(verdict)};
  int status = 0;
  std::from_chars(verdict.data() + kEnded.size(), verdict.data() + verdict.size(), status);
  if (WIFSIGNALED(status)) {
    return {ProgramVerdict::kFailed, fmt::format("failed: ended by signal {}", WTERMSIG(status))};
  }
  return {ProgramVerdict::kFailed,
          fmt::format("failed: left with exit code {} before its end", WEXITSTATUS(status))};
}

class Deadline {
 public:
  explicit Deadline(double seconds)
      : end_(Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))) {}
  int left_ms() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
    return static_cast<int>(std::max<int64_t>(left.count(), 0));
  }

 private:
  Clock::time_point end_;
};

}  // namespace

PythonSandbox::PythonSandbox(double seconds, const ConfinedLimits& limits)
    : seconds_(seconds), limits_(limits), python_(find_python()), root_(sandbox_root(python_)) {
  limits_.processor_seconds = static_cast<int64_t>(std::ceil(seconds)) + 2;
  const ProgramResult result = run("assert sum([2, 3]) == 5\n");
  if (result.verdict == ProgramVerdict::kPassed) return;
  fail(ErrorCode::kUnsupported, "{} does not run a program of one line in the sandbox: {}",
       python_.executable, result.reason);
}

ProgramResult PythonSandbox::run(const std::string& program) const {
  const FileDescriptor text = file_with(program);
  const FileDescriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  Drain report(kMostReport), errors(kMostErrors);
  ConfinedStart start;
  start.executable = python_.executable;
  // Python looks for its library from the name that it is started under.
  start.arguments = {python_.executable, "-s", "-B", "-X", "utf8", "-c", kRunner};
  start.environment = {"PATH=/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", "PYTHONHASHSEED=0"};
  start.files = {null.get(), null.get(), errors.program_end(), text.get(), report.program_end()};
  const ConfinedProcess process(root_, limits_, std::move(start));
  report.close_program_end();
  errors.close_program_end();
  Deadline deadline(kStartSeconds);
  bool has_begun = false;
  for (;;) {
    const Report lines(report.text());
    if (!has_begun && lines.has_begun()) {
      has_begun = true;
      deadline = Deadline(seconds_);
    }
    if (has_begun && lines.verdict() != nullptr) return result_of(*lines.verdict());
    const int left = deadline.left_ms();
    if (report.has_ended() || left == 0) break;
    pollfd files[] = {{report.file(), POLLIN, 0},
                      {errors.has_ended() ? -1 : errors.file(), POLLIN, 0}};
    if (::poll(files, 2, left) <= 0) continue;
    if (files[0].revents != 0) report.read_some();
    if (files[1].revents != 0) errors.read_some();
  }
  if (!has_begun) {
    fail(ErrorCode::kUnsupported, "{} does not begin a program in the sandbox: {}",
         python_.executable, visible_line(errors.text()));
  }
  if (report.has_ended()) return {ProgramVerdict::kFailed, "failed: its process was killed"};
  return {ProgramVerdict::kTimedOut, fmt::format("timed out after {} s", seconds_)};
}

std::vector<ProgramResult> PythonSandbox::run_all(const std::vector<std::string>& programs,
                                                  int num_threads) const {
  struct Item {
    const std::string* program;
    ProgramResult result;
  };
  std::vector<Item> items;
  for (const std::string& program : programs) items.push_back({&program, {}});
  parallel_for_each(items, num_threads, [&](Item& item) { item.result = run(*item.program); });
  std::vector<ProgramResult> results;
  for (Item& item : items) results.push_back(std::move(item.result));
  return results;
}

}  // namespace skein
