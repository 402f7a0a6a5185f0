// Whole runs on device.kind = "cuda" against the CPU and against each other: on the emulated
// device, or with SKEIN_TEST_PROGRAM=build/skein on a GPU.
#include <gmock/gmock.h>

#include "skein/base/text/units.h"
#include "tests/places.h"
#include "tests/testing.h"

namespace skein {
namespace {

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

std::string cuda_program() {
  const char* given = std::getenv("SKEIN_TEST_PROGRAM");
  return given != nullptr ? given : fs::path(kProgram).parent_path() / "skein_on_emulated_cuda";
}

void must(const Outcome& outcome, const std::string& name) {
  ASSERT_EQ(outcome.exit_code, 0) << name << "\n" << outcome.err;
}

void train_on_cpu(const std::string& name, const Overrides& overrides) {
  const Arguments arguments =
      job().arguments("train", name, overrides + Overrides{"device.kind=cpu"});
  must(SkeinProcess(arguments, SkeinProcess::kNoFileLimit, kProgram).wait(600), name);
}

Arguments cuda_arguments(const std::string& name, const Overrides& overrides) {
  return job().arguments("train", name, overrides + Overrides{"device.kind=cuda"});
}

void train_on_cuda(const std::string& name, const Overrides& overrides) {
  must(SkeinProcess(cuda_arguments(name, overrides), SkeinProcess::kNoFileLimit, cuda_program())
           .wait(600),
       name);
}

std::map<int64_t, double> numbers(const std::string& name, const char* key) {
  std::map<int64_t, double> values;
  for (const OrderedJson& line : read_json_lines(job().run(name) / "metrics.jsonl")) {
    values[line.at("step")] = line.at(key);
  }
  return values;
}

// The largest relative difference of all steps.
double largest_difference(const std::string& a, const std::string& b, const char* key) {
  const auto expected = numbers(a, key), found = numbers(b, key);
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(expected.size(), found.size());
  double largest = 0;
  for (const auto& [step, value] : expected) {
    largest = std::max(largest, std::fabs(found.at(step) - value) / std::fabs(value));
  }
  return largest;
}

void expect_same_run(const std::string& a, const std::string& b, int64_t step) {
  EXPECT_EQ(read_curve(job().run(a)), read_curve(job().run(b))) << a << ", " << b;
  EXPECT_TRUE(read_weights(job().checkpoint(a, step)) == read_weights(job().checkpoint(b, step)))
      << a << ", " << b;
}

struct Case {
  const char* name;
  Overrides overrides;
  double loss, norm;  // largest relative differences
};
void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class CudaTraining : public testing::TestWithParam<Case> {};

TEST_P(CudaTraining, HasTheLossesOfTheCpu) {
  const Case& test = GetParam();
  const bool is_emulated = std::getenv("SKEIN_TEST_PROGRAM") == nullptr;
  const Overrides all = test.overrides + Overrides{is_emulated ? "run.steps=8" : "run.steps=20"};
  const std::string cpu = fmt::format("cpu_{}", test.name),
                    cuda = fmt::format("cuda_{}", test.name);
  train_on_cpu(cpu, all);
  train_on_cuda(cuda, all);
  const double loss = largest_difference(cpu, cuda, "loss");
  const double norm = largest_difference(cpu, cuda, "grad_norm");
  fmt::print("{}: loss {:.1e}, gradient norm {:.1e}\n", test.name, loss, norm);
  EXPECT_LT(loss, test.loss);
  EXPECT_LT(norm, test.norm);
}

INSTANTIATE_TEST_SUITE_P(
    Precisions, CudaTraining,
    testing::Values(Case{"fp32", {"precision.mode=fp32"}, 1e-5, 1e-4},
                    Case{"fp32_none", {"precision.mode=fp32", "memory.recompute=none"}, 1e-5, 1e-4},
                    Case{"mixed", {"precision.mode=mixed"}, 5e-3, 5e-2},
                    Case{"bf16_sr", {"precision.mode=bf16-sr"}, 5e-3, 5e-2},
                    Case{"moments", {"precision.moments=bf16"}, 5e-3, 5e-2},
                    Case{"fp8", {"precision.mode=fp8"}, 5e-3, 5e-2}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(CudaRun, HasTheSameBitsHoweverItRuns) {
  // The second run of a program is recorded, the third is the recording.
  const Overrides shorter = {"run.steps=4", "data.sequence_length=32"};
  const auto train = [&](const char* name, const Overrides& overrides) {
    train_on_cuda(name, shorter + overrides);
  };
  train("reference", {});
  train("again", {});
  train("op_by_op", {"device.check_ops=true"});
  train("full", {"memory.recompute=full"});
  train("on_host", {"memory.offload_optimizer=true", "memory.offload_activations=true",
                    "memory.offload_min_bytes=1"});
  train("traced", {"log.trace_step=3", "validate.every_steps=2",
                   "data.validation=" + job().corpus().string()});
  for (const char* name : {"again", "op_by_op", "full", "on_host", "traced"}) {
    expect_same_run("reference", name, 4);
  }
  const Overrides one_by_one = {"batch.micro_sequences=1"};  // four micro-batches
  train("alone", one_by_one);
  train("pairs", one_by_one + Overrides{"parallel.pairs=true"});
  expect_same_run("alone", "pairs", 4);
  const Json trace = Json::parse(read_file(job().run("traced") / "trace-0.json"));
  std::set<std::string> programs;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") programs.insert(event.at("cat"));
  }
  EXPECT_EQ(programs, (std::set<std::string>{"forward.first", "forward", "backward.first",
                                             "backward", "update"}));
}

// A step ends where the next one begins, whenever the host heard of it: with check_ops it waits for
// all of a step before it reads the loss of the one before, but for the first step and the last.
TEST(CudaRun, StepsEndWhereTheDeviceEndsThem) {
  train_on_cuda("following", {"run.steps=8", "device.check_ops=true"});
  const auto clocks = numbers("following", "clock"), times = numbers("following", "step_ms");
  ASSERT_EQ(clocks.size(), 8u);
  double least = times.at(3);  // of those whose end the host hears of in time
  for (int64_t step = 4; step <= 7; ++step) least = std::min(least, times.at(step));
  for (int64_t step = 2; step <= 8; ++step) {
    EXPECT_NEAR(clocks.at(step) - clocks.at(step - 1), times.at(step) / 1e3, 1e-3) << step;
    EXPECT_GT(times.at(step), least / 4) << step;
  }
}

TEST(CudaRun, HasTheSameBitsWhetherWeightsOf8BitsAreKept) {
  const Overrides fp8 = {"precision.mode=fp8", "run.steps=4", "batch.global_sequences=4",
                         "batch.micro_sequences=1"};
  train_on_cuda("each_product", fp8 + Overrides{"memory.keep_fp8_weights=false"});
  train_on_cuda("kept", fp8);
  expect_same_run("each_product", "kept", 4);
}

TEST(CudaRun, GoesOnAfterAKillWithTheSameBits) {
  const Overrides saving = {"run.steps=12", "checkpoint.every_steps=2", "checkpoint.keep=2"};
  train_on_cuda("whole", saving);
  {
    SkeinProcess process(cuda_arguments("killed", saving), SkeinProcess::kNoFileLimit,
                         cuda_program());
    for (int i = 0; i < 60'000 && !fs::exists(job().checkpoint("killed", 4)); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    process.send(SIGKILL);
    process.wait();
  }
  train_on_cuda("killed", saving);
  expect_same_run("whole", "killed", 12);
}

// Algorithms that were chosen by measuring go with the checkpoint, also to a machine that would
// choose others.
TEST(CudaRun, GoesOnOnAMachineOfOtherTimingsWithTheSameBits) {
  if (std::getenv("SKEIN_TEST_PROGRAM") != nullptr) GTEST_SKIP() << "not on the emulation";
  const std::string shared = std::getenv("SKEIN_CACHE");
  const auto train_on = [&](const char* machine, const std::string& name, const Overrides& all) {
    setenv("SKEIN_CACHE", (job().folder / fmt::format("cache_{}", machine)).c_str(), 1);
    setenv("CUDA_EMULATION_SLOW_ALGORITHM", machine, 1);
    train_on_cuda(name, all + Overrides{"precision.mode=fp32"});
    unsetenv("CUDA_EMULATION_SLOW_ALGORITHM");
    setenv("SKEIN_CACHE", shared.c_str(), 1);
  };
  train_on("0", "first_machine", {"run.steps=4"});
  train_on("1", "second_machine", {"run.steps=4"});
  // Their losses may still be the same as printed.
  EXPECT_TRUE(read_weights(job().checkpoint("first_machine", 4)) !=
              read_weights(job().checkpoint("second_machine", 4)))
      << "the two machines must choose otherwise";
  train_on("0", "moved_machine", {"run.steps=2"});
  train_on("1", "moved_machine", {"run.steps=4"});
  expect_same_run("first_machine", "moved_machine", 4);
}

// Only the emulation can break a kernel on purpose.
TEST(CudaRun, AnErrorBehindTheHostSaysWhereAndLosesNothing) {
  if (std::getenv("SKEIN_TEST_PROGRAM") != nullptr) GTEST_SKIP() << "not on the emulation";
  const Overrides saving = {"checkpoint.every_steps=1"};
  // Counted from the second step on: how many kernels measure the ceiling depends on the machine.
  const auto error_of = [&](const std::string& name, const Overrides& overrides) {
    setenv("CUDA_EMULATION_FAIL_KERNEL", "100", 1);
    setenv("CUDA_EMULATION_FAIL_AFTER", job().checkpoint(name, 1).c_str(), 1);
    const Outcome outcome = SkeinProcess(cuda_arguments(name, saving + overrides),
                                         SkeinProcess::kNoFileLimit, cuda_program())
                                .wait(600);
    unsetenv("CUDA_EMULATION_FAIL_KERNEL");
    unsetenv("CUDA_EMULATION_FAIL_AFTER");
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(
      error_of("broken", {}),
      testing::ContainsRegex("cudaErrorIllegalAddress\\) in step [0-9]+, in ops [0-9]+ to "
                             "[0-9]+ of program '[a-z.]+', \\[[a-z_]+\\] .*: run again with "
                             "device.check_ops = true"));
  EXPECT_THAT(error_of("checked", {"device.check_ops=true"}),
              testing::ContainsRegex("step [0-9]+: \\[[a-z_]+\\] .* in program [a-z.]+: GPU 0: "
                                     ".*cudaErrorIllegalAddress"));
  train_on_cuda("broken", saving);
  train_on_cuda("unbroken", saving);
  expect_same_run("unbroken", "broken", 6);
}

// A checkpoint belongs to no device.
TEST(CudaRun, ACheckpointGoesOnOnTheOtherDevice) {
  const Overrides fp32 = {"precision.mode=fp32"};
  train_on_cpu("moved", fp32 + Overrides{"run.steps=3"});
  train_on_cuda("moved", fp32 + Overrides{"run.steps=6"});
  train_on_cpu("stayed", fp32 + Overrides{"run.steps=6"});
  EXPECT_LT(largest_difference("stayed", "moved", "loss"), 1e-5);
}

TEST(CudaRun, SaysWhatIsMissing) {
  const auto refusal = [&](const Overrides& overrides) {
    return SkeinProcess(cuda_arguments("refused", overrides), SkeinProcess::kNoFileLimit,
                        cuda_program())
        .wait();
  };
  setenv("CUDA_EMULATION_DEVICES", "0", 1);
  const Outcome without_gpu = refusal({});
  unsetenv("CUDA_EMULATION_DEVICES");
  if (std::getenv("SKEIN_TEST_PROGRAM") == nullptr) {
    expect_refused(without_gpu, 1, {"device.kind is 'cuda'", "no GPU", "nvidia-smi"});
    setenv("CUDA_EMULATION_MEMORY", "2000000", 1);
    expect_refused(refusal({}), 1, {"needs", "left", "skein plan", "nvidia-smi"});
    unsetenv("CUDA_EMULATION_MEMORY");
  }
}

// Llama 2 7B with nothing computed again, 4,096 tokens; cuDNN's attention takes 0.8 GB of it.
TEST(CudaPlan, SevenBillionWeightsFitOneGpu) {
  const std::string configs = std::string(kSourceFolder) + "/configs";
  const Outcome outcome = SkeinProcess({"plan", configs + "/llama2-7b-h200.toml", "--json"},
                                       SkeinProcess::kNoFileLimit, cuda_program())
                              .wait();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json plan = Json::parse(outcome.out);
  EXPECT_TRUE(plan.at("fits"));
  EXPECT_LT(plan.at("per_rank").at("device_bytes").get<int64_t>(),
            int64_t{132} * 1000 * 1000 * 1000);
}

Outcome ask(const std::string& program, Arguments arguments, const std::string& device) {
  arguments.insert(arguments.end(), {"--device", device});
  Outcome outcome = SkeinProcess(arguments, SkeinProcess::kNoFileLimit, program).wait(600);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return outcome;
}

// score, generate, eval and serve of a trained model.
TEST(CudaModel, AnswersAsOnTheCpu) {
  train_on_cpu("asked", {"run.steps=20"});
  const std::string model = job().run("asked").string();
  const auto of_both = [&](const Arguments& arguments) {
    return std::pair(ask(kProgram, arguments, "cpu"), ask(cuda_program(), arguments, "cuda"));
  };
  const fs::path tokens = job().folder / "asked.json";
  std::ofstream(tokens) << "[[1, 70, 80, 90, 100, 110, 75, 85], [1, 75], [5, 6, 7, 8, 9]]";
  const auto [scored, scored_on_cuda] =
      of_both({"score", "--model", model, "--tokens", tokens.string()});
  const Json expected = Json::parse(scored.out).at("logprobs");
  const Json found = Json::parse(scored_on_cuda.out).at("logprobs");
  ASSERT_EQ(expected.size(), 3u);
  for (size_t i = 0; i < expected.size(); ++i) {
    for (size_t k = 1; k < expected[i].size(); ++k) {
      EXPECT_NEAR(found.at(i).at(k).get<float>(), expected[i][k].get<float>(), 1e-4) << i;
    }
  }

  // What is drawn may part where two tokens are nearly equally likely, and a byte is a token here.
  const auto [made, made_on_cuda] = of_both(
      {"generate", "--model", model, "--prompt", "The", "--temperature", "0", "--max-tokens", "8"});
  EXPECT_EQ(made.out, made_on_cuda.out);

  fs::create_directories(job().folder / "questions/letters");
  std::ofstream(job().folder / "questions/letters/test.jsonl")
      << R"({"question": "a b c", "options": ["d", "q"], "answer": 0})"
      << "\n"
      << R"({"question": "The", "options": [" end", " zzz"], "answer": 1})"
      << "\n";
  std::ofstream(job().folder / "questions/letters.yaml")
      << "task: letters\ndataset_path: letters\ntest_split: test\noutput_type: multiple_choice\n"
         "doc_to_text: '{{question}}'\ndoc_to_choice: '{{options}}'\ndoc_to_target: answer\n"
         "metric_list: [{metric: acc}, {metric: gold_bits_per_byte}]\n";
  const Arguments questions = {"eval",    model,
                               "--tasks", (job().folder / "questions/letters.yaml").string(),
                               "--data",  (job().folder / "questions").string(),
                               "--json"};
  const Json on_cpu = Json::parse(ask(kProgram, questions, "cpu").out);
  EXPECT_EQ(on_cpu.at("config").at("device"), "cpu");
  const Json& expected_scores = on_cpu.at("results").at("letters");
  const auto expect_scores = [&](const Arguments& more) {
    Arguments arguments = questions;
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Json on_cuda = Json::parse(ask(cuda_program(), arguments, "cuda").out);
    EXPECT_EQ(on_cuda.at("config").at("device"), "cuda");
    const Json& scores = on_cuda.at("results").at("letters");
    EXPECT_EQ(scores.at("acc,none"), expected_scores.at("acc,none"));
    EXPECT_NEAR(scores.at("gold_bits_per_byte,none").get<double>(),
                expected_scores.at("gold_bits_per_byte,none").get<double>(), 1e-4);
  };
  expect_scores({});
  if (std::getenv("SKEIN_TEST_PROGRAM") != nullptr) return;
  setenv("CUDA_EMULATION_DEVICES", "2", 1);
  expect_scores({"--tensor", "2"});
  expect_scores({"--replicas", "2"});
  Arguments too_many = questions;
  too_many.insert(too_many.end(), {"--device", "cuda", "--tensor", "4"});
  const Outcome refused = SkeinProcess(too_many, SkeinProcess::kNoFileLimit, cuda_program()).wait();
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--tensor 4 and --replicas 1 take 4 devices, and there are 2"),
            std::string::npos)
      << refused.err;
  unsetenv("CUDA_EMULATION_DEVICES");
}

// What a server takes is known without a GPU.
TEST(CudaModel, IsPlannedInABuildWithoutCuda) {
  train_on_cpu("planned", {"run.steps=1"});
  const Arguments arguments = {"serve", job().run("planned").string(), "--plan", "--json"};
  const Json without = Json::parse(ask(kProgram, arguments, "cuda").out);
  EXPECT_EQ(without, Json::parse(ask(cuda_program(), arguments, "cuda").out));
  EXPECT_EQ(without.at("device"), "cuda");
  int64_t sum = 0;
  for (const auto& [arena, bytes] : without.at("bytes").items()) sum += bytes.get<int64_t>();
  EXPECT_EQ(sum, without.at("total_bytes"));
  const SkeinProcess server(
      {"serve", job().run("planned").string(), "--listen", "127.0.0.1:0", "--device", "cuda"},
      SkeinProcess::kNoFileLimit, cuda_program());
  EXPECT_TRUE(wait_until([&] {
    return server.error_so_far().find("memory " + format_bytes(sum) + ": weights") !=
           std::string::npos;
  })) << server.error_so_far();
}

// The same of build/skein, which may know CUDA's rules alone, as of the build that runs kernels.
TEST(CudaPlan, HasTheSameBytesInABuildWithoutCuda) {
  const std::string configs = std::string(kSourceFolder) + "/configs";
  const std::pair<const char*, Overrides> cases[] = {
      {"as it is", {}},
      {"fp8", {"precision.mode=fp8"}},
      {"fp8, odd sizes", {"precision.mode=fp8", "model.intermediate_size=11000"}},
      {"fp32", {"precision.mode=fp32", "batch.micro_sequences=1"}},
      {"in any order", {"precision.repeatable=false"}},
      {"no documents", {"data.document_mask=false"}},
      {"heads of 64", {"model.num_attention_heads=64", "model.num_key_value_heads=8"}},
      {"heads of 256", {"model.num_attention_heads=16", "model.num_key_value_heads=4"}},
      {"biases", {"model.attention_bias=true", "model.mlp_bias=true"}},
      {"normed heads",
       {"model.hf_config=", "model.model_type=qwen3", "model.hidden_size=4096",
        "model.intermediate_size=11008", "model.num_attention_heads=32",
        "model.num_key_value_heads=8", "model.head_dim=128", "model.vocab_size=32000"}},
      {"tensor and pipeline",
       {"parallel.tensor=2", "parallel.pipeline=2", "parallel.data=2", "plan.ranks=8"}},
      {"context, ZeRO 3", {"parallel.context=4", "parallel.zero=3", "plan.ranks=8"}},
  };
  for (const auto& [name, overrides] : cases) {
    SCOPED_TRACE(name);
    Arguments arguments = {"plan", configs + "/llama2-7b-h200.toml", "--json", "--set",
                           "model.num_hidden_layers=4"};
    for (const std::string& text : overrides) arguments.insert(arguments.end(), {"--set", text});
    const auto planned = [&](const std::string& program) {
      const Outcome outcome = SkeinProcess(arguments, SkeinProcess::kNoFileLimit, program).wait();
      EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
      return outcome.exit_code == 0 ? OrderedJson::parse(outcome.out) : OrderedJson();
    };
    const OrderedJson without = planned(kProgram), with = planned(cuda_program());
    EXPECT_EQ(without.value("kernels", ""), "cuda");
    EXPECT_EQ(without, with);
  }
}

}  // namespace
}  // namespace skein
