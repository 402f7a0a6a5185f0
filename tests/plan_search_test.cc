// `skein plan --search` and `--calibrate`, as a user runs them.
#include <fmt/ranges.h>

#include <sstream>
#include <tuple>

#include "skein/plan/search/layout_search.h"
#include "skein/schedule/hardware.h"
#include "tests/places.h"
#include "tests/testing.h"

namespace skein {
namespace {

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

OrderedJson json_of(const std::vector<std::string>& overrides, const Arguments& more) {
  Arguments arguments = job().arguments("plan", "plan", overrides);
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.push_back("--json");
  return OrderedJson::parse(TinyJob::must(arguments).out);
}

std::string h100() { return (fs::path(kSourceFolder) / "configs/hardware/h100-8x.toml").string(); }

TEST(PlanSearch, ListsLayoutsThatFitTheBestFirstAndAgreesWithThePlanOfEach) {
  const std::vector<std::string> model = {"model.num_hidden_layers=4", "batch.global_sequences=32"};
  const OrderedJson found = json_of(model, {"--search", "--ranks", "8", "--hardware", h100()});
  ASSERT_GT(found.size(), 1u);
  double rate = 1e300;
  for (const OrderedJson& layout : found) {
    EXPECT_TRUE(layout.at("fits")) << layout;
    EXPECT_EQ(layout.at("ranks"), 8);
    EXPECT_LE(layout.at("tokens_per_second"), rate);
    rate = layout.at("tokens_per_second");
  }
  // A layout of the list is no worse than the data parallel one, which is among what was searched.
  const OrderedJson plain = json_of(model, {"--ranks", "8", "--hardware", h100()});
  EXPECT_GE(found[0].at("tokens_per_second"), plain.at("tokens_per_second"));
}

// Also of a small model, whose time goes into starting ops.
TEST(PlanSearch, LeavesOutNothingThatIsFasterThanTheSlowestOfTheList) {
  const std::vector<std::string> model = {"model.num_hidden_layers=3", "batch.global_sequences=8",
                                          "data.sequence_length=64"};
  const Arguments on_two = {"--ranks", "2", "--hardware", h100()};
  const OrderedJson list = json_of(model, {"--search", "--ranks", "2", "--hardware", h100()});
  const double slowest = list.back().at("step_seconds");
  for (const char* micro : {"1", "2", "4"}) {
    const std::string setting = std::string("batch.micro_sequences=") + micro;
    const OrderedJson plan = json_of(model + Overrides{setting}, on_two);
    const bool is_listed = std::any_of(list.begin(), list.end(), [&](const OrderedJson& one) {
      return one.at("step_seconds") == plan.at("step_seconds");
    });
    EXPECT_TRUE(is_listed || plan.at("step_seconds") >= slowest) << setting;
  }
}

// Layouts, and the seconds of a step, in order.
std::vector<std::string> rows(const SearchResult& result) {
  std::vector<std::string> rows;
  for (const SearchResult::FoundLayout& found : result.best) {
    rows.push_back(fmt::format("{:.9g} {}", found.plan.step.step_seconds,
                               fmt::join(layout_settings(found), " ")));
  }
  return rows;
}

// Small sizes, where starting ops takes the time; sizes of large models; memory that few fit; slow
// links, which gradients wait for; a CPU whose ranks take turns.
TEST(PlanSearch, FindsWhatPlansOfAllLayoutsFind) {
  const Overrides tiny = {"model.num_hidden_layers=3", "batch.global_sequences=8"};
  const Overrides large = {"model.hidden_size=2048",      "model.intermediate_size=5632",
                           "model.num_attention_heads=4", "model.num_key_value_heads=2",
                           "model.num_hidden_layers=4",   "batch.global_sequences=8",
                           "data.sequence_length=1024",   "model.max_position_embeddings=1024"};
  Hardware usual = load_hardware(h100());
  Hardware small = usual, slow = usual, in_turn = usual;
  small.memory_bytes = 1'700'000'000;
  slow.intra_node.bytes_per_s = 1e9;
  slow.overlap = 0.5;
  in_turn.concurrent_devices = 1;
  in_turn.overlap = 0;
  const std::tuple<const char*, const Overrides*, const Hardware*, int64_t> cases[] = {
      {"tiny", &tiny, &usual, 4},
      {"large", &large, &usual, 4},
      {"little memory", &large, &small, 4},
      {"slow links", &large, &slow, 4},
      {"in turn", &tiny, &in_turn, 2}};
  for (const auto& [name, overrides, hardware, ranks] : cases) {
    SCOPED_TRACE(name);
    const Config config = load_config(job().config().string(), *overrides, ConfigUse::kPlan);
    const PlanRequest request = plan_request(config, ranks, *hardware);
    const SearchResult found = search_layouts(request);
    const SearchResult all = search_layouts(request, {.exhaustive = true});
    EXPECT_TRUE(found.is_complete());
    EXPECT_EQ(found.num_layouts, all.num_layouts);
    EXPECT_LT(found.num_planned, all.num_planned);
    EXPECT_GE(all.best.size(), 5u);
    EXPECT_EQ(rows(found), rows(all));
  }
}

TEST(PlanSearch, RowsCanBePasted) {
  const Overrides model = {"model.num_hidden_layers=4", "batch.global_sequences=32"};
  const Arguments searched = {"--search", "--ranks", "8", "--hardware", h100()};
  const OrderedJson list = json_of(model, searched);
  const std::string text = TinyJob::must(job().arguments("plan", "plan", model) + searched).out;
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.find(" --set ") != line.npos) lines.push_back(line.substr(line.find("--set ")));
  }
  ASSERT_EQ(lines.size(), list.size()) << text;
  EXPECT_NE(text.find("The configuration as it is: "), text.npos) << text;
  EXPECT_NE(text.find("; row 1 is "), text.npos) << text;
  for (const size_t row : {size_t{0}, lines.size() / 2, lines.size() - 1}) {
    SCOPED_TRACE(lines[row]);
    Arguments pasted = {"--hardware", h100()};  // the words say how many ranks there are
    std::istringstream words(lines[row]);
    for (std::string word; words >> word;) pasted.push_back(word);
    OrderedJson plan = json_of(model, pasted);
    OrderedJson set = OrderedJson(Arguments{});
    for (const OrderedJson& one : list[row].at("set")) {
      set.insert(set.end(), {"--set", one.get<std::string>()});
    }
    EXPECT_EQ(plan.at("step_seconds"), list[row].at("step_seconds"));
    EXPECT_EQ(plan.at("mesh"), list[row].at("mesh"));
    Arguments from_json = {"--hardware", h100()};
    for (const OrderedJson& one : set) from_json.push_back(one);
    EXPECT_EQ(json_of(model, from_json).at("step_seconds"), list[row].at("step_seconds"));
  }
}

