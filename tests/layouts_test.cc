// Every layout trains the same model: losses and norms of 8 steps as metrics.jsonl prints them, and
// the last checkpoint, are those of one worker; bit for bit, or where tensor or context parallelism
// change the order of a sum, within 1e-5 of the loss.
//
//   build/layouts_test                             a sample that covers every value of every
//                                                  dimension and every pair of kinds of parallelism
//   SKEIN_LAYOUTS=all build/layouts_test           all of them, with a table of failures at the end
//                                                  (scripts/check.sh layouts)
//   SKEIN_LAYOUTS=dp2_tp2 build/layouts_test       those with this in their name
//   SKEIN_LAYOUTS_SEED=7                           another sample; of all, another order
//   SKEIN_LAYOUTS_FROM=705                         goes on with the 705th of that order
//   SKEIN_LAYOUTS_AT_ONCE=4                        how many run at a time, default 1
#include <atomic>
#include <mutex>

#include "skein/compile/step_programs.h"
#include "skein/ops/ops.h"
#include "tests/parallel_job.h"

namespace skein {
namespace {

constexpr int64_t kSteps = 8;

const ParallelJob& job() {
  static const ParallelJob job;
  return job;
}

std::string variable(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}
uint64_t seed() { return std::stoull(variable("SKEIN_LAYOUTS_SEED", "1")); }

struct Result {
  RunLayout layout;
  std::string problem;  // none: it is as it should be
  double seconds = 0;
  Closeness closeness;
};

// Trains layouts with the same settings, and compares each with one worker.
class Comparison {
 public:
  explicit Comparison(std::string precision, Overrides more = {}, Closeness may_differ = kMayDiffer)
      : prefix_(name_of(precision, more)),
        base_(ParallelJob::setting(kSteps, precision) + more),
        may_differ_(may_differ) {}

