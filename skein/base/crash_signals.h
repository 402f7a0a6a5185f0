// What happens to a process that crashes: it ends by the signal and prints nothing of its own.
//
// Why      Libraries take these signals when they are loaded. Gloo of Debian 13 brings UCX, which
//          prints a trace to standard output, into the midst of what a reader parses.
// Threads  called first thing in main(), before the program handles any of these signals itself
#pragma once

namespace skein {

// SIGSEGV, SIGBUS, SIGFPE and SIGILL as the system handles them. A build with a sanitizer leaves
// them to it.
void take_back_crash_signals();

}  // namespace skein
