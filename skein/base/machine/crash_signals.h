// What happens to a process that crashes: it ends by the signal and prints nothing of its own. And
// what a limit on the size of files does: a write fails, and the process stays.
//
// Why      Libraries take these signals when they are loaded. Gloo of Debian 13 brings UCX, which
//          prints a trace to standard output, into the midst of what a reader parses.
// Threads  called first thing in main(), before the program handles any of these signals itself
#pragma once

namespace skein {

// SIGSEGV, SIGBUS, SIGFPE and SIGILL as the system handles them. A build with a sanitizer leaves
// them to it.
void take_back_crash_signals();

// Ignores SIGXFSZ, which ends a process that writes beyond `ulimit -f`: the write then fails with
// EFBIG (setrlimit(2)), as on a full disk, and whoever wrote can report it. Workers inherit that;
// programs of others are started without it (launch/jobs/run_program.cc,
// record/watch/event_command.cc).
void outlive_file_size_limit();

}  // namespace skein
