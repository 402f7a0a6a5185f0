#include "skein/checkpoint/find/lock_beat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <fstream>
#include <thread>

#include "skein/base/error.h"
#include "skein/checkpoint/find/run_lock.h"
#include "tests/error_of.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using std::chrono::milliseconds;
using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

constexpr BeatTimes kTimes = {.beat = milliseconds(20), .look = milliseconds(400)};

class Beats : public testing::Test {
 protected:
  // The text of a process of another machine.
  static LockText other(int64_t beat) {
    LockText other = LockText::own(", which trains runs/b");
    other.holder = "process 4711 on other.example, which trains runs/b";
    other.boot = "another boot";
    other.beat = fmt::format("{:020}", beat);
    return other;
  }
  void write(const LockText& text) const { std::ofstream(path_) << text.text(); }
  std::string refusal(bool proven = true) const {
    return error_of([&] { require_left(path_, proven, "run folder r", "stop it", kTimes); });
  }

  const test::TempFolder folder_;
  const fs::path path_ = folder_ / ".lock";
};

TEST_F(Beats, TheTextSaysWhoHoldsTheFolderAndIsEmptyAfterwards) {
  {
    const LockBeat beat(path_, ", which trains r", kTimes);
    const LockText text = LockText::parse(read_file(path_));
    EXPECT_TRUE(text.holder.starts_with(fmt::format("process {} on ", ::getpid())));
    EXPECT_TRUE(text.holder.ends_with(", which trains r"));
    EXPECT_EQ(text.pid(), ::getpid());
    EXPECT_TRUE(text.is_here());
    EXPECT_TRUE(text.has_beat());
    EXPECT_EQ(LockText::parse(text.text()).text(), text.text());
    while (LockText::parse(read_file(path_)).beat == text.beat) ::usleep(1000);
    beat.require("run folder r");
  }
  EXPECT_EQ(read_file(path_), "");
  EXPECT_EQ(refusal(), "");
}

TEST_F(Beats, ABeatThatMovesIsAHolderThatLives) {
  std::atomic<bool> stops = false;
  write(other(1));
  std::thread machine([&] {
    const LockText text = other(1);
    for (int64_t beat = 2; !stops; ++beat) {
      LockText next = text;
      next.beat = fmt::format("{:020}", beat);
      write(next);
      std::this_thread::sleep_for(milliseconds(20));
    }
  });
  const std::string granted = refusal(), without_locks = refusal(/*proven=*/false);
  stops = true;
  machine.join();
  EXPECT_THAT(granted, AllOf(HasSubstr("run folder r is in use by process 4711 on other.example"),
                             HasSubstr("granted a lock to both"), HasSubstr(": stop it")));
  EXPECT_THAT(without_locks, HasSubstr("process 4711 on other.example, which trains runs/b: stop"));
}

TEST_F(Beats, ABeatThatStandsStillIsAHolderThatIsGone) {
  write(other(7));
  EXPECT_EQ(refusal(), "");
  EXPECT_EQ(refusal(/*proven=*/false), "");
}

double seconds_to_take(const fs::path& path) {
  const auto start = std::chrono::steady_clock::now();
  require_left(path, /*proven=*/true, "run folder r", "stop it", {.look = std::chrono::hours(1)});
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The look is an hour long here: who needs none never ends with one.
TEST_F(Beats, NothingIsWatchedWhereTheHolderIsKnownToBeGone) {
  seconds_to_take(path_);  // there is no file
  std::ofstream(path_) << "process 12 on a.machine of an earlier version";
  seconds_to_take(path_);
  const pid_t child = ::fork();
  if (child == 0) {
    const LockBeat beat(path_, "", kTimes);
    ::_exit(0);  // without an end in order
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(LockText::parse(read_file(path_)).pid(), child);
  seconds_to_take(path_);  // of this machine
  write(other(7));
  fs::last_write_time(path_, fs::file_time_type::clock::now() - std::chrono::minutes(11));
  seconds_to_take(path_);  // of another one, long ago
}

// As on a file system whose locks are granted to everybody: flock says nothing.
TEST_F(Beats, ALivingProcessOfThisMachineIsFoundAtOnce) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const LockBeat beat(path_, "", kTimes);
    const std::ifstream has_it_open(path_);
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  char byte;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const std::string error = refusal();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_THAT(error, HasSubstr(fmt::format("in use by process {} on", child)));
  EXPECT_EQ(refusal(), "");
}

TEST_F(Beats, WhoFindsTheTextOfAnotherHasLostTheFolder) {
  const LockBeat beat(path_, "", kTimes);
  const LockText taker = other(1);
  write(taker);
  const std::string error = error_of([&] { beat.require("run folder r"); });
  EXPECT_THAT(error, AllOf(HasSubstr("run folder r was taken over by process 4711"),
                           HasSubstr("runs/b while this process used it")));
  std::this_thread::sleep_for(5 * kTimes.beat);
  EXPECT_EQ(read_file(path_), taker.text());  // and writes there no more
}

TEST_F(Beats, AFileThatSomebodyRemovedIsWrittenAgain) {
  {
    const LockBeat beat(path_, "", kTimes);
    fs::remove(path_);
    EXPECT_EQ(error_of([&] { beat.require("run folder r"); }), "");
    EXPECT_EQ(LockText::parse(read_file(path_)).pid(), ::getpid());
  }
  EXPECT_EQ(read_file(path_), "");
}

// EIO, EACCES and the like: no answer is no answer.
TEST_F(Beats, AFileThatCannotBeReadIsNoOther) {
  const LockBeat beat(path_, "", kTimes);
  fs::rename(path_, folder_ / "aside");
  fs::create_symlink(".lock", path_);
  const std::string error = error_of([&] { beat.require("run folder r"); });
  fs::remove(path_);
  fs::rename(folder_ / "aside", path_);
  EXPECT_THAT(error, HasSubstr("Too many levels of symbolic links"));
  EXPECT_EQ(error_of([&] { beat.require("run folder r"); }), "");
}

TEST_F(Beats, ARunLockHasOne) {
  const RunLock lock(folder_.path());
  lock.require();
  write(other(1));
  EXPECT_THAT(error_of([&] { lock.require(); }),
              HasSubstr(fmt::format("run folder {} was taken over", folder_.path().string())));
  const RunLock cleans(folder_ / "other", {.names_holder = false});
  cleans.require();
}

TEST_F(Beats, AFifoInItsPlaceIsRefusedByName) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0666), 0);
  EXPECT_THAT(error_of([&] { RunLock(folder_.path()); }),
              HasSubstr(path_.string() + " is not a regular file: expected a file to read, found a "
                                         "FIFO of "));
}

TEST_F(Beats, ALinkInItsPlaceIsRefusedAndNotFollowed) {
  std::ofstream(folder_ / "precious") << "text";
  fs::create_symlink("precious", path_);
  EXPECT_THAT(error_of([&] { RunLock(folder_.path()); }),
              HasSubstr(path_.string() + " is not a regular file: expected a file to read, found a "
                                         "symbolic link of "));
  EXPECT_EQ(read_file(folder_ / "precious"), "text");
}

// Somebody else's file, which he has locked.
TEST_F(Beats, TheOwnerOfALockFileIsNamedWhereItIsNotOurs) {
  if (::geteuid() != 0) return;  // only root gives files away
  const RunLock lock(folder_.path());
  ASSERT_EQ(::chown(path_.c_str(), 1234, 1234), 0);
  EXPECT_THAT(error_of([&] { RunLock(folder_.path()); }),
              HasSubstr(fmt::format("({} is a file of user 1234)", path_.string())));
}

}  // namespace
}  // namespace skein
