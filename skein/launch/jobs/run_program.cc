#include "skein/launch/jobs/run_program.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/exception.h"
#include "skein/base/files/file.h"

namespace skein {
namespace {

// A file in memory: unlike a pipe it never makes a writer wait.
FileDescriptor memory_file(const std::string& name) {
  FileDescriptor file(::memfd_create(name.c_str(), MFD_CLOEXEC));
  if (file.get() < 0) {
    fail(ErrorCode::kIo, "cannot make a file for {}: {}", name, errno_text(errno));
  }
  return file;
}

std::string read_from_start(int file, const std::string& name) {
  std::string text;
  std::array<char, 4096> part{};
  for (off_t at = 0;;) {
    const ssize_t count = ::pread(file, part.data(), part.size(), at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      fail(ErrorCode::kIo, "cannot read what {} printed: {}", name, errno_text(errno));
    }
    if (count == 0) return text.substr(0, text.find_last_not_of('\n') + 1);
    text.append(part.data(), static_cast<size_t>(count));
    at += count;
  }
}

}  // namespace

std::string run_program(std::span<const std::string> command, std::string_view input,
                        std::string_view advice) {
  const std::string& name = command.front();
  const FileDescriptor in = memory_file(name), out = memory_file(name);
  write_all(in.get(), std::as_bytes(std::span(input)), name);
  ::lseek(in.get(), 0, SEEK_SET);

  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out.get(), STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t own;  // what this program ignores, and others do not expect
  sigemptyset(&own);
  for (const int signal : {SIGPIPE, SIGXFSZ}) sigaddset(&own, signal);
  posix_spawnattr_setsigdefault(&attributes, &own);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int refused =
      ::posix_spawnp(&pid, name.c_str(), &files, &attributes, arguments.data(), ::environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (refused == ENOENT) fail(ErrorCode::kNotFound, "{} is not on this machine: {}", name, advice);
  if (refused != 0) fail(ErrorCode::kIo, "cannot start {}: {}", name, errno_text(refused));

  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) fail(ErrorCode::kIo, "cannot wait for {}: {}", name, errno_text(errno));
  }
  if (WIFSIGNALED(status))
    fail(ErrorCode::kIo, "{} was ended by signal {}", name, WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) {
    fail(ErrorCode::kIo, "{} ended with {}: see what it said", name, WEXITSTATUS(status));
  }
  return read_from_start(out.get(), name);
}

}  // namespace skein
