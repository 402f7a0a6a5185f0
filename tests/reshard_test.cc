// Saved in one layout, resumed in another: the same data, and the same numbers as a run that was
// never interrupted. Bit for bit where tensor and context parallelism are the same before and after
// (1 or not), else within 1e-5 of the loss. The checkpoints verify, export and score.
//
//   build/reshard_test                            a few pairs
//   SKEIN_RESHARD_PAIRS=100 build/reshard_test    as many, of layouts of any cost
//   SKEIN_RESHARD_SEED=7                          other pairs
#include <array>

#include "tests/parallel_job.h"

namespace skein {
namespace {

constexpr int64_t kSavedAt = 10, kSteps = 20;

const ParallelJob& job() {
  static const ParallelJob job;
  return job;
}

int64_t number(const char* name, int64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::stoll(value);
}

struct Pair {
  RunLayout before, after;
  std::string precision = "fp32", optimizer = "adamw";

  std::string name() const {
    return fmt::format("{} {} {} then {}", precision, optimizer, before.name(), after.name());
  }
  bool sums_alike() const {
    return before.tensor == after.tensor && before.context == after.context &&
           before.sequence == after.sequence;
  }
  // What sums products in the same order as both, or else the plainest.
  RunLayout reference() const {
    RunLayout layout = alone(before);
    if (!sums_alike()) return layout;
    layout.tensor = before.tensor;
    layout.context = before.context;
    layout.sequence = before.sequence;
    return layout;
  }
};

enum class Kind { kBits, kSameTensorAndContext, kAny };

std::vector<Pair> random_pairs(int64_t count, double max_core_seconds, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<RunLayout> layouts = all_layouts();
  std::erase_if(layouts, [&](const RunLayout& l) { return l.core_seconds() > max_core_seconds; });
  const auto fits = [](const Pair& pair, Kind kind) {
    const RunLayout &a = pair.before, &b = pair.after;
    if (a.name() == b.name() || alone(a).name() != alone(b).name()) return false;
    if (kind == Kind::kBits) return a.keeps_the_bits() && b.keeps_the_bits();
    if (kind == Kind::kSameTensorAndContext) return pair.sums_alike() && !a.keeps_the_bits();
    return !pair.sums_alike();
  };
  const auto any = [&] { return layouts[random() % layouts.size()]; };
  std::vector<Pair> pairs;
  while (static_cast<int64_t>(pairs.size()) < count) {
    const Kind kind = std::array{Kind::kBits, Kind::kSameTensorAndContext, Kind::kBits,
                                 Kind::kAny}[pairs.size() % 4];
    Pair pair{any(), any()};
    while (!fits(pair, kind)) pair = {any(), any()};
    const char* const precisions[] = {"mixed", "bf16-sr", "fp32"};
    if (kind == Kind::kBits) pair.precision = precisions[pairs.size() / 2 % 3];
    if (pairs.size() % 4 == 2) pair.optimizer = "muon";
    pairs.push_back(pair);
  }
  return pairs;
}

Overrides setting(const Pair& pair, int64_t steps) {
  return ParallelJob::setting(steps, pair.precision) +
         Overrides{fmt::format("precision.moments={}", pair.precision == "fp32" ? "fp32" : "bf16"),
                   "optimizer.name=" + pair.optimizer};
}

// A run in one piece; made once.
std::string uninterrupted(const Pair& pair) {
  const RunLayout layout = pair.reference();
  const std::string name =
      fmt::format("whole_{}_{}_{}", pair.precision, pair.optimizer, layout.name());
  if (fs::exists(job().checkpoint(name, kSteps))) return name;
  const Outcome outcome = job().run_for(name, setting(pair, kSteps) + layout.overrides());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return name;
}

std::string exported(const std::string& name) {
  const fs::path folder = job().folder / ("export_" + name);
  if (!fs::exists(folder)) {
    TinyJob::must({"checkpoint", "export", job().checkpoint(name, kSteps).string(), "--out",
                   folder.string()});
  }
  return folder.string();
}

std::string scores(const std::string& model) {
  const fs::path tokens = job().folder / "tokens.json";
  std::ofstream(tokens) << "[[1, 2, 3, 300, 4, 5, 319, 17, 60], [7, 8]]";
  return TinyJob::must({"score", "--model", model, "--tokens", tokens.string()}).out;
}

void check_checkpoints(const Pair& pair, const std::string& whole) {
  TinyJob::must({"checkpoint", "verify", job().run("resharded").string()});
  const std::string found = exported("resharded");
  const std::string score = scores(job().checkpoint("resharded", kSteps).string());
  EXPECT_EQ(score, scores(found));
  if (pair.sums_alike()) {
    EXPECT_EQ(
        different_state(job().checkpoint(whole, kSteps), job().checkpoint("resharded", kSteps)),
        "");
    const std::string expected = exported(whole);
    EXPECT_TRUE(read_weights(expected) == read_weights(found)) << "the exports differ";
    EXPECT_EQ(score, scores(expected));
  }
}

void check_pair(const Pair& pair) {
  SCOPED_TRACE(pair.name());
  const std::string whole = uninterrupted(pair);
  job().remove("resharded");
  fs::remove_all(job().folder / "export_resharded");
  const auto run = [&](const RunLayout& layout, int64_t steps) {
    const Outcome outcome = job().run_for("resharded", setting(pair, steps) + layout.overrides());
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  };
  ASSERT_NO_FATAL_FAILURE(run(pair.before, kSavedAt));
  ASSERT_NO_FATAL_FAILURE(run(pair.after, kSteps));
  const Curve expected = read_curve(job().run(whole)), found = read_curve(job().run("resharded"));
  Closeness closeness;
  EXPECT_EQ(
      pair.sums_alike() ? different_bits(expected, found) : not_close(expected, found, &closeness),
      "");
  check_checkpoints(pair, whole);
}

TEST(Reshard, GoesOnInAnotherLayout) {
  const int64_t asked = number("SKEIN_RESHARD_PAIRS", 0);
  const auto seed = static_cast<uint64_t>(number("SKEIN_RESHARD_SEED", 1));
  const std::vector<Pair> pairs =
      asked > 0 ? random_pairs(asked, 1e9, seed) : random_pairs(8, 6, seed);
  fmt::print("seed {}\n", seed);
  for (size_t i = 0; i < pairs.size(); ++i) {
    fmt::print("[{:>3}/{}] {}\n", i + 1, pairs.size(), pairs[i].name());
    std::fflush(stdout);
    check_pair(pairs[i]);
  }
}

}  // namespace
}  // namespace skein
