// What `skein plan` promises, training keeps: the bytes of every arena, exactly; peak resident
// memory; and a plan of a large model within moments.
#include <algorithm>

#include "skein/backends/backend.h"
#include "skein/base/text/units.h"
#include "skein/config/config.h"
#include "tests/places.h"
#include "tests/testing.h"

namespace skein {
namespace {

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

// Activations large enough to be offloaded.
const Overrides kOffloaded = {"model.hidden_size=640", "model.intermediate_size=704",
                              "model.num_hidden_layers=4", "data.sequence_length=250",
                              "batch.micro_sequences=4"};

OrderedJson plan(const std::string& name, const Overrides& overrides) {
  Arguments arguments = job().arguments("plan", name, overrides);
  arguments.push_back("--json");
  return OrderedJson::parse(TinyJob::must(arguments).out);
}

bool builds_with_cuda() { return find_backend_to_plan("cuda").only_plans.empty(); }

TEST(Plan, SaysWhoseKernelsItPlannedFor) {
  const Overrides on_cpu = {"device.kind=cpu", "device.cpu=avx2"};
  EXPECT_EQ(plan("planned", on_cpu).at("kernels"), "avx2");
  const Outcome text = TinyJob::must(job().arguments("plan", "planned", on_cpu));
  EXPECT_NE(text.out.find("scratch of kernels for avx2\n"), std::string::npos) << text.out;
}

TEST(Plan, OfAGpuThatIsNotHereSaysHowToPlanForOne) {
  const int expected = builds_with_cuda() ? 1 : 2;
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);  // where there is one
  expect_refused(run_skein(job().arguments("plan", "planned", {"device.kind=cuda"})), expected,
                 {"device.kind is 'cuda'", "[plan] hardware", "--hardware FILE.toml"});
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(Plan, OfAGpuNeedsNoCudaAndTrainingSaysThatItDoes) {
  const std::string h200 = std::string(kSourceFolder) + "/configs/hardware/h200-8x.toml";
  const Overrides on_gpu = {"device.kind=cuda", "plan.hardware=" + h200};
  EXPECT_EQ(plan("planned", on_gpu).at("kernels"), "cuda");
  TinyJob::must(job().arguments("plan", "planned", on_gpu) + Arguments{"--passes"});
  if (builds_with_cuda()) return;
  for (const Overrides& more : {Overrides{}, Overrides{"launch.workers=2"}}) {
    expect_refused(run_skein(job().arguments("train", "no_cuda", on_gpu + more)), 2,
                   {"device.kind is 'cuda'", "this build has no CUDA", "scripts/build.sh"});
  }
  EXPECT_FALSE(fs::exists(job().run("no_cuda")));
}

TEST(Plan, OfAKindLeftOpenTakesThatOfTheHardware) {
  const std::string h200 = std::string(kSourceFolder) + "/configs/hardware/h200-8x.toml";
  const Overrides on_h200 = {"plan.hardware=" + h200};
  EXPECT_EQ(plan("planned", on_h200), plan("planned", on_h200 + Overrides{"device.kind=cuda"}));
  const Outcome outcome = TinyJob::must(job().arguments("plan", "planned", on_h200));
  EXPECT_NE(outcome.err.find("device.kind is auto: planned as cuda"), std::string::npos);
  EXPECT_EQ(
      plan("planned", on_h200 + Overrides{"device.kind=cpu", "device.cpu=avx2"}).at("kernels"),
      "avx2");
}

// [plan] says what the options say, which go before it.
TEST(Plan, OfWhatTheConfigurationNames) {
  const std::string folder = std::string(kSourceFolder) + "/configs/hardware/";
  const std::string h100 = folder + "h100-8x.toml", trn1 = folder + "trn1-32xlarge.toml";
  const auto planned = [](const Overrides& overrides, const Arguments& more) {
    Arguments arguments =
        job().arguments("plan", "planned", overrides + Overrides{"batch.micro_sequences=1"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.emplace_back("--json");
    return OrderedJson::parse(TinyJob::must(arguments).out);
  };
  const Overrides named = {"plan.hardware=" + h100, "plan.ranks=2"};
  const OrderedJson asked = planned({}, {"--hardware", h100, "--ranks", "2"});
  EXPECT_EQ(planned(named, {}), asked);
  const OrderedJson other = planned(named, {"--hardware", trn1, "--ranks", "4"});
  EXPECT_EQ(other.at("ranks"), 4);
  EXPECT_EQ(other.at("hardware"), "trn1.32xlarge");
  expect_refused(run_skein(job().arguments("plan", "planned", {"plan.hardware=/nowhere/h.toml"})),
                 2, {"[plan] hardware", "/nowhere/h.toml", "No such file"});
  // Training reads neither.
  TinyJob::must(job().arguments("train", "not_planned",
                                {"plan.hardware=/nowhere/h.toml", "plan.ranks=7", "run.steps=1"}));
}

TEST(Plan, ARankThatThereIsNotAndADescriptionThatIsNotThereAreAWrongCommandLine) {
  const auto refused = [&](const Arguments& more, const Words& words) {
    Arguments arguments = job().arguments("plan", "planned", {});
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect_refused(run_skein(arguments), 2, words);
  };
  const std::string hardware = std::string(kSourceFolder) + "/configs/hardware/h100-8x.toml";
  refused({"--ranks", "2", "--rank", "99"}, {"--rank is 99, and there are 2 ranks", "0 to 1"});
  refused({"--ranks", "1", "--rank", "1", "--json"}, {"--rank is 1, and there is 1 rank"});
  refused({"--ranks", "2", "--rank", "1", "--hardware", hardware}, {"--rank is 1", "--json"});
  refused({"--hardware", "/nowhere/h.toml"}, {"/nowhere/h.toml", "No such file"});
  refused({"--hardware", "/"}, {"hardware: /"});
}

// What the newest start of a run says that it allocated.
OrderedJson allocated_bytes(const std::string& name) {
  OrderedJson found;
  for (const OrderedJson& event : read_json_lines(job().run(name) / "events.jsonl")) {
    if (event.at("event") == "start") found = event.at("allocated_bytes");
  }
  return found;
}

TEST(Plan, BytesAreWhatTrainingAllocates) {
  const std::string corpus = job().corpus().string();
  const std::pair<const char*, Overrides> cases[] = {
      {"plain", {}},
      {"fp32", {"precision.mode=fp32", "memory.recompute=none"}},
      {"mixed", {"precision.mode=mixed", "memory.recompute=full"}},
      {"bf16", {"precision.mode=bf16", "precision.moments=bf16", "batch.micro_sequences=4"}},
      {"odd",
       {"model.hidden_size=72", "model.intermediate_size=100", "model.vocab_size=331",
        "model.head_dim=24", "model.num_hidden_layers=3", "model.num_key_value_heads=1",
        "model.attention_bias=true", "model.mlp_bias=true", "model.tie_word_embeddings=true",
        "data.sequence_length=37", "batch.global_sequences=3", "batch.micro_sequences=3"}},
      {"long",
       {"data.sequence_length=2500", "model.max_position_embeddings=4096",
        "batch.global_sequences=2", "batch.micro_sequences=1"}},
      {"validating", {"data.validation=" + corpus, "validate.batches=1", "device.threads=1"}},
      {"fp8", {"precision.mode=fp8"}},
      {"offloaded", kOffloaded + Overrides{"memory.offload_activations=true"}},
  };
  for (const auto& [name, overrides] : cases) {
    SCOPED_TRACE(name);
    const Overrides all = [&, &overrides = overrides] {
      Overrides result = overrides;
      result.push_back("run.steps=1");
      return result;
    }();
    const OrderedJson planned = plan(name, all).at("per_rank");
    const Outcome outcome = TinyJob::must(job().arguments("train", name, all));
    const OrderedJson allocated = allocated_bytes(name);
    int64_t total = 0;
    for (const char* part : {"weights", "gradients", "optimizer", "activations", "host_activations",
                             "workspace", "inputs", "rounded", "snapshot", "loader"}) {
      EXPECT_EQ(planned.at(std::string(part) + "_bytes"), allocated.at(part)) << part;
      total += allocated.at(part).get<int64_t>();
    }
    EXPECT_EQ(allocated.size(), 10u) << allocated.dump();
    EXPECT_EQ(planned.at("total_bytes"), total);
    const std::string said = format_bytes(total) + " of memory";
    EXPECT_NE(outcome.err.find(said), std::string::npos) << said << "\n" << outcome.err;
    EXPECT_GT(planned.at("weights_bytes"), 0);
    EXPECT_GT(planned.at("workspace_bytes"), 0);
  }
}

TEST(Plan, AVocabularyThatIsTooSmallForTheTokenizerIsRefusedAsInTraining) {
  const Overrides small = {"model.vocab_size=100"};
  for (const char* command : {"plan", "train"}) {
    expect_refused(run_skein(job().arguments(command, "small", small)), 2,
                   {"vocab_size is 100", "320 tokens"});
  }
  const Outcome without =
      TinyJob::must(job().arguments("plan", "small", small + Overrides{"data.tokenizer=gone"}));
  EXPECT_NE(without.err.find("whether that is enough for it was not checked"), std::string::npos)
      << without.err;
}

TEST(Plan, OffloadingMovesActivationsToHostMemory) {
  const auto bytes = [](bool offload, const char* key) {
    const std::string set = fmt::format("memory.offload_activations={}", offload);
    return plan("offloading", kOffloaded + Overrides{set}).at("per_rank").at(key).get<int64_t>();
  };
  EXPECT_EQ(bytes(false, "host_activations_bytes"), 0);
  const int64_t gone = bytes(false, "activations_bytes") - bytes(true, "activations_bytes");
  EXPECT_GT(gone, bytes(false, "activations_bytes") / 2);
  // Aligned one by one, values that share a matrix on the device take a few bytes more.
  EXPECT_NEAR(static_cast<double>(bytes(true, "host_activations_bytes")), static_cast<double>(gone),
              4096);
  EXPECT_LT(bytes(true, "device_bytes"), bytes(false, "device_bytes"));
}

TEST(Plan, KeptWeightsOf8BitsAreTwoBytesEach) {
  const auto bytes = [](const Overrides& overrides) {
    return plan("kept", Overrides{"precision.mode=fp8"} + overrides)
        .at("per_rank")
        .at("rounded_bytes")
        .get<int64_t>();
  };
  // A layer has 4 matrices of attention and 3 of the MLP, in 4 groups with a magnitude each.
  const Overrides sizes = {"model.hidden_size=64",        "model.intermediate_size=128",
                           "model.num_attention_heads=4", "model.num_key_value_heads=2",
                           "model.head_dim=16",           "model.num_hidden_layers=2"};
  const int64_t weights = 64 * (64 + 32 + 32) + 64 * 64 + 3 * 64 * 128;
  EXPECT_EQ(bytes(sizes), 2 * (2 * weights + 4 * 256));
  EXPECT_EQ(bytes(sizes + Overrides{"memory.keep_fp8_weights=false"}), 0);
  EXPECT_EQ(bytes(sizes + Overrides{"parallel.zero=3"}), 0);
  // Sizes of which products are not in 8 bits.
  EXPECT_EQ(bytes(sizes + Overrides{"model.hidden_size=72", "model.intermediate_size=100"}), 0);
}

TEST(Plan, ResidentMemoryStaysBelowIt) {
  // 30 million parameters, 300 MB of them and their moments.
  const Overrides base = {"model.hidden_size=512",       "model.intermediate_size=1408",
                          "model.num_hidden_layers=8",   "model.num_attention_heads=8",
                          "model.num_key_value_heads=8", "model.vocab_size=4096",
                          "data.sequence_length=128",    "batch.global_sequences=2",
                          "checkpoint.every_steps=1",    "checkpoint.keep=1"};
  constexpr int64_t kAllowance = 100'000'000;  // seen: 60 to 62 MB
  const int64_t planned = plan("resident", base).at("per_rank").at("total_bytes");
  EXPECT_GT(planned, 700'000'000);
  const auto expect_below = [&](const char* what, const std::string& run, Overrides overrides) {
    overrides.insert(overrides.begin(), base.begin(), base.end());
    const Outcome outcome = TinyJob::must(job().arguments("train", run, overrides));
    fmt::print("{}: peak {:.1f} MB, planned {:.1f} MB\n", what,
               static_cast<double>(outcome.peak_resident_bytes) * 1e-6,
               static_cast<double>(planned) * 1e-6);
    EXPECT_LT(outcome.peak_resident_bytes, planned + kAllowance) << what;
    // It is all there from the start on: nothing is left for later.
    EXPECT_GT(outcome.peak_resident_bytes, planned) << what;
  };
  expect_below("from random weights, saving", "resident", {"run.steps=2"});
  expect_below("resuming, saving", "resident", {"run.steps=3"});
  const std::string checkpoint = job().checkpoint("resident", 3).string();
  expect_below("from the weights of a checkpoint", "resident_init",
               {"run.steps=1", "model.init_from=" + checkpoint});
  const std::string exported = (job().folder / "exported").string();
  TinyJob::must({"checkpoint", "export", checkpoint, "--out", exported});
  expect_below("from a Hugging Face folder", "resident_init_hf",
               {"run.steps=1", "model.init_from=" + exported});
}

TEST(Plan, ShowsWhatEachPassMakes) {
  const std::string config = job().config().string();
  const std::vector<std::string> plan = {"plan",    config, "--set", "parallel.data=2",
                                         "--ranks", "2"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = plan;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::string passes = TinyJob::must(with({"--passes"})).out;
  EXPECT_EQ(passes.substr(0, passes.find("differentiate")),
            "build_decoder     writes the forward pass down, over whole tensors\n"
            "shard             places tensors on the ranks; says what moves\n");
  EXPECT_NE(passes.find("gives the layers' products 8-bit operands  (off)\n"), std::string::npos)
      << passes;
  EXPECT_TRUE(passes.ends_with("gives every value a place, to the byte\n")) << passes;
  const std::string built = TinyJob::must(with({"--print-after", "build_decoder"})).out;
  EXPECT_TRUE(built.starts_with("skein graph\nmesh pp=1 dp=2")) << built.substr(0, 200);
  EXPECT_EQ(built.find("{dp:S0}"), std::string::npos);
  EXPECT_NE(TinyJob::must(with({"--print-after", "shard"})).out.find("{dp:S0}"), std::string::npos);
  EXPECT_NE(TinyJob::must(with({"--print-after", "plan_memory"})).out.find("program update: "),
            std::string::npos);
  EXPECT_NE(run_skein(with({"--print-after", "use_fp8"})).err.find("does not need that pass"),
            std::string::npos);
  EXPECT_NE(run_skein(with({"--print-after", "shrad"})).err.find("expected one of build_decoder, "),
            std::string::npos);
}

// Runs `skein` in the root folder, where nothing lies that a relative path could mean.
Outcome run_in_root(const Arguments& arguments) {
  const std::string command =
      fmt::format("cd / && exec {} {}", default_program(), fmt::join(arguments, " "));
  return SkeinProcess({"-c", command}, SkeinProcess::kNoFileLimit, "/bin/sh").wait();
}

// On the hardware, and for the ranks, that its name says.
TEST(Plan, EveryShippedConfigurationIsPlannedAsItIsFromAnywhere) {
  const fs::path configs = fs::path(kSourceFolder) / "configs";
  int count = 0;
  for (const auto& entry : fs::directory_iterator(configs)) {
    if (entry.path().extension() != ".toml") continue;
    ++count;
    const std::string file = entry.path().string();
    SCOPED_TRACE(file);
    const Outcome outcome = run_in_root({"plan", file, "--json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const OrderedJson plan = OrderedJson::parse(outcome.out);
    const std::string name = entry.path().stem().string();
    const auto says = [&](const char* word) { return name.find(word) != name.npos; };
    const std::string hardware = says("trn1")   ? "trn1.32xlarge"
                                 : says("h200") ? "H200"
                                 : says("h100") ? "H100"
                                                : "this machine";
    EXPECT_NE(plan.at("hardware").get<std::string>().find(hardware), std::string::npos) << plan;
    EXPECT_TRUE(!says("4096") || plan.at("ranks") == 4096) << plan.at("ranks");
    EXPECT_TRUE(!(says("h200") || says("h100")) || plan.at("kernels") == "cuda");
    EXPECT_TRUE(plan.at("fits")) << plan.at("memory");
  }
  EXPECT_GE(count, 7);
}

TEST(Plan, NeedsNoTokenizerWhereTheModelGivesItsVocabulary) {
  const std::string nowhere = (job().folder / "nowhere").string();
  const Overrides missing = {"data.tokenizer=" + nowhere};
  const Outcome outcome =
      run_skein(job().arguments("plan", "planned", missing + Overrides{"model.vocab_size=320"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("data.tokenizer is '" + nowhere + "', which does not exist: planned"),
            std::string::npos)
      << outcome.err;
  // One that exists is used, as in training; one whose size nobody else says must exist.
  expect_refused(run_skein(job().arguments("plan", "planned", missing)), 2,
                 {"data.tokenizer", nowhere});
  expect_refused(
      run_skein(job().arguments("train", "planned", missing + Overrides{"model.vocab_size=320"})),
      2, {"data.tokenizer", nowhere});
}

TEST(Plan, Llama2Of70BillionHasTheParametersThatTransformersCounts) {
  const fs::path config = job().folder / "llama2_70b.toml";
  std::ofstream(config) << "[model]\nhf_config = \"" << kSourceFolder
                        << "/configs/models/llama2-70b.json\"\n[data]\nsequence_length = 4096\n"
                           "[batch]\nglobal_sequences = 1024\n";
  const OrderedJson json =
      OrderedJson::parse(TinyJob::must({"plan", config.string(), "--json"}).out);
  constexpr int64_t kParameters = 68'976'648'192;
  EXPECT_EQ(json.at("parameters"), kParameters);
  EXPECT_NEAR(json.at("per_rank").at("weights_bytes").get<double>(), 2.0 * kParameters, 1e8);
  EXPECT_NEAR(json.at("per_rank").at("optimizer_bytes").get<double>(), 8.0 * kParameters, 1e8);
  EXPECT_GT(json.at("step_seconds"), 0);
}

}  // namespace
}  // namespace skein