std::string llama_70b() {
  return (fs::path(kSourceFolder) / "configs/llama2-70b-trn1-tp8-pp8.toml").string();
}

// The answer is whole whenever the search ends; it says whether there may be better ones.
TEST(PlanSearch, EndsInTimeWithTheBestSoFar) {
  const Outcome outcome =
      TinyJob::must({"plan", llama_70b(), "--search", "--search-seconds", "0.1", "--json"});
  EXPECT_TRUE(OrderedJson::parse(outcome.out).is_array());
  EXPECT_NE(outcome.err.find("stopped before it was complete"), std::string::npos) << outcome.err;
  expect_refused(run_skein({"plan", llama_70b(), "--search", "--search-seconds", "soon"}), 2,
                 {"--search-seconds"});
  expect_refused(run_skein({"plan", llama_70b(), "--search-seconds", "5"}), 2, {"--search"});
}

TEST(PlanSearch, PrintsTheBestSoFarWhereASignalEndsIt) {
  for (const int signal : {SIGINT, SIGTERM}) {
    SCOPED_TRACE(signal);
    SkeinProcess process({"plan", llama_70b(), "--search", "--search-seconds", "100000", "--json"});
    std::this_thread::sleep_for(Seconds(1.5));
    process.send(signal);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.exit_code, -signal) << outcome.err;
    EXPECT_TRUE(OrderedJson::parse(outcome.out).is_array()) << outcome.out;
    EXPECT_NE(outcome.err.find("stopped before it was complete"), std::string::npos) << outcome.err;
  }
}

TEST(PlanSearch, TriesPairsOfMicroBatches) {
  // Large enough that products take longer than to start them.
  const std::vector<std::string> large = {
      "model.hidden_size=4096",       "model.intermediate_size=11008",
      "model.num_attention_heads=32", "model.num_key_value_heads=8",
      "model.num_hidden_layers=4",    "model.max_position_embeddings=4096",
      "data.sequence_length=2048",    "batch.global_sequences=16"};
  int pairs = 0;
  for (const OrderedJson& layout :
       json_of(large, {"--search", "--ranks", "4", "--hardware", h100()})) {
    for (const OrderedJson& setting : layout.at("set")) {
      if (setting == "parallel.pairs=true") ++pairs;
    }
  }
  EXPECT_GT(pairs, 0);
  const std::vector<std::string> tensor = {"model.num_hidden_layers=4", "batch.global_sequences=8",
                                           "batch.micro_sequences=1", "parallel.tensor=2",
                                           "data.sequence_length=64"};
  const Arguments on_two = {"--ranks", "2", "--hardware", h100()};
  const OrderedJson alone = json_of(tensor, on_two);
  std::vector<std::string> in_pairs = tensor;
  in_pairs.emplace_back("parallel.pairs=true");
  const OrderedJson paired = json_of(in_pairs, on_two);
  EXPECT_LT(paired.at("step_seconds"), alone.at("step_seconds"));
  EXPECT_EQ(alone.at("with_pairs").at("step_seconds"), paired.at("step_seconds"));
  EXPECT_EQ(alone.at("with_pairs").at("device_bytes"), paired.at("per_rank").at("device_bytes"));
  EXPECT_FALSE(paired.contains("with_pairs"));
}

