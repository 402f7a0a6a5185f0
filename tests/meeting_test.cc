// Machines that meet, as a user starts them: here each is a process with a name in SKEIN_NODE.
#include <sys/wait.h>

#include <cstdlib>
#include <memory>

#include "skein/launch/place/host_lock.h"
#include "tests/testing.h"

namespace skein {
namespace {

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

std::unique_ptr<SkeinProcess> start(const std::string& run, const std::string& node) {
  // Before the variable is set: what makes the job is a process of its own.
  const Arguments arguments = job().arguments("train", run, {"launch.nodes=2"});
  ::setenv("SKEIN_NODE", node.c_str(), 1);
  auto process = std::make_unique<SkeinProcess>(arguments);
  ::unsetenv("SKEIN_NODE");
  return process;
}

fs::path rendezvous(const std::string& run) { return job().run(run) / "rendezvous"; }

bool has_file(const fs::path& folder, const std::string& beginning) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with(beginning)) return true;
  }
  return false;
}

// Both find an empty folder, and the one that has the lock makes its files while the other waits.
TEST(Meeting, ARefusedStartLeavesNoTraceAndWhatIsAnothersAlone) {
  ::setenv("SKEIN_NODE", "node7", 1);
  const HostLock other(rendezvous("refused").string(), "");
  const auto refused = start("refused", "node7");
  std::this_thread::sleep_for(std::chrono::seconds(3));
  EXPECT_FALSE(fs::exists(job().run("refused")));
  make_folders(rendezvous("refused"));
  write_file_atomic(rendezvous("refused") / "secret", "another's");
  expect_refused(refused->wait(), 1, {"another `skein train` of this run", other.host()});
  EXPECT_EQ(read_file(rendezvous("refused") / "secret"), "another's");
  EXPECT_FALSE(fs::exists(job().run("refused") / "logs"));
}

// Neither the supervisor nor the training loop is there yet to answer it.
TEST(Meeting, AStopBeforeAnythingBeganIsExitCode75) {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGHUP}) {
    ::setenv("SKEIN_NODE", "node7", 1);
    const HostLock other(rendezvous("early").string(), "");
    const auto waiting = start("early", "node7");
    std::this_thread::sleep_for(std::chrono::seconds(1));
    waiting->send(signal);
    const Outcome outcome = waiting->wait();
    EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
    EXPECT_NE(outcome.err.find("stopped by a signal: the same command resumes"), std::string::npos);
    EXPECT_FALSE(fs::exists(job().run("early")));
  }
}

TEST(Meeting, OfTwoStartsAtOnceOneIsRefusedAndTheOtherGoesOn) {
  const auto a = start("twice", "node7"), b = start("twice", "node7");
  const fs::path machines = rendezvous("twice") / "start-0001/machines";
  ASSERT_TRUE(wait_until([&] { return has_file(machines, "host-node7"); }));
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT), 0);
  const bool a_ended = ended.si_pid == a->pid();
  SkeinProcess &refused = a_ended ? *a : *b, &goes_on = a_ended ? *b : *a;
  expect_refused(refused.wait(), 1, {"another `skein train` of this run", "node7."});
  EXPECT_TRUE(fs::exists(rendezvous("twice") / "secret"));
  const auto third = start("twice", "node8");
  const Outcome one = goes_on.wait(), two = third->wait();
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(two.exit_code, 0) << two.err;
}

// The machine that came later has another secret than the first: they would never meet.
TEST(Meeting, AFolderThatIsRemovedWhileAMachineWaitsIsToldOfWithWhatToDo) {
  const fs::path machines = rendezvous("removed") / "start-0001/machines";
  const auto first = start("removed", "node7");
  ASSERT_TRUE(wait_until([&] { return has_file(machines, "host-node7"); }));
  first->send(SIGSTOP);
  fs::remove_all(rendezvous("removed"));
  const auto second = start("removed", "node8");
  ASSERT_TRUE(wait_until([&] { return has_file(machines, "host-node8"); }));
  first->send(SIGCONT);
  const Outcome refused = first->wait();
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_NE(refused.err.find("was made again since this machine came"), std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("Stop `skein train` on every machine"), std::string::npos);
  const auto again = start("removed", "node7");
  EXPECT_EQ(again->wait().exit_code, 0);
  const Outcome other = second->wait();
  EXPECT_EQ(other.exit_code, 0) << other.err;
}

}  // namespace
}  // namespace skein
