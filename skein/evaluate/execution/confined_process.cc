#include "skein/evaluate/execution/confined_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>

#include "skein/base/error.h"
#include "skein/base/threads/quiet_thread.h"
#include "skein/evaluate/execution/confined_child.h"
#include "skein/evaluate/execution/refused_step.h"
#include "skein/evaluate/execution/system_call_filter.h"

namespace skein {
namespace {

constexpr unsigned kNobody = 65534;
constexpr int kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                            CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
constexpr size_t kStackBytes = 128 << 10;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

struct Pipe {
  FileDescriptor read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    fail(ErrorCode::kIo, "cannot make a pipe for a program: {}", errno_text(errno));
  }
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// The child gives its files the numbers 0 to 6: none of those that it has may be among these.
FileDescriptor numbered_high(int file) {
  FileDescriptor high(::fcntl(file, F_DUPFD_CLOEXEC, 10));
  if (high.get() < 0) {
    fail(ErrorCode::kIo, "cannot open a file for a program: {}", errno_text(errno));
  }
  return high;
}

bool write_text(pid_t pid, const char* name, const std::string& text) {
  const FileDescriptor file(
      ::open(fmt::format("/proc/{}/{}", pid, name).c_str(), O_WRONLY | O_CLOEXEC));
  return file.get() >= 0 && ::write(file.get(), text.data(), text.size()) == std::ssize(text);
}

// Of root the program is nobody: root's processes are not counted, and own the system's files.
// Returns false if the kernel refuses.
bool write_maps(pid_t pid, ConfinedPlan& plan) {
  const auto map = [](unsigned id) { return fmt::format("{} {} 1\n", kConfinedUser, id); };
  if (::geteuid() == 0 && write_text(pid, "uid_map", map(kNobody))) {
    plan.may_set_groups = write_text(pid, "gid_map", map(kNobody));
    return plan.may_set_groups;
  }
  return write_text(pid, "setgroups", "deny") && write_text(pid, "uid_map", map(::geteuid())) &&
         write_text(pid, "gid_map", map(::getegid()));
}

std::vector<std::pair<int, rlimit>> resource_limits(const ConfinedLimits& limits) {
  constexpr int64_t kStack = int64_t{8} << 20;
  std::vector<std::pair<int, rlimit>> all;
  const auto add = [&](int resource, int64_t value) {
    rlimit former{};
    ::getrlimit(static_cast<__rlimit_resource_t>(resource), &former);
    const rlim_t limit = std::min(static_cast<rlim_t>(value), former.rlim_max);
    all.push_back({resource, {limit, limit}});
  };
  add(RLIMIT_AS, limits.memory_bytes);
  add(RLIMIT_CORE, 0);
  add(RLIMIT_CPU, limits.processor_seconds);
  add(RLIMIT_FSIZE, limits.file_bytes);
  add(RLIMIT_MEMLOCK, 0);
  add(RLIMIT_MSGQUEUE, 0);
  add(RLIMIT_NOFILE, limits.num_files);
  add(RLIMIT_NPROC, limits.num_processes);
  add(RLIMIT_STACK, kStack);
  return all;
}

std::optional<ConfinedReport> read_report(int file) {
  ConfinedReport report{};
  const ssize_t size = retry_interrupted([&] { return ::read(file, &report, sizeof report); });
  if (size == sizeof report) return report;
  return std::nullopt;
}

}  // namespace

// What the child needs until it is the program.
struct ConfinedProcess::Beginning {
  Beginning(const SandboxRoot& root, const ConfinedLimits& limits, ConfinedStart given)
      : start(std::move(given)),
        arguments(pointers(start.arguments)),
        environment(pointers(start.environment)),
        filter(system_call_filter()),
        temporary_options(fmt::format("size={},nr_inodes=4096,mode=0777", limits.temporary_bytes)) {
    Pipe status = make_pipe(), go = make_pipe();
    status_read = std::move(status.read);
    status_write = numbered_high(status.write.get());
    go_read = numbered_high(go.read.get());
    go_write = std::move(go.write);
    for (size_t i = 0; i < start.files.size(); ++i) {
      files[i] = numbered_high(start.files[i]);
      plan.files[i] = files[i].get();
    }
    plan.status = status_write.get();
    plan.go = go_read.get();
    plan.root = &root;
    plan.mount_files.resize(root.mounts.size(), -1);
    plan.temporary_options = temporary_options.c_str();
    plan.limits = resource_limits(limits);
    plan.filter = {static_cast<unsigned short>(filter.size()), filter.data()};
    plan.executable = start.executable.c_str();
    plan.arguments = arguments.data();
    plan.environment = environment.data();
  }

  ConfinedStart start;
  std::vector<char*> arguments, environment;
  std::vector<sock_filter> filter;
  std::string temporary_options;
  std::array<FileDescriptor, 5> files;
  FileDescriptor status_read, status_write, go_read, go_write;
  ConfinedPlan plan;
  pid_t pid = -1;  // written by clone(), before the child begins
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStackBytes);
};

// Makes the child, and waits until it has ended. The thread outlives the child: its death would
// kill it.
void ConfinedProcess::make_and_wait(std::shared_ptr<Beginning> beginning) {
  FileDescriptor status = std::move(beginning->status_write);
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);  // the child begins so
  const pid_t pid = ::clone(confined_child, beginning->stack.get() + kStackBytes,
                            kNamespaces | CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD,
                            &beginning->plan, &beginning->pid);
  if (pid < 0) {
    const ConfinedReport report{ConfinedStep::kClone, errno};
    (void)!::write(status.get(), &report, sizeof report);
  }
  status.reset();
  beginning.reset();
  if (pid > 0) {
    retry_interrupted([&] { return ::waitpid(pid, nullptr, 0); });
  }
}

ConfinedProcess::ConfinedProcess(const SandboxRoot& root, const ConfinedLimits& limits,
                                 ConfinedStart start) {
  require_new_kernel();
  const auto beginning = std::make_shared<Beginning>(root, limits, std::move(start));
  static const bool is_dumpable = ::prctl(PR_GET_DUMPABLE) == 1;
  waiter_ = quiet_thread([held = beginning]() mutable { make_and_wait(std::move(held)); });
  std::optional<ConfinedReport> report = read_report(beginning->status_read.get());
  if (report && report->step == ConfinedStep::kReady) {
    process_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, beginning->pid, 0)));
    write_text(beginning->pid, "oom_score_adj", "1000");  // when memory runs out, it goes first
    if (process_.get() < 0 || !write_maps(beginning->pid, beginning->plan)) {
      report = ConfinedReport{ConfinedStep::kMaps, errno};
      beginning->go_write.reset();
      while (read_report(beginning->status_read.get())) {
      }
    } else {
      const char go = 1;
      (void)!::write(beginning->go_write.get(), &go, 1);
      report = read_report(beginning->status_read.get());
    }
  }
  // The child shared this process's memory, whose dumps a change of user forbids.
  if (is_dumpable) ::prctl(PR_SET_DUMPABLE, 1);
  if (!report) return;
  waiter_.join();
  refuse_step(report->step, report->error, beginning->start.executable);
}

ConfinedProcess::~ConfinedProcess() {
  ::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
  waiter_.join();
}

}  // namespace skein
