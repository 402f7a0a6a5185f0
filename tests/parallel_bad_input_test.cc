// Layouts that cannot be, and ranks that do not belong together: refused at start-up with what
// would work instead, in one line, before anything in the run folder is touched.
#include <memory>

#include "tests/parallel_job.h"
#include "tests/places.h"

namespace skein {
namespace {

// The job, with a run `good` of one checkpoint.
struct GoodJob : ParallelJob {
  GoodJob() { trained("good", setting(2)); }
};

const GoodJob& job() {
  static const GoodJob job;
  return job;
}

// Every file of a run with its bytes.
std::map<std::string, std::string> contents(const std::string& run) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(job().run(run))) {
    if (entry.is_regular_file()) files[entry.path().string()] = read_file(entry.path());
  }
  return files;
}

struct Mistake {
  Overrides overrides;
  Words words;
};

void expect_refused(const std::vector<Mistake>& mistakes) {
  const auto before = contents("good");
  ASSERT_GE(before.size(), 4u);
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(mistake.overrides, " ")));
    expect_refused(job().train("good", ParallelJob::setting(3) + mistake.overrides), 2,
                   mistake.words);
    EXPECT_TRUE(contents("good") == before) << "the run folder changed";
  }
}

Overrides workers(int64_t count, const Overrides& more) {
  return Overrides{fmt::format("launch.workers={}", count)} + more;
}

TEST(ParallelBadInput, MeshesThatDoNotFactorTheWorkers) {
  expect_refused({
      {workers(2, {"parallel.tensor=4"}),
       {"tensor 4", "2 workers", "expected 4 (launch.workers, or --ranks of a plan)"}},
      {workers(6, {"parallel.tensor=4"}),
       {"tensor 4", "6 workers", "expected 4 or 8 (launch.workers"}},
      {workers(2, {"parallel.data=4"}), {"data 4", "2 workers", "expected 4 (launch.workers"}},
      {workers(3, {"parallel.data=1", "parallel.pipeline=2"}),
       {"pipeline 2", "3 workers", "expected 2 (launch.workers"}},
      {{"parallel.context=2"}, {"context 2", "there is 1 worker", "launch.workers"}},
      {workers(0, {}), {"launch", "workers", "from 1"}},
  });
}

TEST(ParallelBadInput, SizesThatDoNotDivide) {
  const Overrides wide = {"model.num_attention_heads=6", "model.num_key_value_heads=6",
                          "model.hidden_size=96"};
  expect_refused({
      {workers(4, {"parallel.tensor=4"}) + wide,
       {"parallel.tensor is 4", "num_attention_heads", "6", "one of 1, 2, 3, 6"}},
      {workers(3, {"parallel.tensor=3"}),  // nor can the tokens be split, which would not help
       {"parallel.tensor is 3", "num_attention_heads", "4", "one of 1, 2, 4"}},
      {workers(6, {"parallel.tensor=6", "parallel.sequence=false", "model.num_attention_heads=12",
                   "model.hidden_size=96", "parallel.reduction_width=0"}),
       {"parallel.tensor is 6", "num_key_value_heads", "one of 1, 2, 4, or a multiple"}},
      {workers(4, {"parallel.tensor=4", "model.intermediate_size=178"}),
       {"parallel.tensor is 4", "intermediate_size", "178", "one of 1, 2"}},
      {workers(2, {"parallel.tensor=2", "parallel.kv_replication=2"}),
       {"kv_replication is 2", "tensor 2", "4 key-value heads", "expected 1"}},
      {workers(8, {"parallel.tensor=8", "parallel.kv_replication=4"}),
       {"kv_replication is 4", "tensor 8", "expected 2"}},
  });
}

TEST(ParallelBadInput, ChunksAndSequencesThatCannotBe) {
  expect_refused({
      {workers(6, {"parallel.pipeline=6"}), {"pipeline 6", "5 layers", "at most 5"}},
      {workers(2, {"parallel.pipeline=2", "parallel.virtual_stages=3"}),
       {"virtual_stages 3", "6 chunks", "5 layers", "at most 5"}},
      {{"parallel.virtual_stages=2"}, {"virtual_stages is 2", "pipeline is 1"}},
      {workers(2, {"parallel.context=2", "data.sequence_length=30"}),
       {"sequence_length is 30", "2 x [parallel] context = 4"}},
      {workers(2, {"parallel.context=2", "data.sequence_length=31"}),
       {"sequence_length is 31", "2 x [parallel] context = 4"}},
      {workers(4, {"parallel.tensor=4", "data.sequence_length=30"}),
       {"tensor is 4", "30 tokens", "sequence = false"}},
      {workers(8, {"parallel.tensor=4", "parallel.context=2", "data.sequence_length=36"}),
       {"tensor is 4", "18 tokens", "sequence_length 36 / context 2", "sequence = false"}},
  });
}

