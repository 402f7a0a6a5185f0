// Plans of several ranks: the bytes of every arena and what goes over the wire are what training
// allocates and sends, to the byte; large meshes are planned within moments.
#include "tests/places.h"
#include "tests/testing.h"

namespace skein {
namespace {

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

OrderedJson plan(const Overrides& overrides, const Arguments& more = {}) {
  Arguments arguments = job().arguments("plan", "plan", overrides);
  arguments.push_back("--json");
  arguments.insert(arguments.end(), more.begin(), more.end());
  return OrderedJson::parse(TinyJob::must(arguments).out);
}

// What a rank says in its own log behind `word`.
OrderedJson logged(const std::string& run, int rank, const std::string& word) {
  const std::string log = read_file(job().run(run) / "logs" / fmt::format("rank-{:05}.log", rank));
  const size_t at = log.rfind(word + " {");
  if (at == std::string::npos) return nullptr;
  const size_t begin = at + word.size() + 1;
  return OrderedJson::parse(log.substr(begin, log.find('\n', at) - begin));
}

// What a rank says that it sent, and in how many steps.
OrderedJson counted(const std::string& run, int rank) {
  if (rank > 0) return logged(run, rank, "wire");
  return read_json_lines(job().run(run) / "events.jsonl").back().at("wire");
}

// What a rank says that it holds.
OrderedJson allocated(const std::string& run, int rank) {
  if (rank > 0) return logged(run, rank, "allocated");
  for (const OrderedJson& event : read_json_lines(job().run(run) / "events.jsonl")) {
    if (event.at("event") == "start") return event.at("allocated_bytes");
  }
  return nullptr;
}

struct Case {
  const char* name;
  int workers;
  Overrides overrides;
};
void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class PlanParallel : public testing::TestWithParam<Case> {};

TEST_P(PlanParallel, IsWhatTrainingAllocatesAndSends) {
  const auto& [name, workers, layout] = GetParam();
  Overrides overrides = layout;
  overrides.insert(overrides.end(),
                   {fmt::format("launch.workers={}", workers), "run.steps=2",
                    "data.validation=" + job().corpus().string(), "validate.batches=1",
                    "batch.micro_sequences=1", "model.num_hidden_layers=4"});
  job().trained(name, overrides);
  for (int rank = 0; rank < workers; ++rank) {
    SCOPED_TRACE(fmt::format("rank {}", rank));
    const OrderedJson wire = counted(name, rank);
    ASSERT_FALSE(wire.is_null());
    ASSERT_EQ(wire.at("steps"), 2);
    const OrderedJson planned = plan(overrides, {"--rank", fmt::format("{}", rank)});
    const OrderedJson held = allocated(name, rank);
    ASSERT_FALSE(held.is_null());
    for (const char* part : {"weights", "gradients", "optimizer", "activations", "host_activations",
                             "workspace", "inputs", "rounded", "snapshot", "loader"}) {
      EXPECT_EQ(planned.at("rank").at(std::string(part) + "_bytes"), held.at(part)) << part;
    }
    OrderedJson expected = planned.at("collectives");
    EXPECT_FALSE(expected.empty());
    for (OrderedJson& line : expected) {
      line.erase("seconds");
      for (const char* key : {"calls", "sent_bytes"}) {
        line[key] = 2 * line.at(key).get<int64_t>();
      }
    }
    EXPECT_EQ(wire.at("collectives"), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, PlanParallel,
    testing::Values(Case{"dp2", 2, {}}, Case{"dp2_zero0", 2, {"parallel.zero=0"}},
                    Case{"dp2_zero3", 2, {"parallel.zero=3", "memory.recompute=full"}},
                    Case{"dp2_width4", 2, {"parallel.reduction_width=4"}},
                    Case{"dp3_width4", 3, {"parallel.reduction_width=4"}},
                    Case{"dp3_width4_zero3",
                         3,
                         {"parallel.reduction_width=4", "parallel.zero=3", "precision.mode=mixed"}},
                    Case{"tp2", 2, {"parallel.tensor=2"}},
                    Case{"pp2_offloaded",
                         2,
                         {"parallel.pipeline=2", "memory.offload_activations=true",
                          "model.intermediate_size=2800", "data.sequence_length=250"}},
                    Case{"tp4_replicated", 4, {"parallel.tensor=4"}},
                    Case{"pp2_tied", 2, {"parallel.pipeline=2", "model.tie_word_embeddings=true"}},
                    Case{
                        "pp2_interleaved", 2, {"parallel.pipeline=2", "parallel.virtual_stages=2"}},
                    Case{"cp2", 2, {"parallel.context=2"}},
                    Case{"cp2_zero3", 2, {"parallel.context=2", "parallel.zero=3"}},
                    Case{"dp2_cp2", 4, {"parallel.context=2", "parallel.overlap=false"}},
                    Case{"dp2_cp2_mixed", 4, {"parallel.context=2", "precision.mode=mixed"}},
                    Case{"tp2_pairs", 2, {"parallel.tensor=2", "parallel.pairs=true"}},
                    Case{"cp2_pairs", 2, {"parallel.context=2", "parallel.pairs=true"}},
                    Case{"dp2_zero3_pairs",
                         2,
                         {"parallel.zero=3", "parallel.pairs=true",
                          "memory.offload_activations=true", "memory.offload_min_bytes=1"}},
                    Case{"dp2_tp2", 4, {"parallel.tensor=2", "precision.mode=mixed"}},
                    Case{"dp2_pp2", 4, {"parallel.pipeline=2"}},
                    Case{"dp2_muon", 2, {"optimizer.name=muon"}},
                    Case{"dp2_tp2_muon",
                         4,
                         {"optimizer.name=muon", "parallel.tensor=2", "precision.mode=mixed"}},
                    Case{"dp2_zero3_muon", 2, {"optimizer.name=muon", "parallel.zero=3"}}),
    [](const auto& info) { return std::string(info.param.name); });

Arguments large(const std::string& config, int ranks) {
  const fs::path configs = fs::path(kSourceFolder) / "configs";
  const std::string model = config.substr(0, std::string("llama2-70b").size());
  return {"plan",       (configs / (config + ".toml")).string(),
          "--set",      "model.hf_config=" + (configs / "models" / (model + ".json")).string(),
          "--ranks",    fmt::format("{}", ranks),
          "--hardware", (configs / "hardware/trn1-32xlarge.toml").string(),
          "--json"};
}

TEST(PlanLarge, FourThousandRanksFitAndAreUsed) {
  for (const std::string config : {"llama2-70b-trn1-tp8-pp8", "llama2-70b-trn1-tp32-pp4"}) {
    const Outcome outcome = TinyJob::must(large(config, 4096));
    const OrderedJson json = OrderedJson::parse(outcome.out);
    EXPECT_EQ(json.at("ranks"), 4096);
    EXPECT_TRUE(json.at("fits")) << json.at("per_rank");
    EXPECT_GT(json.at("model_flops_utilization"), 0.1);
    EXPECT_LT(json.at("model_flops_utilization"), 0.65);
  }
}

// The original's runs on the machines that they ran on.
TEST(PlanLarge, ShippedRunsFitTheirMachines) {
  const fs::path configs = fs::path(kSourceFolder) / "configs";
  struct Case {
    const char *config, *model;
    int ranks;
  };
  for (const Case& one :
       {Case{"llama2-7b-trn1-4096", "llama2-7b", 4096}, Case{"llama2-13b-trn1", "llama2-13b", 1024},
        Case{"llama2-70b-trn1-tp32-pp4", "llama2-70b", 1024},
        Case{"llama2-70b-trn1-tp8-pp8", "llama2-70b", 1024}}) {
    const std::string model = std::string("models/") + one.model + ".json";
    const Outcome outcome = TinyJob::must(
        {"plan", (configs / (std::string(one.config) + ".toml")).string(), "--set",
         "model.hf_config=" + (configs / model).string(), "--ranks", fmt::format("{}", one.ranks),
         "--hardware", (configs / "hardware/trn1-32xlarge.toml").string(), "--json"});
    const OrderedJson json = OrderedJson::parse(outcome.out);
    EXPECT_TRUE(json.at("fits")) << one.config << json.at("per_rank");
    EXPECT_EQ(outcome.err, "") << one.config;  // no warning
  }
}

}  // namespace
}  // namespace skein
