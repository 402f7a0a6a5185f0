#include "skein/evaluate/execution/python_interpreter.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <sstream>

#include "skein/base/error.h"
#include "skein/base/text/visible_text.h"

namespace skein {
namespace {

constexpr const char* kQuestion =
    "import os, sys\n"
    "print(int(sys.version_info >= (3, 6)))\n"
    "print(os.path.realpath(getattr(sys, '_base_executable', None) or sys.executable))\n"
    "print(sys.base_prefix)\n"
    "print(sys.base_exec_prefix)\n";

// What `python3 -I -c kQuestion` prints; both of its outputs if it fails.
struct Answer {
  int status = 0;
  std::string text;
};

std::string read_to_end(int file) {
  constexpr size_t kMost = 16384;
  std::string text;
  std::array<char, 1024> part{};
  ssize_t size = 0;
  while (text.size() < kMost &&
         (size = retry_interrupted([&] { return ::read(file, part.data(), part.size()); })) > 0) {
    text.append(part.data(), static_cast<size_t>(size));
  }
  return text;
}

Answer ask_python() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    fail(ErrorCode::kIo, "cannot make a pipe for python3: {}", errno_text(errno));
  }
  const FileDescriptor output(ends[0]);
  FileDescriptor input(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDERR_FILENO);
  std::array<std::string, 4> words = {"python3", "-I", "-c", kQuestion};
  std::array<char*, 5> arguments = {words[0].data(), words[1].data(), words[2].data(),
                                    words[3].data(), nullptr};
  pid_t pid = -1;
  const int refused = ::posix_spawnp(&pid, "python3", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (refused == ENOENT) {
    fail(ErrorCode::kNotFound,
         "there is no python3 in PATH, and the programs of the model are written in Python: "
         "install Python 3.6 or newer");
  }
  if (refused != 0) fail(ErrorCode::kIo, "cannot start python3: {}", errno_text(refused));
  input.reset();
  Answer answer;
  answer.text = read_to_end(output.get());
  retry_interrupted([&] { return ::waitpid(pid, &answer.status, 0); });
  return answer;
}

}  // namespace

PythonInterpreter find_python() {
  const Answer answer = ask_python();
  std::istringstream lines(answer.text);
  std::string is_new, executable, prefix, exec_prefix;
  std::getline(lines, is_new);
  std::getline(lines, executable);
  std::getline(lines, prefix);
  std::getline(lines, exec_prefix);
  if (answer.status != 0 || is_new != "1" || executable.empty() || prefix.empty()) {
    fail(ErrorCode::kUnsupported, "the python3 of PATH: expected Python 3.6 or newer; it says: {}",
         visible_line(answer.text));
  }
  PythonInterpreter python;
  python.executable = executable;
  for (const std::string& folder : {prefix, exec_prefix}) {
    if (folder == "/" || folder.empty()) continue;
    python.folders.push_back(fs::path(folder) / "bin");
    python.folders.push_back(fs::path(folder) / "lib");
  }
  return python;
}

}  // namespace skein
