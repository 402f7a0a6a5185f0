// `skein plan --compile cpu`: what XLA's compiler for CPUs says of a step's programs is what the
// plan says. Skipped where there is no plugin.
#include "skein/backends/backend.h"
#include "tests/pjrt/plugin.h"
#include "tests/places.h"
#include "tests/testing.h"

namespace skein {
namespace {

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

std::string plugin() { return pjrt_test::plugin_path(kSourceFolder); }

class Certificate : public testing::Test {
 public:
  void SetUp() override {
    const Backend& backend = find_backend_to_plan("pjrt");
    if (!backend.only_plans.empty()) GTEST_SKIP() << backend.only_plans;
    if (plugin().empty()) GTEST_SKIP() << "no PJRT plugin: scripts/test_tools.sh unpacks one";
  }

  static Arguments arguments(const Overrides& overrides, const Arguments& more) {
    return job().arguments("plan", "planned", overrides) + more;
  }
  static OrderedJson compiled(const Overrides& overrides, const Arguments& more = {}) {
    const Arguments all =
        arguments(overrides, Arguments{"--compile", "cpu", "--plugin", plugin(), "--json"} + more);
    return OrderedJson::parse(TinyJob::must(all).out);
  }
};

// XLA's results have a list of their addresses, eight bytes each, which small programs show.
void expect_near(const OrderedJson& program, const char* name) {
  const int64_t planned = program.at("plan").at(name), compiled = program.at("compiler").at(name);
  EXPECT_NEAR(static_cast<double>(compiled), static_cast<double>(planned),
              0.01 * static_cast<double>(planned) + 64)
      << program.at("name") << " " << name;
}

struct Exchanged {
  int64_t count = 0, sent_bytes = 0;
};
Exchanged exchanged(const OrderedJson& exchanges) {
  Exchanged sum;
  for (const OrderedJson& one : exchanges) {
    sum.count += one.at("count").get<int64_t>();
    sum.sent_bytes += one.at("sent_bytes").get<int64_t>();
  }
  return sum;
}

// Compiled once: it takes most of the time of these tests.
const OrderedJson& four_ranks() {
  static const OrderedJson json =
      Certificate::compiled(
          {"parallel.data=2", "parallel.tensor=2", "launch.workers=4", "precision.mode=bf16-sr"})
          .at("stages")[0];
  return json;
}

TEST_F(Certificate, HasTheBytesOfThePlan) {
  EXPECT_EQ(four_ranks().at("replicas"), 4);
  std::set<std::string> names;
  for (const OrderedJson& program : four_ranks().at("programs")) {
    names.insert(program.at("name").get<std::string>());
    for (const char* bytes : {"argument_bytes", "result_bytes", "donated_bytes"}) {
      expect_near(program, bytes);
    }
    EXPECT_GT(program.at("compiler").at("temporary_bytes").get<int64_t>(), 0);
  }
  EXPECT_EQ(names, (std::set<std::string>{"step", "evaluate", "evaluate_total"}));
}

// Read back from the compiler's own text: no collective was added, and none was made larger. Shares
// of a Flat value are whole segments of 1,024 elements, and compiled programs send the padding.
TEST_F(Certificate, ExchangesNoMoreThanThePlan) {
  constexpr int64_t kMostPadding = 1024 * 4;
  for (const OrderedJson& program : four_ranks().at("programs")) {
    const Exchanged planned = exchanged(program.at("plan").at("exchanges"));
    const Exchanged found = exchanged(program.at("compiler").at("exchanges"));
    EXPECT_GT(found.count, 0) << program.at("name");
    EXPECT_LE(found.count, planned.count) << program.at("name");
    const int64_t padding = program.at("name") == "step" ? planned.count * kMostPadding : 0;
    EXPECT_LE(found.sent_bytes, planned.sent_bytes + padding) << program.at("name");
  }
}

TEST_F(Certificate, OfAPipelineHasEveryStage) {
  const Overrides overrides = {"parallel.pipeline=2", "launch.workers=2"};
  const OrderedJson json = compiled(overrides, {"--program", "evaluate"});
  ASSERT_EQ(json.at("stages").size(), 2U);
  for (const OrderedJson& stage : json.at("stages")) {
    ASSERT_EQ(stage.at("programs").size(), 1U);
    const std::string name = stage.at("programs")[0].at("name");
    EXPECT_EQ(name.find("evaluate.from_op_"), 0U) << name;
    expect_near(stage.at("programs")[0], "argument_bytes");
    const OrderedJson alone =
        compiled(overrides, {"--program", name, "--rank", stage.at("stage") == 0 ? "0" : "1"});
    ASSERT_EQ(alone.at("stages").size(), 1U);
    EXPECT_EQ(alone.at("stages")[0].at("stage"), stage.at("stage"));
  }
}

TEST_F(Certificate, IsATableForPeople) {
  const Outcome outcome = TinyJob::must(
      arguments({}, {"--compile", "cpu", "--plugin", plugin(), "--program", "evaluate"}));
  for (const char* text : {"Compiled for cpu by cpu", "arguments", "evaluate\n  plan ",
                           "  compiler ", "  difference ", "compiled in"}) {
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << "\n" << outcome.out;
  }
  EXPECT_EQ(outcome.out.find("forward"), std::string::npos) << outcome.out;
}

TEST_F(Certificate, RefusesTargetsThatThereAreNot) {
  const auto refused = [](const Arguments& more, const std::vector<std::string>& words) {
    expect_refused(run_skein(arguments({}, more)), 2, words);
  };
  refused({"--compile", "cpu"}, {"--compile cpu", "--plugin PATH", "device.pjrt_plugin"});
  refused({"--compile", "cpu", "--plugin", "/nowhere.so"}, {"/nowhere.so", "not there"});
  refused({"--compile", "h200x8", "--plugin", plugin()},
          {"--compile h200x8", "no description of an 'NVIDIA H200 141GB HBM3e'"});
  refused({"--compile", "h200x9", "--plugin", plugin()}, {"--compile h200x9", "multiple of"});
  refused({"--compile", "abacus", "--plugin", plugin()},
          {"--compile abacus", "knows no such target"});
  refused({"--compile", "cpu", "--plugin", plugin(), "--program", "sideways"},
          {"--program sideways", "expected one of forward"});
}

}  // namespace
}  // namespace skein
