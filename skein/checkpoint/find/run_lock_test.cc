#include "skein/checkpoint/find/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/checkpoint/checkpoint_test_state.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using testing::HasSubstr;

TEST(RunLock, OneAtATime) {
  const test::TempFolder folder;
  {
    const RunLock lock(folder / "run");
    const std::string error = test::error_of([&] { RunLock(folder / "run"); });
    EXPECT_THAT(error, HasSubstr(fmt::format("in use by process {} on ", ::getpid())));
    EXPECT_THAT(error, HasSubstr("run.dir"));
    const RunLock other(folder / "other");
  }
  const RunLock again(folder / "run");
}

TEST(RunLock, SaysWhatIsInUseAndByWhom) {
  const test::TempFolder folder;
  const RunLock::Wording mine = {"checkpoint folder", "checkpoint.dir", ", which trains runs/a"};
  const RunLock::Wording other = {"checkpoint folder", "checkpoint.dir", ", which trains runs/b"};
  const RunLock lock(folder.path(), mine);
  const std::string error = test::error_of([&] { RunLock(folder.path(), other); });
  EXPECT_THAT(error,
              HasSubstr(fmt::format("checkpoint folder {} is in use", folder.path().string())));
  EXPECT_THAT(error, HasSubstr(", which trains runs/a: stop that process"));
  EXPECT_THAT(error, HasSubstr("choose another checkpoint.dir"));
}

TEST(RunLock, ADeadProcessHoldsNothing) {
  const test::TempFolder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(folder.path());
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THAT(test::error_of([&] { RunLock(folder.path()); }),
              HasSubstr(fmt::format("process {} on", child)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(test::error_of([&] { RunLock(folder.path()); }), "");
}

TEST(RunLock, NamesAFolderItCannotUse) {
  EXPECT_THAT(test::error_of([] { RunLock("/proc/none"); }),
              HasSubstr("cannot make folder /proc/none: No such file or directory"));
}

}  // namespace
}  // namespace skein
