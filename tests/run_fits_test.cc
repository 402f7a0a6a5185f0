// A run that does not fit is refused before it allocates anything, by `skein plan` and by training
// alike; and what a plan says of the whole run is what the run does.
#include "skein/checkpoint/find/checkpoint_folder.h"
#include "tests/testing.h"

namespace skein {
namespace {

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

OrderedJson plan(const std::string& name, const Overrides& overrides, const Arguments& more = {}) {
  Arguments arguments = job().arguments("plan", name, overrides);
  arguments.push_back("--json");
  arguments.insert(arguments.end(), more.begin(), more.end());
  return OrderedJson::parse(TinyJob::must(arguments).out);
}

// 185 million parameters: 5.9 GB, of them 2.6 GB for the snapshot.
const Overrides kLarge = {"model.hidden_size=1024",      "model.intermediate_size=4096",
                          "model.num_hidden_layers=11",  "model.num_attention_heads=8",
                          "model.num_key_value_heads=8", "run.steps=1",
                          "precision.mode=mixed"};

// Under a limit of addresses, in kB: the same on every machine, and nobody else counts in it.
Arguments limited(int64_t kilobytes, const Arguments& arguments) {
  return {"-c", fmt::format("ulimit -v {} && exec {} {}", kilobytes, default_program(),
                            fmt::join(arguments, " "))};
}

Outcome run_limited(int64_t kilobytes, const Arguments& arguments) {
  return SkeinProcess(limited(kilobytes, arguments), SkeinProcess::kNoFileLimit, "/bin/sh").wait();
}

void expect_refusal(const Outcome& outcome, const Words& words) {
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_EQ(outcome.error_lines().size(), 1u) << outcome.err;
  for (const std::string& word : words) {
    EXPECT_NE(outcome.err.find(word), std::string::npos) << word << "\n" << outcome.err;
  }
  EXPECT_LT(outcome.peak_resident_bytes, 200'000'000) << "something was allocated";
}

TEST(RunFits, WhatDoesNotFitIsRefusedBeforeAnythingIsAllocatedAndPlanSaysTheSame) {
  constexpr int64_t kKilobytes = 5'000'000;  // the arenas alone would fit
  const OrderedJson planned = plan("refused", kLarge).at("per_rank");
  EXPECT_LT(planned.at("device_bytes"), kKilobytes * 1024 - 900'000'000);
  EXPECT_GT(planned.at("total_bytes"), kKilobytes * 1024);

  const Outcome refused = run_limited(kKilobytes, job().arguments("train", "refused", kLarge));
  expect_refusal(refused, {"not enough device and host memory", "RLIMIT_AS", "snapshot", "too much",
                           "precision."});
  EXPECT_FALSE(fs::exists(job().run("refused") / "checkpoints"));
  for (const std::string once : {"a rank needs ", "too much", "precision.moments=bf16"}) {
    EXPECT_EQ(refused.err.find(once), refused.err.rfind(once)) << refused.err;
  }

  const Outcome text = run_limited(kKilobytes, job().arguments("plan", "refused", kLarge));
  EXPECT_EQ(text.exit_code, 0) << text.err;
  const auto needed = [](const std::string& said) {
    const size_t at = said.find("a rank needs ");
    return at == std::string::npos ? said : said.substr(at, said.find(" of ", at) - at);
  };
  EXPECT_EQ(needed(text.out), needed(refused.err));
  for (const char* word : {"does not fit", "Changes that make it fit", "precision."}) {
    EXPECT_NE(text.out.find(word), std::string::npos) << text.out;
  }
}

// Started by somebody else, workers find each other first, and agree.
TEST(RunFits, RanksOfALauncherRefuseTogether) {
  const auto start = [](int rank) {
    Overrides overrides = kLarge;
    overrides.push_back("launch.collective_timeout_s=60");
    const Arguments arguments = job().arguments("train", "together", overrides);
    // Rank 1 alone has the limit.
    const std::string limit = rank == 1 ? "ulimit -v 3000000 && " : "";
    return std::make_unique<SkeinProcess>(
        Arguments{"-c",
                  fmt::format("{}exec env SKEIN_RANK={} SKEIN_SIZE=2 SKEIN_LOCAL_RANK={} "
                              "SKEIN_LOCAL_SIZE=2 SKEIN_START_ID=one {} {}",
                              limit, rank, rank, default_program(), fmt::join(arguments, " "))},
        SkeinProcess::kNoFileLimit, "/bin/sh");
  };
  const auto first = start(0), second = start(1);
  const Outcome a = first->wait(), b = second->wait();
  expect_refusal(a, {"not enough device and host memory", "RLIMIT_AS"});
  expect_refusal(b, {"not enough device and host memory", "RLIMIT_AS"});
  EXPECT_EQ(a.error_lines(), b.error_lines());
}

TEST(RunFits, WorkersOfThisMachineAreCountedTogether) {
  const Overrides kOne = {"batch.micro_sequences=1"};
  const Overrides kFour = {"batch.micro_sequences=1", "launch.workers=4"};
  const OrderedJson one = plan("workers", kOne).at("memory").at(0);
  const OrderedJson four = plan("workers", kFour).at("memory").at(0);
  EXPECT_EQ(one.at("ranks"), 1);
  EXPECT_EQ(four.at("ranks"), 4);
  const OrderedJson rank = plan("workers", kFour).at("per_rank");
  const double each = rank.at("total_bytes").get<double>() + rank.at("process_bytes").get<double>();
  EXPECT_NEAR(four.at("needed_bytes").get<double>(), 4 * each, 0.01 * 4 * each);
  EXPECT_TRUE(four.at("fits"));
  EXPECT_GT(four.at("available_bytes"), 0);
}

TEST(RunFits, AProcessTakesNoMoreThanIsSaid) {
  const Overrides overrides = {"run.steps=3", "checkpoint.every_steps=1",
                               "data.validation=" + job().corpus().string(),
                               "validate.every_steps=1", "validate.batches=2"};
  const OrderedJson planned = plan("process", overrides).at("per_rank");
  const Outcome outcome = TinyJob::must(job().arguments("train", "process", overrides));
  const int64_t total = planned.at("total_bytes").get<int64_t>();
  fmt::print("peak {:.1f} MB, planned {:.1f} MB and {:.1f} MB of the process\n",
             static_cast<double>(outcome.peak_resident_bytes) * 1e-6,
             static_cast<double>(total) * 1e-6, planned.at("process_bytes").get<double>() * 1e-6);
  EXPECT_LT(outcome.peak_resident_bytes, total + planned.at("process_bytes").get<int64_t>());
}

TEST(RunFits, TheRunIsWhatThePlanSaysOfIt) {
  const Overrides overrides = {"run.steps=7",
                               "checkpoint.every_steps=2",
                               "checkpoint.keep=2",
                               "checkpoint.permanent_every_steps=4",
                               "precision.mode=mixed",
                               "optimizer.learning_rate=1e-5",
                               "optimizer.min_learning_rate=0"};
  const OrderedJson run = plan("whole", overrides).at("run");
  EXPECT_EQ(run.at("steps"), 7);
  EXPECT_EQ(run.at("tokens_per_step"), 4 * 64);
  EXPECT_EQ(run.at("tokens"), 7 * 4 * 64);
  // 2, 4, 6, 7: of them 4 stays; the newest two, one being written.
  EXPECT_EQ(run.at("permanent_checkpoints"), 1);
  EXPECT_EQ(run.at("checkpoints"), 4);
  EXPECT_EQ(run.at("disk_bytes"), 4 * run.at("checkpoint_bytes").get<int64_t>());

  job().trained("whole", overrides);
  int64_t weights = 0;
  for (const auto& [name, text] : read_weights(job().checkpoint("whole", 7))) {
    weights += static_cast<int64_t>(text.size());
  }
  const auto said = run.at("checkpoint_bytes").get<int64_t>();
  EXPECT_GE(weights, said);
  EXPECT_LT(weights, said + 64'000);  // headers
  EXPECT_EQ(list_checkpoints(job().run("whole") / "checkpoints").size(), 3u);

  const auto metrics = read_json_lines(job().run("whole") / "metrics.jsonl");
  ASSERT_FALSE(metrics.empty());
  const double expected = run.at("initial_param_norm"), found = metrics.front().at("param_norm");
  fmt::print("param_norm {:.4f}, expected {:.4f}\n", found, expected);
  EXPECT_NEAR(found, expected, 0.01 * expected);
  // Another rule, another norm; without one there is nothing to expect.
  const auto norm = [](const Overrides& of) {
    return plan("whole", of).at("run").at("initial_param_norm");
  };
  EXPECT_GT(norm({"model.init_std=0.2"}), 2 * expected);
  const fs::path file = job().folder / "range.json";
  std::ofstream(file) << "{\"initializer_range\": 0.2}";
  EXPECT_EQ(norm({"model.hf_config=" + file.string()}), norm({"model.init_std=0.2"}));
  EXPECT_GT(norm({"model.scaled_init=false"}), norm({}).get<double>());
  EXPECT_TRUE(norm({"model.init_from=" + job().checkpoint("whole", 7).string()}).is_null());
}

TEST(RunFits, TheTextAnswersWhatAPersonAsks) {
  const Outcome outcome = TinyJob::must(
      job().arguments("plan", "text", {"run.steps=100000", "checkpoint.every_steps=1000"}));
  for (const char* word :
       {"on device", "on host", "total", "process", "fits,", "to spare", "s a step",
        "at the speed of this machine's products and copies, measured now",
        "100000 steps of 256 tokens, 25.6 M tokens", "time ", "disk ", "6 checkpoints of",
        "param_norm "}) {
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word << "\n" << outcome.out;
  }
  EXPECT_EQ(outcome.out.find("0.0 s"), std::string::npos) << outcome.out;
}

// Training would say launch.workers; a plan of other machines is told by --ranks.
TEST(RunFits, APlanWithoutRanksNamesTheOption) {
  const Outcome outcome =
      run_skein(job().arguments("plan", "ranks", {"parallel.pipeline=2", "parallel.tensor=2"}));
  expect_refused(outcome, 2, {"--ranks", "multiple of 4", "pipeline 2", "tensor 2"});
  TinyJob::must(job().arguments("plan", "ranks",
                                {"parallel.pipeline=2", "parallel.tensor=2", "launch.workers=8"}));
}

}  // namespace
}  // namespace skein