TEST(ParallelBadInput, BatchesThatDoNotDivide) {
  expect_refused({
      {workers(2, {"batch.global_sequences=12"}),
       {"global_sequences is 12", "reduction_width, which is 8"}},
      {workers(2, {"batch.micro_sequences=2"}),
       {"global_sequences is 8", "4 micro-batches", "reduction_width, which is 8"}},
      {workers(3, {"parallel.reduction_width=0"}),
       {"global_sequences is 8", "reduction_width 3 x micro_sequences 1 = 3",
        "or [parallel] reduction_width = 4, virtual ranks that the 3 data ranks share",
        "began with more data ranks", "if reduction_width is"}},
      {workers(3, {"parallel.data=3", "parallel.reduction_width=0"}),
       {"global_sequences is 8", "data, which is 3", "[parallel] reduction_width = 4"}},
      {workers(4, {"parallel.reduction_width=2"}),
       {"reduction_width is 2", "4 data ranks", "at least 4", "at most 2 data ranks"}},
      {workers(4, {"parallel.reduction_width=2", "parallel.data=4"}),
       {"reduction_width is 2", "at least data, which is 4"}},
  });
}

// What a launcher would set for a rank.
class RankInfo {
 public:
  RankInfo(int rank, int size) {
    set("RANK", rank);
    set("SIZE", size);
    set("LOCAL_RANK", rank);
    set("LOCAL_SIZE", size);
    setenv("SKEIN_START_ID", "by_hand", 1);
  }
  RankInfo(const RankInfo&) = delete;
  RankInfo& operator=(const RankInfo&) = delete;
  ~RankInfo() {
    for (const char* name : {"RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "START_ID"}) {
      unsetenv((std::string("SKEIN_") + name).c_str());
    }
  }

 private:
  static void set(const std::string& name, int value) {
    setenv(("SKEIN_" + name).c_str(), std::to_string(value).c_str(), 1);
  }
};

std::unique_ptr<SkeinProcess> start_rank(int rank, int size, const std::string& run,
                                         const Overrides& more = {}) {
  // Before the variables are set: what makes the job is a process of its own.
  const Arguments arguments = job().arguments("train", run, ParallelJob::setting(2) + more);
  const RankInfo place(rank, size);
  return std::make_unique<SkeinProcess>(arguments);
}

TEST(ParallelBadInput, RankWithAnotherConfiguration) {
  const Words words = {"rank 1 of 2", "learning_rate = 0.002", "learning_rate = 0.001",
                       "the same program and configuration"};
  const auto first = start_rank(0, 2, "differs");
  const auto second = start_rank(1, 2, "differs", {"optimizer.learning_rate=2e-3"});
  expect_refused(first->wait(), 2, words);
  expect_refused(second->wait(), 2, words);
  EXPECT_FALSE(fs::exists(job().run("differs") / "checkpoints"));
}

TEST(ParallelBadInput, RankWithAnotherProgram) {
  const fs::path other = job().folder / "skein";
  fs::copy_file(kProgram, other);
  std::ofstream(other, std::ios::app) << "x";
  const Words words = {"rank 1 of 2", "program is", "the same program and configuration"};
  const auto first = start_rank(0, 2, "rebuilt");
  std::unique_ptr<SkeinProcess> second;
  {
    const RankInfo place(1, 2);
    second =
        std::make_unique<SkeinProcess>(job().arguments("train", "rebuilt", ParallelJob::setting(2)),
                                       SkeinProcess::kNoFileLimit, other.string());
  }
  expect_refused(first->wait(), 2, words);
  expect_refused(second->wait(), 2, words);
}

TEST(ParallelBadInput, RankOfAnotherWorld) {
  const auto first = start_rank(0, 2, "sizes");
  const auto second = start_rank(1, 3, "sizes");
  expect_refused(first->wait(), 2, {"rank 1", "world of 3", "rank 0", "2"});
  expect_refused(second->wait(), 2, {"rank 0", "world of 2", "rank 1", "3"});
}

// Without a supervisor every rank has the terminal, where lines for programs are of no use.
TEST(ParallelBadInput, RanksOfALauncherTellAPersonNothingThatIsForPrograms) {
  const auto first = start_rank(0, 2, "told"), second = start_rank(1, 2, "told");
  for (const auto& [rank, outcome] : {std::pair(0, first->wait()), std::pair(1, second->wait())}) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find(" {\""), std::string::npos) << outcome.err;
    const fs::path log = job().run("told") / fmt::format("logs/rank-0000{}.log", rank);
    EXPECT_NE(read_file(log).find("arenas {\"weights\""), std::string::npos) << log;
  }
}

TEST(ParallelBadInput, PeerThatNeverArrives) {
  const auto rank = start_rank(0, 2, "lonely", {"launch.collective_timeout_s=2"});
  const Outcome outcome = rank->wait();
  expect_refused(outcome, 1, {"rank 1 of 2 did not arrive within 2.0 s", "rendezvous", "log"});
  EXPECT_FALSE(fs::exists(job().run("lonely") / "checkpoints"));
}

}  // namespace
}  // namespace skein
