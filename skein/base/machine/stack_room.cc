#include "skein/base/machine/stack_room.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <exception>

#include "skein/base/error.h"
#include "skein/base/text/units.h"

namespace skein {
namespace {

constexpr rlim_t kUsual = rlim_t{8} << 20, kEnough = rlim_t{1} << 20;

struct Work {
  const std::function<int()>& body;
  sigset_t mask;
  int code = 0;
  std::exception_ptr error;
};

void* work_on_thread(void* argument) {
  auto& work = *static_cast<Work*>(argument);
  ::pthread_sigmask(SIG_SETMASK, &work.mask, nullptr);
  try {
    work.code = work.body();
  } catch (...) {
    work.error = std::current_exception();
  }
  return nullptr;
}

// Signals to the process reach the thread: the main one, which waits, holds all of them back.
int run_on_thread(const std::function<int()>& body) {
  Work work{body, {}, 0, nullptr};
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &work.mask);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kUsual);
  pthread_t thread{};
  const int refused = ::pthread_create(&thread, &attributes, work_on_thread, &work);
  ::pthread_attr_destroy(&attributes);
  if (refused == 0) ::pthread_join(thread, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &work.mask, nullptr);
  if (refused != 0) {
    fail(ErrorCode::kUsage,
         "the stack of this process is limited to less than {} (ulimit -s), and a thread with more "
         "cannot be made: {}; raise the limit",
         format_bytes(static_cast<int64_t>(kEnough)), errno_text(refused));
  }
  if (work.error) std::rethrow_exception(work.error);
  return work.code;
}

}  // namespace

int run_with_stack(const std::function<int()>& body) {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kUsual) return body();
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kUsual);
  ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
  const bool may_raise = limit.rlim_max > limit.rlim_cur;
  limit.rlim_cur = std::min(kUsual, limit.rlim_max);
  if (may_raise) ::setrlimit(RLIMIT_STACK, &limit);
  return limit.rlim_cur >= kEnough ? body() : run_on_thread(body);
}

}  // namespace skein
