#include "skein/evaluate/execution/confined_child.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>

namespace skein {
namespace {

constexpr int kNumFiles = 5, kStatus = 5, kGo = 6;

[[noreturn]] void end_with(ConfinedStep step) {
  const ConfinedReport report{step, errno};
  (void)!::write(kStatus, &report, sizeof report);
  for (;;) ::syscall(SYS_exit_group, 127);
}

void require(bool done, ConfinedStep step) {
  if (!done) end_with(step);
}

// Handlers of the parent would run in its memory. All signals are held back until the program
// begins, and then they have their default effects.
void reset_signals() {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &action, nullptr);
}

// Leaves files 0 to 6 open, of which the last two end with the exec.
void take_files(const ConfinedPlan& plan) {
  bool done = ::dup3(plan.status, kStatus, O_CLOEXEC) >= 0;
  require(done, ConfinedStep::kFiles);
  done = ::dup3(plan.go, kGo, O_CLOEXEC) >= 0;
  for (int i = 0; i < kNumFiles; ++i) done = done && ::dup2(plan.files[i], i) >= 0;
  done = done && ::syscall(SYS_close_range, kGo + 1, ~0U, 0) == 0;
  require(done, ConfinedStep::kFiles);
}

// The parent writes the maps of users and groups in between. If it dies, the read ends.
void wait_for_maps() {
  const ConfinedReport ready{ConfinedStep::kReady, 0};
  require(::write(kStatus, &ready, sizeof ready) == sizeof ready, ConfinedStep::kMaps);
  char go = 0;
  require(::read(kGo, &go, 1) == 1, ConfinedStep::kMaps);
}

// Copies of the mounts, taken while their paths still mean what they mean for the parent.
void open_mounts(ConfinedPlan& plan) {
  require(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0,
          ConfinedStep::kPrivateMounts);
  const auto& mounts = plan.root->mounts;
  for (size_t i = 0; i < mounts.size(); ++i) {
    const long file = ::syscall(SYS_open_tree, AT_FDCWD, mounts[i].source.c_str(),
                                OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    require(file >= 0, ConfinedStep::kOpenMount);
    mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID;
    attributes.attr_set |= mounts[i].is_device ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_NODEV;
    require(::syscall(SYS_mount_setattr, file, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes,
                      sizeof attributes) == 0,
            ConfinedStep::kOpenMount);
    plan.mount_files[i] = static_cast<int>(file);
  }
}

void become_user(const ConfinedPlan& plan) {
  bool done = !plan.may_set_groups || ::syscall(SYS_setgroups, 0, nullptr) == 0;
  done = done && ::syscall(SYS_setresgid, kConfinedUser, kConfinedUser, kConfinedUser) == 0;
  done = done && ::syscall(SYS_setresuid, kConfinedUser, kConfinedUser, kConfinedUser) == 0;
  done = done && ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;  // a change of user takes it away
  require(done, ConfinedStep::kUser);
  pollfd parent{kGo, 0, 0};
  require(::poll(&parent, 1, 0) == 0, ConfinedStep::kUser);  // the parent has not died before
}

void fill_root(const ConfinedPlan& plan) {
  bool done = true;
  for (const std::string& folder : plan.root->folders) {
    done = done && ::mkdirat(AT_FDCWD, folder.c_str(), 0755) == 0;
  }
  const auto& mounts = plan.root->mounts;
  for (size_t i = 0; i < mounts.size() && done; ++i) {
    const char* const target = mounts[i].target.c_str();
    if (!mounts[i].is_folder) {
      const int file = ::open(target, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0444);
      done = file >= 0 && ::close(file) == 0;
    }
    done = done && ::syscall(SYS_move_mount, plan.mount_files[i], "", AT_FDCWD, target,
                             MOVE_MOUNT_F_EMPTY_PATH) == 0;
    ::close(plan.mount_files[i]);
  }
  for (const auto& link : plan.root->links) {
    done = done && ::symlinkat(link.first.c_str(), AT_FDCWD, link.second.c_str()) == 0;
  }
  done = done && ::mount("none", "tmp", "tmpfs", MS_NOSUID | MS_NODEV, plan.temporary_options) == 0;
  require(done, ConfinedStep::kFillRoot);
}

void enter_root(const ConfinedPlan& plan) {
  bool done = ::mount("none", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0755") == 0;
  done = done && ::chdir("/tmp") == 0;
  require(done, ConfinedStep::kMakeRoot);
  fill_root(plan);
  done = ::syscall(SYS_pivot_root, ".", ".") == 0 && ::umount2(".", MNT_DETACH) == 0;
  done = done && ::chdir("/") == 0;
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  done =
      done && ::syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, &attributes, sizeof attributes) == 0;
  done = done && ::chdir("/tmp") == 0;
  require(done, ConfinedStep::kEnterRoot);
}

void limit(const ConfinedPlan& plan) {
  constexpr char kHost[] = "sandbox";
  bool done = ::sethostname(kHost, sizeof kHost - 1) == 0;
  ::setsid();  // no terminal, and no signal that the terminal sends to the parent's group
  ::umask(022);
  for (const auto& [resource, value] : plan.limits) {
    done = done && ::setrlimit(static_cast<__rlimit_resource_t>(resource), &value) == 0;
  }
  for (unsigned long right = 0; ::prctl(PR_CAPBSET_DROP, right) == 0;) ++right;
  require(done, ConfinedStep::kLimits);
  done = ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  done = done && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &plan.filter) == 0;
  require(done, ConfinedStep::kFilter);
}

}  // namespace

int confined_child(void* given) {
  ConfinedPlan& plan = *static_cast<ConfinedPlan*>(given);
  reset_signals();
  take_files(plan);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  wait_for_maps();
  open_mounts(plan);
  become_user(plan);
  enter_root(plan);
  limit(plan);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(plan.executable, plan.arguments, plan.environment);
  end_with(ConfinedStep::kExecute);
}

}  // namespace skein
