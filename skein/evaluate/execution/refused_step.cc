#include "skein/evaluate/execution/refused_step.h"

#include <sys/utsname.h>

#include <cerrno>
#include <charconv>
#include <string_view>

#include "skein/base/error.h"
#include "skein/base/files/file.h"

namespace skein {
namespace {

std::string_view step_text(ConfinedStep step) {
  switch (step) {
    case ConfinedStep::kReady:
    case ConfinedStep::kClone:
      return "making the namespaces";
    case ConfinedStep::kFiles:
      return "passing the files";
    case ConfinedStep::kMaps:
      return "mapping the user";
    case ConfinedStep::kPrivateMounts:
      return "making the mounts private";
    case ConfinedStep::kOpenMount:
      return "copying the mounts of the system's folders";
    case ConfinedStep::kUser:
      return "becoming the user";
    case ConfinedStep::kMakeRoot:
      return "mounting a file system in memory on /tmp";
    case ConfinedStep::kFillRoot:
      return "mounting the system's folders";
    case ConfinedStep::kEnterRoot:
      return "entering the new root";
    case ConfinedStep::kLimits:
      return "setting the limits";
    case ConfinedStep::kFilter:
      return "setting the filter of system calls";
    case ConfinedStep::kExecute:
      break;
  }
  return "starting Python";
}

bool has_setting(const char* name, std::string_view value) {
  const std::string text = read_file_if_any(fs::path("/proc/sys") / name);
  return !text.empty() && text.substr(0, text.find('\n')) == value;
}

// What keeps namespaces from this user, as far as the kernel's settings say.
std::string_view way_out() {
  if (has_setting("user/max_user_namespaces", "0")) {
    return "user namespaces are switched off: `sysctl -w user.max_user_namespaces=10000`";
  }
  if (has_setting("kernel/unprivileged_userns_clone", "0")) {
    return "user namespaces are root's alone: `sysctl -w kernel.unprivileged_userns_clone=1`";
  }
  if (has_setting("kernel/apparmor_restrict_unprivileged_userns", "1")) {
    return "AppArmor restricts user namespaces: "
           "`sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`";
  }
  return "in a container, allow namespaces and mounts: `docker run --security-opt "
         "seccomp=unconfined --security-opt apparmor=unconfined`; elsewhere ask who runs the "
         "machine for user namespaces";
}

}  // namespace

void refuse_step(ConfinedStep step, int error_number, const std::string& executable) {
  if (step == ConfinedStep::kExecute) {
    fail(ErrorCode::kUnsupported,
         "Python does not start in the sandbox: {}: {}: expected a program that every user may "
         "execute, in /usr or in a folder of its own",
         executable, errno_text(error_number));
  }
  const bool is_full = error_number == ENOMEM || error_number == EAGAIN || error_number == EMFILE;
  if (is_full) {
    fail(ErrorCode::kIo, "the sandbox of the model's programs: {}: {}", step_text(step),
         errno_text(error_number));
  }
  fail(ErrorCode::kUnsupported,
       "programs of the model run in namespaces alone, and {} is refused here: {}. {}",
       step_text(step), errno_text(error_number), way_out());
}

void require_new_kernel() {
  constexpr int kMajor = 5, kMinor = 14;
  utsname system{};
  ::uname(&system);
  const std::string_view release = system.release;
  int major = 0, minor = 0;
  const auto read = std::from_chars(release.begin(), release.end(), major);
  if (read.ptr < release.end()) std::from_chars(read.ptr + 1, release.end(), minor);
  if (major > kMajor || (major == kMajor && minor >= kMinor)) return;
  fail(ErrorCode::kUnsupported,
       "programs of the model are run on Linux 5.14 or newer, where their processes are counted "
       "apart from the user's; this is {}",
       release);
}

}  // namespace skein
