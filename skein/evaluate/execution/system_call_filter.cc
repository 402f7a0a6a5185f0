#include "skein/evaluate/execution/system_call_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "skein/base/error.h"

namespace skein {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif
constexpr uint32_t kFirstX32Call = 0x40000000;

constexpr uint32_t kRefused[] = {
    SYS_acct,
    SYS_add_key,
    SYS_adjtimex,
    SYS_bpf,
    SYS_chroot,
    SYS_clock_adjtime,
    SYS_clock_settime,
    SYS_delete_module,
    SYS_fanotify_init,
    SYS_finit_module,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fsopen,
    SYS_fspick,
    SYS_init_module,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_io_uring_setup,
    SYS_kcmp,
    SYS_kexec_file_load,
    SYS_kexec_load,
    SYS_keyctl,
    SYS_mount,
    SYS_mount_setattr,
    SYS_move_mount,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_open_tree,
    SYS_perf_event_open,
    SYS_pidfd_getfd,
    SYS_pivot_root,
    SYS_process_madvise,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_ptrace,
    SYS_quotactl,
    SYS_reboot,
    SYS_request_key,
    SYS_setns,
    SYS_settimeofday,
    SYS_swapoff,
    SYS_swapon,
    SYS_syslog,
    SYS_umount2,
    SYS_unshare,
    SYS_userfaultfd,
    SYS_vhangup,
};
constexpr uint32_t kNewNamespaces = CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS |
                                    CLONE_NEWPID | CLONE_NEWUSER | CLONE_NEWUTS;

class Filter {
 public:
  void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
  void load_argument(size_t which) {
    load(offsetof(seccomp_data, args) + which * sizeof(uint64_t));  // the low half: little-endian
  }
  void answer(uint32_t errno_value) {
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (errno_value & SECCOMP_RET_DATA));
  }
  void allow() { add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW); }
  // Skips so many instructions if the comparison holds, and if it does not.
  void compare(uint16_t comparison, uint32_t value, uint8_t if_so, uint8_t if_not) {
    code_.push_back({static_cast<uint16_t>(BPF_JMP | comparison | BPF_K), if_so, if_not, value});
  }
  std::vector<sock_filter> made() { return std::move(code_); }

 private:
  void add(int code, uint32_t value) {
    code_.push_back({static_cast<uint16_t>(code), 0, 0, value});
  }
  std::vector<sock_filter> code_;
};

}  // namespace

std::vector<sock_filter> system_call_filter() {
  if (kArchitecture == 0) {
    fail(ErrorCode::kUnsupported,
         "programs of the model run on x86-64 and arm64 alone: the filter of system calls is "
         "written for these");
  }
  Filter filter;
  filter.load(offsetof(seccomp_data, arch));
  filter.compare(BPF_JEQ, kArchitecture, 1, 0);
  filter.answer(EPERM);
  filter.load(offsetof(seccomp_data, nr));
  filter.compare(BPF_JGE, kFirstX32Call, 0, 1);
  filter.answer(EPERM);
  for (const uint32_t call : kRefused) {
    filter.compare(BPF_JEQ, call, 0, 1);
    filter.answer(EPERM);
  }
  filter.compare(BPF_JEQ, SYS_clone3, 0, 1);
  filter.answer(ENOSYS);
  filter.compare(BPF_JEQ, SYS_clone, 0, 4);
  filter.load_argument(0);
  filter.compare(BPF_JSET, kNewNamespaces, 0, 1);
  filter.answer(EPERM);
  filter.allow();
  filter.compare(BPF_JEQ, SYS_socket, 0, 8);
  filter.load_argument(0);
  for (const int family : {AF_UNIX, AF_INET, AF_INET6}) {
    filter.compare(BPF_JEQ, static_cast<uint32_t>(family), 0, 1);
    filter.allow();
  }
  filter.answer(EAFNOSUPPORT);
  filter.allow();
  return filter.made();
}

}  // namespace skein
