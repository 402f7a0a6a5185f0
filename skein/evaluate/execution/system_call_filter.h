// A filter of system calls (seccomp) for a process that runs foreign programs: calls that no
// program of a test needs, and through which the kernel is attacked or other processes are read.
//
//   refused with EPERM          mounts, namespaces, ptrace and the memory of other processes, bpf,
//                               perf events, io_uring, userfaultfd, keys, modules, clocks, handles
//   refused with ENOSYS         clone3, whose flags cannot be looked at: C libraries then use clone
//   refused with EAFNOSUPPORT   sockets but AF_UNIX, AF_INET and AF_INET6: a network namespace does
//                               not hold back AF_VSOCK, which reaches the host of a virtual machine
//
// Errors   kUnsupported on another processor than x86-64 and arm64
#pragma once

#include <linux/filter.h>

#include <vector>

namespace skein {

std::vector<sock_filter> system_call_filter();

}  // namespace skein