  std::vector<Result> run(const std::vector<RunLayout>& layouts) {
    for (const RunLayout& layout : layouts) add_reference(layout);
    std::atomic<size_t> next = 0, done = 0;
    std::mutex printing;
    std::vector<Result> results(layouts.size());
    const auto work = [&] {
      for (size_t i = next++; i < layouts.size(); i = next++) {
        results[i] = compare(layouts[i]);
        const std::lock_guard lock(printing);
        fmt::print("[{:>4}/{}] {} {}: {}, {:.1f} s\n", ++done, layouts.size(), prefix_,
                   layouts[i].name(),
                   results[i].problem.empty() ? "ok" : "FAILED: " + results[i].problem,
                   results[i].seconds);
        std::fflush(stdout);
      }
    };
    std::vector<std::thread> threads;
    const int at_once = std::stoi(variable("SKEIN_LAYOUTS_AT_ONCE", "1"));
    for (int i = 0; i < at_once; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    return results;
  }

 private:
  // "bf16-sr_muon": the precision, and the values of what is set besides.
  static std::string name_of(std::string name, const Overrides& more) {
    for (const std::string& one : more) name += "_" + one.substr(one.find('=') + 1);
    return name;
  }

  std::string reference_name(const RunLayout& layout) const {
    return prefix_ + "_alone_" + alone(layout).name();
  }

  void add_reference(const RunLayout& layout) {
    const std::string name = reference_name(layout);
    if (curves_.contains(name)) return;
    job().trained(name, base_ + alone(layout).overrides());
    curves_[name] = read_curve(job().run(name));
  }

  Result compare(const RunLayout& layout) const {
    Result result;
    result.layout = layout;
    const std::string reference = reference_name(layout), name = prefix_ + "_" + layout.name();
    const Outcome outcome = job().run_for(name, base_ + layout.overrides());
    result.seconds = outcome.seconds;
    if (outcome.exit_code != 0) {
      result.problem = fmt::format("exit code {}: {}", outcome.exit_code,
                                   fmt::join(outcome.error_lines(), "\n"));
      return result;
    }
    const Curve curve = read_curve(job().run(name));
    if (layout.keeps_the_bits()) {
      result.problem = different_bits(curves_.at(reference), curve);
      if (result.problem.empty()) {
        result.problem =
            different_state(job().checkpoint(reference, kSteps), job().checkpoint(name, kSteps));
      }
    } else {
      result.problem = not_close(curves_.at(reference), curve, &result.closeness, may_differ_);
    }
    job().remove(name);
    return result;
  }

  const std::string prefix_;
  const Overrides base_;
  const Closeness may_differ_;
  std::map<std::string, Curve> curves_;
};

void report(const std::vector<Result>& results) {
  size_t same = 0, close = 0, failed = 0;
  double seconds = 0;
  Closeness worst;
  for (const Result& result : results) {
    seconds += result.seconds;
    worst.include(result.closeness);
    ++(!result.problem.empty() ? failed : result.layout.keeps_the_bits() ? same : close);
  }
  fmt::print(
      "{} layouts in {:.0f} s: {} as one worker bit for bit, {} close (loss within {:.1e}, "
      "gradient norm {:.1e}, weight norm {:.1e}), {} failed\n",
      results.size(), seconds, same, close, worst.loss, worst.grad_norm, worst.param_norm, failed);
  for (const Result& result : results) {
    EXPECT_EQ(result.problem, "") << result.layout.name();
  }
}

std::vector<RunLayout> with_the_bits_of_one_worker() {
  std::vector<RunLayout> layouts = all_layouts();
  std::erase_if(layouts, [](const RunLayout& layout) { return !layout.keeps_the_bits(); });
  return layouts;
}

std::vector<RunLayout> chosen_layouts() {
  const std::string choice = variable("SKEIN_LAYOUTS", "");
  if (choice.empty()) return sample(all_layouts(), Cover::kPairs, seed());
  std::vector<RunLayout> layouts = all_layouts();
  std::shuffle(layouts.begin(), layouts.end(), std::mt19937_64(seed()));
  if (choice != "all") {
    std::erase_if(layouts, [&](const RunLayout& layout) {
      return layout.name().find(choice) == std::string::npos;
    });
  }
  const size_t skipped = std::stoul(variable("SKEIN_LAYOUTS_FROM", "1")) - 1;
  layouts.erase(layouts.begin(), layouts.begin() + std::min(skipped, layouts.size()));
  return layouts;
}

TEST(Layouts, AreGeneratedAndTheSampleCoversThem) {
  const std::vector<RunLayout> all = all_layouts();
  std::set<std::string> names, values, pairs;
  for (const RunLayout& layout : all) {
    EXPECT_TRUE(names.insert(layout.name()).second) << layout.name() << " twice";
    EXPECT_LE(layout.num_workers(), 8);
    values.merge(layout.values());
    pairs.merge(layout.pairs());
  }
  EXPECT_GT(all.size(), 1000u);
  std::set<std::string> with_options;
  for (const RunLayout& layout : layouts_with_options()) with_options.merge(layout.pairs());
  for (const char* early : {"early ZeRO 2", "early ZeRO 3"}) {
    for (const char* other : {"tensor", "pipeline", "context", "biases", "offload", "qwen3"}) {
      const std::string pair = fmt::format("{} with {}", early, other);
      const std::string riap = fmt::format("{} with {}", other, early);
      EXPECT_TRUE(with_options.contains(pair) || with_options.contains(riap)) << pair;
    }
  }
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    std::set<std::string> sampled_values, sampled_pairs;
    for (const RunLayout& layout : sample(all, Cover::kPairs, seed)) {
      sampled_values.merge(layout.values());
      sampled_pairs.merge(layout.pairs());
    }
    EXPECT_EQ(sampled_values, values);
    EXPECT_EQ(sampled_pairs, pairs);
  }
}

// Graphs and memory of each, on a rank of some stage: what goes wrong there is found without
// running. plan_training sees that every program finds in memory what the graphs say
// (passes/memory/check_memory.h).
void expect_to_build(const std::vector<RunLayout>& layouts) {
  fmt::print("{} layouts\n", layouts.size());
  std::mt19937_64 random(seed());
  for (const RunLayout& layout : layouts) {
    const Overrides overrides = ParallelJob::setting(kSteps) + layout.overrides();
    const Config config = load_config(job().config().string(), overrides);
    const DecoderConfig model = model_of(config, 320);
    const auto rank = static_cast<int64_t>(random() % static_cast<uint64_t>(layout.num_workers()));
    try {
      const StepSpec spec =
          step_spec(config, model, parallel_layout(config, model, layout.num_workers(), rank));
      const TrainingGraphs graphs = training_graphs(spec);
      const ProgramSet programs = plan_training(graphs, spec, cpu_kernels());
      // Every parameter of the stage has its memory, and nothing else has any of the arena.
      int64_t held = 0, slack = 0;
      for (const Value& value : graphs.training.values()) {
        if (value.role != Role::kParameter || value.producer >= 0) continue;
        held += value.type.local_bytes(spec.layout.mesh);
        slack += kArenaAlignment + kFlatGranule * size_of(value.type.dtype);
      }
      const int64_t weights = programs.arena_bytes[static_cast<size_t>(Arena::kWeights)];
      EXPECT_GE(weights, held) << layout.name() << ", rank " << rank;
      EXPECT_LE(weights, held + slack) << layout.name() << ", rank " << rank;
      EXPECT_FALSE(programs.program("update").instructions.empty());
    } catch (const std::exception& error) {
      ADD_FAILURE() << layout.name() << ", rank " << rank << ": " << error.what();
    }
  }
}

TEST(Layouts, ASampleOfThemBuilds) {
  expect_to_build(sample(all_layouts(), Cover::kPairs, seed() + 2));
  expect_to_build(sample(layouts_with_options(), Cover::kPairs, seed() + 2));
}

// scripts/check.sh layouts
TEST(Layouts, AllOfThemBuild) {
  std::vector<RunLayout> all = all_layouts();
  const std::vector<RunLayout> more = layouts_with_options();
  all.insert(all.end(), more.begin(), more.end());
  expect_to_build(all);
}

TEST(Layouts, TrainAsOneWorkerDoes) {
  const std::vector<RunLayout> layouts = chosen_layouts();
  ASSERT_FALSE(layouts.empty()) << "SKEIN_LAYOUTS names none";
  report(Comparison("fp32").run(layouts));
}

TEST(Layouts, TrainAsOneWorkerDoesWithOptions) {
  if (!variable("SKEIN_LAYOUTS", "").empty()) GTEST_SKIP() << "of the sample";
  report(Comparison("fp32").run(sample(layouts_with_options(), Cover::kPairs, seed())));
}

// Each rank scales its own part of an operand to 8 bits: what tensor and context ranks hold differs
// from the whole by what 8 bits cannot tell.
TEST(Layouts, TrainAsOneWorkerDoesInEightBits) {
  if (!variable("SKEIN_LAYOUTS", "").empty()) GTEST_SKIP() << "of the sample";
  const Closeness may_differ = {.loss = 1e-3, .grad_norm = 1e-2, .param_norm = 3e-4};
  report(Comparison("fp8", {}, may_differ).run(sample(small_layouts(), Cover::kPairs, seed())));
}

TEST(Layouts, TrainAsOneWorkerDoesWithStochasticRounding) {
  if (!variable("SKEIN_LAYOUTS", "").empty()) GTEST_SKIP() << "of the sample";
  report(Comparison("bf16-sr", {"precision.moments=bf16"})
             .run(sample(with_the_bits_of_one_worker(), Cover::kValues, seed())));
}

TEST(Layouts, TrainAsOneWorkerDoesWithMasterWeights) {
  if (!variable("SKEIN_LAYOUTS", "").empty()) GTEST_SKIP() << "of the sample";
  report(
      Comparison("mixed").run(sample(with_the_bits_of_one_worker(), Cover::kValues, seed() + 1)));
}

// Ranks divide the matrices among them, whatever ranges of the state they hold.
TEST(Layouts, TrainAsOneWorkerDoesWithMuon) {
  if (!variable("SKEIN_LAYOUTS", "").empty()) GTEST_SKIP() << "of the sample";
  report(Comparison("fp32", {"optimizer.name=muon"})
             .run(sample(small_layouts(), Cover::kPairs, seed() + 3)));
}

TEST(Layouts, TrainAsOneWorkerDoesWithMuonAndStochasticRounding) {
  if (!variable("SKEIN_LAYOUTS", "").empty()) GTEST_SKIP() << "of the sample";
  report(Comparison("bf16-sr", {"optimizer.name=muon", "precision.moments=bf16"})
             .run(sample(with_the_bits_of_one_worker(), Cover::kValues, seed() + 4)));
}

TEST(Layouts, TrainAsOneWorkerDoesWithMuonAndMasterWeights) {
  if (!variable("SKEIN_LAYOUTS", "").empty()) GTEST_SKIP() << "of the sample";
  report(Comparison("mixed", {"optimizer.name=muon"})
             .run(sample(with_the_bits_of_one_worker(), Cover::kValues, seed() + 5)));
}

// Who holds what of the state changes no bit where context ranks split sums, either.
TEST(Layouts, OfContextRanksTrainAlikeWithAnyZero) {
  if (!variable("SKEIN_LAYOUTS", "").empty()) GTEST_SKIP() << "of the sample";
  for (const auto& [data, sequences] : {std::pair{2, 8}, {2, 2}, {1, 1}}) {
    RunLayout layout;
    layout.data = data;
    layout.context = 2;
    layout.sequences = sequences;
    const Overrides setting =
        ParallelJob::setting(kSteps, "bf16-sr") + Overrides{"precision.moments=bf16"};
    layout.zero = 0;
    const std::string whole = "whole_" + layout.name();
    job().trained(whole, setting + layout.overrides());
    for (layout.zero = 1; layout.zero <= 3; ++layout.zero) {
      SCOPED_TRACE(layout.name());
      const Outcome outcome = job().run_for(layout.name(), setting + layout.overrides());
      ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
      EXPECT_EQ(different_bits(read_curve(job().run(whole)), read_curve(job().run(layout.name()))),
                "");
      EXPECT_EQ(
          different_state(job().checkpoint(whole, kSteps), job().checkpoint(layout.name(), kSteps)),
          "");
      const bool is_idle =
          outcome.err.find("parallel.zero = 2 does what 1 does") != std::string::npos;
      EXPECT_EQ(is_idle, layout.zero == 2 && !layout.has_one_micro_batch()) << outcome.err;
      job().remove(layout.name());
    }
    job().remove(whole);
  }
}

}  // namespace
}  // namespace skein
