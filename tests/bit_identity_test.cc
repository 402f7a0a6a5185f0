// The same bits, whatever the machine does: losses and norms of every step, as metrics.jsonl prints
// them, and every byte of the last checkpoint are those of one reference run, over recomputation,
// thread counts, ways of saving, validation, kill -9 and SIGTERM.
#include <random>

#include "tests/testing.h"

namespace skein {
namespace {

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

// The run's curve and last checkpoint are those of the reference.
void expect_same_bits(const std::string& reference, const std::string& name, int64_t steps) {
  const auto expected = read_curve(job().run(reference));
  const auto found = read_curve(job().run(name));
  ASSERT_EQ(static_cast<int64_t>(expected.size()), steps);
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [step, text] : expected) {
    ASSERT_EQ(found.at(step), text) << name << ", step " << step;
  }
  const auto expected_files = read_weights(job().checkpoint(reference, steps));
  const auto files = read_weights(job().checkpoint(name, steps));
  ASSERT_GE(expected_files.size(), 2u);
  ASSERT_EQ(files.size(), expected_files.size());
  for (const auto& [file, bytes] : expected_files) {
    EXPECT_TRUE(files.at(file) == bytes) << name << ": " << file << " differs";
  }
}

struct Case {
  const char* name;
  Overrides overrides;
  int64_t steps = 6;
};
void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

const Overrides kOddSizes = {
    "model.hidden_size=72",      "model.intermediate_size=100",    "model.vocab_size=331",
    "model.head_dim=24",         "model.num_hidden_layers=3",      "model.num_key_value_heads=1",
    "model.attention_bias=true", "model.tie_word_embeddings=true", "data.sequence_length=37",
    "batch.global_sequences=9",  "batch.micro_sequences=3"};
// Several tiles of attention, several token blocks of the loss.
const Overrides kLong = {"data.sequence_length=1100", "model.max_position_embeddings=2048",
                         "batch.global_sequences=2"};

// Work enough that every kernel divides it among the threads.
const Overrides kLarger = {"model.hidden_size=320",       "model.intermediate_size=900",
                           "model.num_attention_heads=5", "model.num_key_value_heads=5",
                           "model.vocab_size=1501",       "data.sequence_length=250",
                           "batch.global_sequences=4",    "model.num_hidden_layers=1"};

class BitIdentity : public ::testing::TestWithParam<Case> {};

TEST_P(BitIdentity, OverRecomputationThreadsSavingAndValidation) {
  const Case& param = GetParam();
  const std::string name = param.name;
  const Overrides base = param.overrides + Overrides{fmt::format("run.steps={}", param.steps)};
  job().trained(name, base + Overrides{"memory.recompute=none", "device.threads=1"});
  const std::string validation = "data.validation=" + job().corpus().string();
  const std::pair<const char*, Overrides> variants[] = {
      {"selective", {"memory.recompute=selective", "device.threads=1"}},
      {"full", {"memory.recompute=full", "device.threads=1"}},
      {"two_threads", {"memory.recompute=none", "device.threads=2"}},
      {"three_threads_full", {"memory.recompute=full", "device.threads=3"}},
      {"saving", {"device.threads=2", "checkpoint.every_steps=3"}},
      {"saving_in_line", {"checkpoint.every_steps=3", "checkpoint.async=false"}},
      {"validating", {validation, "validate.every_steps=2", "validate.batches=1"}},
  };
  for (const auto& [variant, overrides] : variants) {
    const std::string run = name + "_" + variant;
    job().trained(run, base + overrides);
    expect_same_bits(name, run, param.steps);
    fs::remove_all(job().run(run));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BitIdentity,
    ::testing::Values(
        Case{"fp32", {"precision.mode=fp32"}}, Case{"bf16", {"precision.mode=bf16"}},
        Case{"bf16_sr", {"precision.mode=bf16-sr"}}, Case{"mixed", {"precision.mode=mixed"}},
        Case{"fp8", {"precision.mode=fp8"}},
        Case{"bf16_sr_bf16_moments", {"precision.mode=bf16-sr", "precision.moments=bf16"}},
        Case{"muon_bf16_sr", {"optimizer.name=muon", "precision.mode=bf16-sr"}},
        Case{"odd_fp32", kOddSizes + Overrides{"precision.mode=fp32"}},
        Case{"odd_bf16_sr", kOddSizes + Overrides{"precision.mode=bf16-sr"}},
        Case{"odd_mixed", kOddSizes + Overrides{"precision.mode=mixed", "precision.moments=bf16"}},
        Case{"larger_fp32", kLarger + Overrides{"precision.mode=fp32"}, 3},
        Case{"larger_bf16_sr", kLarger + Overrides{"precision.mode=bf16-sr"}, 3},
        Case{"long_fp32", kLong + Overrides{"precision.mode=fp32"}, 3},
        Case{"long_bf16_sr", kLong + Overrides{"precision.mode=bf16-sr"}, 3}),
    [](const auto& info) { return std::string(info.param.name); });

// With the weights of the layers rounded once a step, or by each product; over what comes between
// two steps.
TEST(BitIdentity, OverKeptWeightsOf8Bits) {
  const Overrides base = {"precision.mode=fp8", "run.steps=6", "batch.global_sequences=4",
                          "batch.micro_sequences=1"};
  job().trained("each_product", base + Overrides{"memory.keep_fp8_weights=false"});
  const std::string validation = "data.validation=" + job().corpus().string();
  const std::pair<const char*, Overrides> variants[] = {
      {"kept", {}},
      {"kept_full", {"memory.recompute=full"}},
      {"kept_validating", {validation, "validate.every_steps=1", "validate.batches=1"}},
  };
  for (const auto& [run, overrides] : variants) {
    job().trained(run, base + overrides);
    const OrderedJson start = read_json_lines(job().run(run) / "events.jsonl").front();
    EXPECT_GT(start.at("allocated_bytes").at("rounded"), 0) << start.dump();
    expect_same_bits("each_product", run, 6);
  }
  // Sizes of which no product is in 8 bits on a GPU.
  const Overrides odd = base + kOddSizes + Overrides{"batch.global_sequences=3"};
  job().trained("odd_each_product", odd + Overrides{"memory.keep_fp8_weights=false"});
  const Outcome outcome = TinyJob::must(job().arguments("train", "odd_kept", odd));
  EXPECT_NE(outcome.err.find("12 products of the layers round their weights themselves"),
            std::string::npos)
      << outcome.err;
  expect_same_bits("odd_each_product", "odd_kept", 6);
  // From a checkpoint, which does not hold them.
  const Overrides saving = base + Overrides{"checkpoint.every_steps=3"};
  job().trained("kept_goes_on", saving);
  fs::remove_all(job().checkpoint("kept_goes_on", 6));
  TinyJob::must(job().arguments("train", "kept_goes_on", saving));
  expect_same_bits("each_product", "kept_goes_on", 6);
  const auto events = read_json_lines(job().run("kept_goes_on") / "events.jsonl");
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const auto& event) {
    return event.at("event") == "start" && event.at("step") == 3;
  }));
}

