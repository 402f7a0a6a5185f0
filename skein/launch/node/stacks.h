// The stacks of all threads of a process that hangs, in its own log, before it is killed.
//
// How     the supervisor sends each thread a signal; its handler writes the thread's name and the
//         functions that it is in. A thread that does not answer, because it is stopped or inside
//         the kernel, is described by the supervisor from /proc
// Source  signal-safety(7): backtrace() may allocate on its first call, so it is called once before
#pragma once

#include <sys/types.h>

#include <string>

#include "skein/base/files/file.h"

namespace skein {

// Lets this process answer. Its stacks are appended to `log`; empty: they go to standard error.
void answer_with_stacks(const fs::path& log = {});

// Asks process `pid` for its stacks, and returns what the system says of each of its threads:
// "thread 4711 skein: sleeping in futex_wait_queue".
std::string ask_for_stacks(pid_t pid);

}  // namespace skein
