// Machines that sign shares in one work folder, some of them killed, and the process that ends it.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "skein/prepare/work_folder.h"
#include "tests/data/dedup_testing.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DedupMachines : public DedupTest {
 protected:
  // Files that are a piece each: most of their bytes are blank lines.
  void write_inputs(size_t num_files) {
    const Documents documents = made_documents(11, 400);
    for (size_t i = 0; i < num_files; ++i) {
      const auto at = [&](size_t k) {
        return documents.begin() + static_cast<std::ptrdiff_t>(documents.size() * k / num_files);
      };
      std::string lines;
      for (auto text = at(i); text != at(i + 1); ++text)
        lines += Json{{"text", *text}}.dump() + "\n";
      write(fmt::format("in/{}.jsonl", i), lines + std::string(33 << 20, '\n'));
    }
  }
  pid_t start_share(const WorkShare& share) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    try {
      sign_share({folder_ / "in"}, out(), options_, share);
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  static int status_of(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }
  SigningReport signed_share(const WorkShare& share) {
    return sign_share({folder_ / "in"}, out(), options_, share);
  }
  DedupReport ended() { return dedup({folder_ / "in"}, out(), options_); }

  DedupOptions options_;
};

TEST_F(DedupMachines, AnyNumberOfThemSomeKilledGiveTheSameBytes) {
  options_.passage = Passage::kLine;
  write_inputs(6);
  ended();
  const std::string wanted = read_file(out()), sources = read_file(fs::path(out()) += ".sources");
  for (const int64_t num_machines : {1, 2, 5}) {
    fs::remove(out());
    int num_killed = 0;
    for (int milliseconds = 10; milliseconds < 300; milliseconds *= 3) {
      std::vector<pid_t> children;
      for (int64_t i = 0; i < num_machines; ++i) children.push_back(start_share({i, num_machines}));
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      ::kill(children.front(), SIGKILL);
      for (const pid_t child : children) {
        const int status = status_of(child);
        num_killed += WIFSIGNALED(status) ? 1 : 0;
        EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
      }
    }
    EXPECT_GT(num_killed, 0);
    EXPECT_FALSE(fs::exists(out()));
    signed_share({0, num_machines});  // the one that was killed
    const DedupReport report = ended();
    EXPECT_THAT(report.restart, ElementsAre(HasSubstr("6 of 6 pieces were finished before"),
                                            HasSubstr("6 of 6 pieces were signed before")));
    EXPECT_EQ(read_file(out()), wanted);
    EXPECT_EQ(read_file(fs::path(out()) += ".sources"), sources);
    EXPECT_FALSE(fs::exists(work_folder_of(out())));
  }
  EXPECT_TRUE(ended().was_finished);
  EXPECT_TRUE(signed_share({0, 2}).was_finished);
}

TEST_F(DedupMachines, WhatIsMissingIsMadeAtTheEnd) {
  write_inputs(3);
  ended();
  const std::string wanted = read_file(out());
  fs::remove(out());
  EXPECT_EQ(signed_share({1, 2}).num_pieces, 1);
  const SigningReport again = signed_share({1, 2});
  EXPECT_EQ(again.num_signed_before, 1);
  EXPECT_EQ(again.inputs.num_files, 1);
  EXPECT_THAT(ended().restart,
              ElementsAre(HasSubstr("1 of 3 pieces were finished before"),
                          HasSubstr("1 of 3 pieces were signed before with these options: the "
                                    "others were read or signed now")));
  EXPECT_EQ(read_file(out()), wanted);
}

TEST_F(DedupMachines, OtherOptionsSignAgain) {
  write_inputs(2);
  signed_share({0, 1});
  options_.minhash.seed = 2;
  const SigningReport other = signed_share({0, 1});
  EXPECT_EQ(other.num_signed_before, 0);
  EXPECT_THAT(other.restart, ElementsAre(HasSubstr("2 of 2 pieces were finished before"),
                                         HasSubstr("0 of 2 pieces were signed before")));
  options_.memory_bytes = int64_t{2} << 30;  // matters to nobody
  options_.num_threads = 7;
  EXPECT_EQ(signed_share({0, 1}).num_signed_before, 2);
  options_.against = {write_documents("eval.jsonl", made_documents(12, 3))};
  EXPECT_EQ(signed_share({0, 1}).num_signed_before, 0);
  // The examples count, not where they lie or in which order.
  Documents examples = made_documents(12, 3);
  std::reverse(examples.begin(), examples.end());
  options_.against = {write_documents("moved.jsonl", examples)};
  EXPECT_EQ(signed_share({0, 1}).num_signed_before, 2);
  // A signature that was damaged is made again.
  for (const auto& entry : fs::directory_iterator(work_folder_of(out()))) {
    if (entry.path().extension() == ".signatures") fs::resize_file(entry.path(), 64);
  }
  EXPECT_EQ(signed_share({0, 1}).num_signed_before, 0);
}

TEST_F(DedupMachines, SharesAreHeldByOneProcessEach) {
  write_inputs(2);
  const fs::path folder = work_folder_of(out());
  {
    const WorkFolder first(folder, WorkShare{0, 2});
    EXPECT_THAT(test::error_of([&] { signed_share({0, 2}); }), HasSubstr("another process works"));
    EXPECT_THAT(test::error_of([&] { ended(); }), HasSubstr("another process works"));
    EXPECT_EQ(signed_share({1, 2}).num_pieces, 1);
  }
  {
    const WorkFolder alone(folder);
    EXPECT_THAT(test::error_of([&] { signed_share({0, 2}); }), HasSubstr("another process works"));
  }
  EXPECT_THAT(test::error_of([&] { signed_share({2, 2}); }), HasSubstr("--shard-index 2/2"));
  // What killed processes left without its name goes at the end.
  write("out.arrow.work/0123456789abcdef0123456789abcdef.text.123.partial", "half");
  ended();
  EXPECT_FALSE(fs::exists(folder));
}

// Two that make one piece at the same time, as where no locks are seen, do not disturb each other.
TEST_F(DedupMachines, OnePieceMayBeMadeTwiceAtOnce) {
  write_inputs(4);
  ended();
  const std::string wanted = read_file(out());
  fs::remove(out());
  std::vector<pid_t> children;
  for (int64_t count = 1; count <= 3; ++count) children.push_back(start_share({0, count}));
  for (const pid_t child : children) EXPECT_EQ(status_of(child), 0);
  EXPECT_THAT(ended().restart, ElementsAre(HasSubstr("4 of 4"), HasSubstr("4 of 4")));
  EXPECT_EQ(read_file(out()), wanted);
}

}  // namespace
}  // namespace skein