TEST(BitIdentity, OverOffloadedActivations) {
  const Overrides base = kLarger + Overrides{"model.hidden_size=640", "model.num_hidden_layers=3",
                                             "run.steps=3", "batch.micro_sequences=4"};
  job().trained("on_device", base + Overrides{"memory.recompute=none"});
  for (const char* recompute : {"none", "selective", "full"}) {
    const std::string run = fmt::format("offloaded_{}", recompute);
    job().trained(run, base + Overrides{"memory.offload_activations=true",
                                        fmt::format("memory.recompute={}", recompute)});
    const OrderedJson start = read_json_lines(job().run(run) / "events.jsonl").front();
    EXPECT_GT(start.at("allocated_bytes").at("host_activations"), 0) << start.dump();
    expect_same_bits("on_device", run, 3);
  }
}

TEST(BitIdentity, SeedsMatter) {
  job().trained("seed_1", {"run.seed=1"});
  job().trained("seed_2", {"run.seed=2"});
  EXPECT_NE(read_curve(job().run("seed_1")), read_curve(job().run("seed_2")));
}

int64_t last_step(const std::string& name) {
  if (!fs::exists(job().run(name) / "metrics.jsonl")) return 0;
  const auto curve = read_curve(job().run(name));
  return curve.empty() ? 0 : curve.rbegin()->first;
}