TEST(PlanSearch, FindsLayoutsIfTheConfiguredOneCannotSplitTheTokens) {
  const Overrides odd = {"parallel.tensor=2", "data.sequence_length=33", "batch.micro_sequences=1"};
  const Arguments on_two = {"--ranks", "2", "--hardware", h100()};
  expect_refused(run_skein(job().arguments("plan", "plan", odd) + on_two), 2,
                 {"tensor is 2", "33"});
  EXPECT_FALSE(json_of(odd, on_two + Arguments{"--search"}).empty());
}

TEST(PlanSearch, SaysWhatOfTheExchangeIsExposed) {
  const std::vector<std::string> model = {
      // of several buckets of gradients
      "model.num_hidden_layers=4", "model.hidden_size=512", "model.intermediate_size=1024",
      "batch.global_sequences=8", "data.sequence_length=64"};
  const auto exposed = [&](const std::vector<std::string>& layout, const char* ranks) {
    return json_of(model + layout, {"--ranks", ranks, "--hardware", h100()})
        .at("exposed_seconds")
        .get<double>();
  };
  EXPECT_EQ(exposed({}, "1"), 0);
  for (const std::string layout : {"parallel.tensor=2", "parallel.context=2", "parallel.zero=0"}) {
    const double beside = exposed({layout}, "2");
    EXPECT_GT(beside, 0) << layout;
    EXPECT_LT(beside, exposed({layout, "parallel.overlap=false"}, "2")) << layout;
  }
}

// Where nothing can travel beside computation, pairs give nothing, and no advice.
TEST(PlanSearch, PairsGiveNothingWithoutOverlap) {
  const fs::path hardware = job().folder / "in_turn.toml";
  Hardware in_turn = load_hardware(h100());
  in_turn.overlap = 0;
  std::ofstream(hardware) << hardware_text(in_turn);
  const std::vector<std::string> model = {"model.num_hidden_layers=4", "batch.global_sequences=8",
                                          "batch.micro_sequences=1", "parallel.tensor=2",
                                          "data.sequence_length=64"};
  const Arguments on_two = {"--ranks", "2", "--hardware", hardware.string()};
  const OrderedJson alone = json_of(model, on_two);
  const OrderedJson paired = json_of(model + Overrides{"parallel.pairs=true"}, on_two);
  EXPECT_FALSE(alone.contains("with_pairs")) << alone.at("with_pairs");
  const double ratio =
      paired.at("step_seconds").get<double>() / alone.at("step_seconds").get<double>();
  EXPECT_NEAR(ratio, 1, 0.01);
}

TEST(PlanSearch, SaysWhyNothingFits) {
  const fs::path hardware = job().folder / "small.toml";
  Hardware small = load_hardware(h100());
  small.memory_bytes = 4096;
  std::ofstream(hardware) << hardware_text(small);
  Arguments arguments = job().arguments("plan", "plan", {});
  arguments.insert(arguments.end(), {"--search", "--ranks", "8", "--hardware", hardware.string()});
  const std::string text = TinyJob::must(arguments).out;
  for (const char* word : {"none fits", "too large, mostly weights", "for example tensor"}) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
  }
  EXPECT_TRUE(json_of({}, {"--search", "--ranks", "8", "--hardware", hardware.string()}).empty());
}

TEST(Calibrate, WritesADescriptionThatPlansUse) {
  const fs::path file = job().folder / "measured.toml";
  Arguments arguments = job().arguments("plan", "plan", {});
  arguments.insert(arguments.end(), {"--calibrate", file.string(), "--workers", "2"});
  TinyJob::must(arguments);
  const Hardware measured = load_hardware(file);
  EXPECT_EQ(measured.devices_per_node, 2);
  EXPECT_GT(measured.intra_node.bytes_per_s, 1e6);
  EXPECT_GT(measured.intra_node.latency_s, 0);
  EXPECT_TRUE(measured.op_factors.contains("attention")) << hardware_text(measured);
  const OrderedJson plan = json_of({"launch.workers=2"}, {"--hardware", file.string()});
  EXPECT_EQ(plan.at("hardware"), measured.name);
  EXPECT_EQ(plan.at("per_rank"), json_of({"launch.workers=2"}, {}).at("per_rank"));
  EXPECT_GT(plan.at("step_seconds"), 0);
}

TEST(PlanSearch, RefusesFactorsOfOpsThatNobodyHas) {
  const fs::path hardware = job().folder / "typing.toml";
  Hardware mistyped = load_hardware(h100());
  mistyped.op_factors["lineer"] = 1.8;
  std::ofstream(hardware) << hardware_text(mistyped);
  Arguments arguments = job().arguments("plan", "plan", {});
  arguments.insert(arguments.end(), {"--hardware", hardware.string()});
  expect_refused(run_skein(arguments), 2, {"lineer", "did you mean linear?"});
}

}  // namespace
}  // namespace skein
