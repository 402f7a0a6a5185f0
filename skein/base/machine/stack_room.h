// Room on the stack, where `ulimit -s` leaves less than the program needs: without it the process
// would end by SIGSEGV, without a word.
//
// How      the soft limit is raised as far as the hard one lets it, and threads get the usual 8 MB
//          whatever it is. Where the hard limit is too low as well, all runs on a thread of its
//          own, since that limit holds for the main thread alone
// Source   setrlimit(2), pthread_setattr_default_np(3), pthread_create(3)
#pragma once

#include <functional>

namespace skein {

// Runs `body`, here or on that thread, and returns what it returns. Called first thing in main(),
// before there are other threads. Throws Error{kUsage} if there is no such thread.
int run_with_stack(const std::function<int()>& body);

}  // namespace skein