bool has_partial_checkpoint(const std::string& name) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(job().run(name) / "checkpoints", error)) {
    if (entry.path().extension() == ".partial") return true;
  }
  return false;
}

// Waits until `holds`, at most 60 s.
template <typename Condition>
void wait_until(const Condition& holds) {
  for (int i = 0; i < 60'000 && !holds(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// What may change from one start to the next.
Overrides way_to_run(int start) {
  static const char* const kRecompute[] = {"none", "selective", "full"};
  return {fmt::format("device.threads={}", 1 + start % 3),
          fmt::format("memory.recompute={}", kRecompute[(start / 2) % 3]),
          fmt::format("checkpoint.async={}", start % 4 != 3)};
}

TEST(Interrupted, KilledAtRandomStepsEndsWithTheSameBits) {
  constexpr int64_t kSteps = 240;
  const Overrides base = {fmt::format("run.steps={}", kSteps)};
  job().trained("whole", base);
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("random seed {}", seed));
  std::mt19937 random(seed);
  const Overrides saving = base + Overrides{"checkpoint.every_steps=7", "checkpoint.keep=2"};
  int kills = 0, kills_during_a_save = 0;
  for (int start = 0; start < 9; ++start) {
    SkeinProcess process(job().arguments("train", "killed", saving + way_to_run(start)));
    const int64_t target = last_step("killed") + 1 + static_cast<int64_t>(random() % 25);
    wait_until([&] { return last_step("killed") >= target; });
    // Every other kill falls into a save.
    if (start % 2 == 0) wait_until([&] { return has_partial_checkpoint("killed"); });
    process.send(SIGKILL);
    const Outcome outcome = process.wait();
    if (outcome.exit_code == 0) break;  // it was done before
    ASSERT_EQ(outcome.exit_code, -SIGKILL) << outcome.err;
    ++kills;
    if (has_partial_checkpoint("killed")) ++kills_during_a_save;
    expect_only_good_checkpoints(job().run("killed"));
  }
  job().trained("killed", saving);
  fmt::print("{} kills, {} of them during a save\n", kills, kills_during_a_save);
  EXPECT_GE(kills, 4);
  EXPECT_GE(kills_during_a_save, 1);
  EXPECT_FALSE(has_partial_checkpoint("killed"));
  expect_same_bits("whole", "killed", kSteps);
}

TEST(Interrupted, SignalsSaveAndExitWith75) {
  const Overrides base = {"precision.mode=mixed", "checkpoint.every_steps=1000"};
  for (const int signal : {SIGTERM, SIGUSR1}) {
    const int64_t before = last_step("stopped");
    SkeinProcess process(job().arguments("train", "stopped", base + Overrides{"run.steps=900000"}));
    wait_until([&] { return last_step("stopped") > before + 10; });
    process.send(signal);
    const Outcome outcome = process.wait();
    ASSERT_EQ(outcome.exit_code, 75) << outcome.err;
    const int64_t stopped_at = last_step("stopped");
    EXPECT_TRUE(fs::exists(job().checkpoint("stopped", stopped_at) / "manifest.json"));
    const OrderedJson stop = read_json_lines(job().run("stopped") / "events.jsonl").back();
    EXPECT_EQ(stop.at("event"), "stop");
    EXPECT_EQ(stop.at("reason"), signal == SIGTERM ? "SIGTERM" : "SIGUSR1");
    EXPECT_EQ(stop.at("step"), stopped_at);
  }
  const int64_t steps = last_step("stopped") + 5;
  const Overrides end = base + Overrides{fmt::format("run.steps={}", steps)};
  job().trained("stopped", end);
  job().trained("not_stopped", end);
  expect_same_bits("not_stopped", "stopped", steps);
}

}  // namespace
}  // namespace skein
