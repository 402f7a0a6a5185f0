// Files, folders and locks as other users, other machines and odd file systems give them: nothing
// of them is believed, nothing hangs, SIGTERM ends every command, and no run harms another.
#include <sys/stat.h>

#include <cstdlib>
#include <memory>

#include "skein/base/shared/own_file.h"
#include "tests/testing.h"

namespace skein {
namespace {

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

// A process that runs with a library of faults, and these variables.
using Variables = std::map<std::string, std::string>;
std::unique_ptr<SkeinProcess> start(const Arguments& arguments, Variables variables) {
  const fs::path library = fs::path(default_program()).parent_path() / "libskein_system_faults.so";
  EXPECT_TRUE(fs::exists(library)) << library;
  variables["LD_PRELOAD"] = library.string();
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  auto process = std::make_unique<SkeinProcess>(arguments);
  for (const auto& [name, value] : variables) ::unsetenv(name.c_str());
  return process;
}

const Overrides kLong = {"run.steps=1000000", "checkpoint.every_steps=20", "checkpoint.keep=2",
                         "log.every_steps=100"};

bool has_saved(const std::string& run) {
  return wait_until([&] {
    return fs::exists(job().run(run) / "checkpoints" / "step-00000020") ||
           fs::exists(job().run(run) / "checkpoints" / "step-00000040");
  });
}

// NFS with local_lock, Lustre with localflock: both get the lock.
TEST(MachinesOfOthers, ASecondRunIsRefusedWhereEveryLockIsGranted) {
  const Arguments train = job().arguments("train", "granted", kLong);
  const auto first = start(train, {{"SKEIN_FLOCK", "granted"}});
  ASSERT_TRUE(has_saved("granted"));
  const Outcome second = start(train, {{"SKEIN_FLOCK", "granted"}})->wait();
  expect_refused(second, 1, {"run folder", "is in use by process", "granted a lock to both"});
  first->send(SIGTERM);
  EXPECT_EQ(first->wait().exit_code, 75);
  EXPECT_EQ(read_file(job().run("granted") / ".lock"), "");
}

// Another machine took the folder over: what this one saves from now on would mix two runs.
TEST(MachinesOfOthers, WhoeverLostTheFolderCommitsNothingAndEnds) {
  const auto first = start(job().arguments("train", "lost", kLong), {{"SKEIN_FLOCK", "granted"}});
  ASSERT_TRUE(has_saved("lost"));
  const fs::path lock = job().run("lost") / ".lock";
  const std::string other =
      "process 4711 on other.example\nboot 1\nspace pid:[1]\nbeat 00000000000000000001\n"
      "holder 0123456789abcdef0123456789abcdef\n";
  ASSERT_TRUE(wait_until([&] {
    write_file_atomic(lock, other);
    return read_file(lock) == other;
  }));
  const Outcome outcome = first->wait();
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  const auto lines = outcome.error_lines();
  ASSERT_EQ(lines.size(), 1u) << outcome.err;
  EXPECT_NE(lines[0].find("was taken over by process 4711 on other.example"), std::string::npos);
  EXPECT_NE(lines[0].find("was not saved, earlier ones are untouched"), std::string::npos);
  EXPECT_EQ(read_file(lock), other);
  expect_checkpoints_good(job().run("lost"));
}

// Lustre without -o flock, many file systems in user space.
TEST(MachinesOfOthers, WithoutLocksARunWarnsOnceAndTrains) {
  const Overrides two_saves = {"run.steps=4", "checkpoint.every_steps=2"};
  for (const int number : {ENOSYS, EOPNOTSUPP, ENOLCK}) {
    fs::remove_all(job().run("without"));
    const Outcome outcome = start(job().arguments("train", "without", two_saves),
                                  {{"SKEIN_FLOCK", std::to_string(number)}})
                                ->wait();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const std::string warning = fmt::format("has no file locks ({}", std::strerror(number));
    const size_t at = outcome.err.find(warning);
    ASSERT_NE(at, std::string::npos) << outcome.err;
    const std::string meaning = "two processes work in one folder";
    EXPECT_NE(outcome.err.find(meaning), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find(meaning), outcome.err.rfind(meaning)) << outcome.err;
  }
  const Arguments train = job().arguments("train", "alone", kLong);
  const auto first = start(train, {{"SKEIN_FLOCK", "38"}});
  ASSERT_TRUE(has_saved("alone"));
  const Outcome second = start(train, {{"SKEIN_FLOCK", "38"}})->wait();
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.err.find("is in use by process"), std::string::npos) << second.err;
  first->send(SIGTERM);
  EXPECT_EQ(first->wait().exit_code, 75);
}

// The record that says which run a start is of: for a while, the second machine cannot read it.
TEST(MachinesOfOthers, AnUnreadableRecordSplitsNoRunIntoTwoStarts) {
  const Overrides two = {"launch.nodes=2", "run.steps=4"};
  const fs::path while_there = job().folder / "unreadable";
  const auto of = [&](const char* node, int number) {
    return start(
        job().arguments("train", "split", two),
        {{"SKEIN_NODE", node},
         {"SKEIN_UNREADABLE", fmt::format("machines/run:{}:{}", number, while_there.string())}});
  };
  const fs::path rendezvous = job().run("split") / "rendezvous";
  const auto a = of("node-a", EIO);
  ASSERT_TRUE(wait_until([&] { return fs::exists(rendezvous / "start-0001/machines/run"); }));
  std::ofstream(while_there) << "now";
  const auto b = of("node-b", EIO);
  std::this_thread::sleep_for(std::chrono::seconds(4));
  EXPECT_FALSE(fs::exists(rendezvous / "start-0002"));
  fs::remove(while_there);
  const Outcome one = a->wait(), two_ended = b->wait();
  EXPECT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(two_ended.exit_code, 0) << two_ended.err;
  EXPECT_FALSE(fs::exists(rendezvous / "start-0002"));
  EXPECT_NE(two_ended.err.find("machines/run: Input/output error"), std::string::npos)
      << two_ended.err;
}

// In place of files that are read: each command says so within its usual time.
TEST(MachinesOfOthers, AFifoInPlaceOfAFileHoldsNothingUp) {
  job().trained("fifo", {"run.steps=4", "checkpoint.every_steps=2"});
  const fs::path run = job().run("fifo"), checkpoint = job().checkpoint("fifo", 4);
  const fs::path exported = job().folder / "exported";
  TinyJob::must({"checkpoint", "export", checkpoint.string(), "--out", exported.string()});
  const auto with_fifo = [&](const fs::path& file, const Arguments& arguments) {
    const fs::path aside = fs::path(file) += ".aside";
    fs::rename(file, aside);
    EXPECT_EQ(::mkfifo(file.c_str(), 0666), 0);
    const Outcome outcome = SkeinProcess(arguments).wait(120);
    fs::remove(file);
    fs::rename(aside, file);
    const std::string said = outcome.out + outcome.err;
    EXPECT_NE(said.find(file.filename().string()), std::string::npos) << said;
    EXPECT_NE(said.find("is not a regular file"), std::string::npos) << said;
    return outcome.exit_code;
  };
  const fs::path tokens = job().folder / "tokens.json";
  std::ofstream(tokens) << "[[1, 2, 3]]";
  const Arguments score = {"score", "--model", exported.string(), "--tokens", tokens.string()};
  EXPECT_EQ(with_fifo(exported / "model.safetensors", score), 1);
  EXPECT_EQ(with_fifo(exported / "config.json", score), 1);
  EXPECT_EQ(with_fifo(tokens, score), 1);
  const Arguments verify = {"checkpoint", "verify", run.string()};
  EXPECT_EQ(with_fifo(checkpoint / "manifest.json", verify), 1);
  const Arguments train = job().arguments("train", "fifo", {"run.steps=6"});
  EXPECT_EQ(with_fifo(run / "metrics.jsonl", train), 1);
  EXPECT_EQ(with_fifo(run / ".lock", train), 1);
  EXPECT_EQ(with_fifo(job().corpus(), train), 2);
  EXPECT_EQ(with_fifo(job().config(), train), 2);
  with_fifo(checkpoint / "manifest.json", train);  // trains on from the one before
  expect_checkpoints_good(run);
}

// bash's <(…), /dev/stdin and a FIFO that a person made for it still work.
TEST(MachinesOfOthers, PipesThatAPersonNamesAreRead) {
  const fs::path text = job().folder / "documents.jsonl", out = job().folder / "piped.arrow";
  const std::string skein = default_program();
  for (const std::string& command :
       {fmt::format("{} data ingest --overwrite --format jsonl --out {} <(cat {})", skein,
                    out.string(), text.string()),
        fmt::format("cat {} | {} data ingest --overwrite --format jsonl --out {} /dev/stdin",
                    text.string(), skein, out.string())}) {
    fs::remove(out);
    EXPECT_EQ(std::system(fmt::format("bash -c '{}' 2> /dev/null", command).c_str()), 0) << command;
    EXPECT_EQ(fs::file_size(out), fs::file_size(job().corpus())) << command;
  }
}

// Data 0644, secrets and what the run's processes tell each other 0600, whatever the umask.
TEST(MachinesOfOthers, AUmaskOfNothingLetsNobodyElseWrite) {
  const mode_t former = ::umask(0);
  const Outcome outcome = job().train("open", {"run.steps=2", "launch.workers=2",
                                               "log.tensorboard=true", "checkpoint.every_steps=1"});
  ::umask(former);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  int num_files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(job().run("open"))) {
    if (!entry.is_regular_file()) continue;
    ++num_files;
    const bool is_own = entry.path().string().find("/rendezvous/") != std::string::npos;
    EXPECT_EQ(fs::status(entry.path()).permissions(), fs::perms(is_own ? 0600 : 0644))
        << entry.path();
  }
  EXPECT_GT(num_files, 10);
}

// What another user put in the way under a name that he could guess.
TEST(MachinesOfOthers, AFolderInPlaceOfThisUsersIsNamedWithItsOwner) {
  if (::geteuid() != 0) return;  // only root gives files away
  const fs::path own = OwnFolder().path(), aside = fs::path(own) += ".aside";
  fs::rename(own, aside);
  fs::create_directory(own);
  ASSERT_EQ(::chown(own.c_str(), 1234, 1234), 0);
  const Outcome outcome = job().train("squatted", {"launch.nodes=1:2", "run.steps=2"});
  fs::remove(own);
  fs::rename(aside, own);
  expect_refused(outcome, 1, {own.string() + " is a folder of", "1234", "rm -r"});
}

}  // namespace
}  // namespace skein
