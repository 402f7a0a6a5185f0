#include "skein/launch/node/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/machine/program_path.h"

namespace skein {
namespace {

std::string_view name_of(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

// This process's environment, overridden by `changes`.
std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
  std::vector<std::string> merged = changes;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    bool changed = false;
    for (const std::string& change : changes) changed |= name_of(change) == name_of(*variable);
    if (!changed) merged.emplace_back(*variable);
  }
  return merged;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

class SpawnActions {
 public:
  SpawnActions() { check(posix_spawn_file_actions_init(&actions_)); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }

  void redirect(int log) {
    check(posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0));
    check(posix_spawn_file_actions_adddup2(&actions_, log, STDOUT_FILENO));
    check(posix_spawn_file_actions_adddup2(&actions_, log, STDERR_FILENO));
  }
  // A dup2 onto itself takes close-on-exec away, in the child alone.
  void inherit(int file) { check(posix_spawn_file_actions_adddup2(&actions_, file, file)); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

  static void check(int error_number) {
    if (error_number != 0) {
      fail(ErrorCode::kIo, "cannot prepare a worker: {}", errno_text(error_number));
    }
  }

 private:
  posix_spawn_file_actions_t actions_;
};

// The worker's end, and this process's, which sends the signal `wake` when something has come.
std::array<FileDescriptor, 2> make_orders(int wake) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    fail(ErrorCode::kIo, "cannot make a socket for a worker: {}", errno_text(errno));
  }
  ::fcntl(ends[1], F_SETOWN, ::getpid());
  ::fcntl(ends[1], F_SETSIG, wake);
  ::fcntl(ends[1], F_SETFL, O_ASYNC | O_NONBLOCK);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace

WorkerProcess::WorkerProcess(int rank, const Start& start) : rank_(rank) {
  std::vector<std::string> arguments = words_to_start_again("skein");
  arguments.insert(arguments.end(), start.arguments.begin(), start.arguments.end());
  std::vector<std::string> environment = merged_environment(start.environment);

  SpawnActions actions;
  FileDescriptor log;
  if (!start.output.empty()) {
    log = open_to_append(start.output);
    actions.redirect(log.get());
  }
  if (start.output_file >= 0) actions.redirect(start.output_file);
  for (const int file : start.inherited) actions.inherit(file);
  FileDescriptor its_end;
  if (start.wake != 0) {
    auto [its, own] = make_orders(start.wake);
    its_end = std::move(its);
    orders_ = std::move(own);
    actions.inherit(its_end.get());
    environment.push_back(fmt::format("SKEIN_ORDERS={}", its_end.get()));
  }
  posix_spawnattr_t attributes;
  SpawnActions::check(posix_spawnattr_init(&attributes));
  posix_spawnattr_setsigmask(&attributes, &start.signal_mask);
  posix_spawnattr_setflags(
      &attributes,
      static_cast<short>(POSIX_SPAWN_SETSIGMASK | (start.own_group ? POSIX_SPAWN_SETPGROUP : 0)));
  // What runs, even if its path holds another file by now.
  const std::string program = program_to_start();
  const int refused = ::posix_spawn(&pid_, program.c_str(), actions.get(), &attributes,
                                    pointers(arguments).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  if (refused != 0) {
    pid_ = -1;
    const bool has_proc = program == kProgramToStart;
    fail(ErrorCode::kIo, "cannot start the worker of rank {}: {}: {}{}", rank, program,
         errno_text(refused),
         has_proc
             ? ""
             : "; there is no /proc here, which says where this program lies: mount it (`mount "
               "-t proc proc /proc`), or start the program by its full path");
  }
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : rank_(other.rank_),
      pid_(std::exchange(other.pid_, -1)),
      orders_(std::move(other.orders_)),
      stays_(other.stays_) {}

WorkerProcess::~WorkerProcess() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void WorkerProcess::send(int signal) const {
  if (running()) ::kill(pid_, signal);
}

std::optional<int> WorkerProcess::poll() {
  int status = 0;
  if (pid_ <= 0) return std::nullopt;
  if (const std::optional<int> left = hear()) return left;
  const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return std::nullopt;
  const pid_t pid = std::exchange(pid_, -1);
  if (ended < 0) {
    fail(ErrorCode::kInternal, "cannot tell how process {}, rank {}, ended: {}", pid, rank_,
         errno_text(errno));
  }
  return std::exchange(stays_, false) ? std::nullopt : std::optional(status);
}

std::optional<int> WorkerProcess::hear() {
  constexpr std::string_view kEnded = "ended ", kNoted = "noted";
  std::array<char, 32> text{};
  if (orders_.get() < 0 || stays_) return std::nullopt;
  const ssize_t size = ::recv(orders_.get(), text.data(), text.size(), MSG_DONTWAIT);
  if (size <= 0) return std::nullopt;
  const std::string_view said(text.data(), static_cast<size_t>(size));
  int code = 0;
  if (!said.starts_with(kEnded) ||
      std::from_chars(said.begin() + kEnded.size(), said.end(), code).ptr != said.end()) {
    return std::nullopt;  // it is not told anything, and ends
  }
  if (::send(orders_.get(), kNoted.data(), kNoted.size(), MSG_NOSIGNAL) < 0) return std::nullopt;
  stays_ = true;
  return W_EXITCODE(code, 0);
}

// It has said so long ago, unless it was suspended or starved since.
bool WorkerProcess::is_ready() {
  constexpr int kPatienceMs = 1000;
  std::array<char, 32> text{};
  pollfd said{orders_.get(), POLLIN, 0};
  if (::poll(&said, 1, kPatienceMs) <= 0) return false;
  const ssize_t size = ::recv(orders_.get(), text.data(), text.size(), MSG_DONTWAIT);
  return size > 0 && std::string_view(text.data(), static_cast<size_t>(size)) == "ready";
}

bool WorkerProcess::go_on(int rank, const std::vector<std::string>& environment) {
  poll();
  if (!stays() || !is_ready()) return false;
  std::string text;
  for (const std::string& variable : environment) text += variable + '\n';
  if (::send(orders_.get(), text.data(), text.size(), MSG_NOSIGNAL) < 0) return false;
  rank_ = rank;
  stays_ = false;
  return true;
}

}  // namespace skein
