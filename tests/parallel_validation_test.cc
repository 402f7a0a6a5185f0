// What several workers do beside training: validation counts every token of its batches once, and
// weights come from elsewhere, the same as with one worker.
#include "tests/parallel_job.h"

namespace skein {
namespace {

const ParallelJob& job() {
  static const ParallelJob job;
  return job;
}

// "loss, tokens" of every validation.
std::vector<std::string> validations(const std::string& run) {
  std::vector<std::string> found;
  for (const OrderedJson& event : read_json_lines(job().run(run) / "events.jsonl")) {
    if (event.at("event") == "validation") {
      found.push_back(event.at("loss").dump() + ", " + event.at("tokens").dump());
    }
  }
  return found;
}

Overrides validating() {
  return ParallelJob::setting(4) + Overrides{"data.validation=" + job().corpus().string(),
                                             "validate.every_steps=2", "validate.batches=2"};
}

TEST(SeveralWorkers, ValidateAsOneDoes) {
  job().trained("one", validating());
  const auto expected = validations("one");
  ASSERT_EQ(expected.size(), 2u);
  const Overrides layouts[] = {
      {"launch.workers=4", "parallel.pipeline=2", "parallel.zero=3"},
      {"launch.workers=4", "parallel.pipeline=2", "parallel.virtual_stages=2"}};
  for (const Overrides& layout : layouts) {
    job().trained("several", validating() + layout);
    EXPECT_EQ(validations("several"), expected) << fmt::format("{}", fmt::join(layout, " "));
    EXPECT_EQ(different_bits(read_curve(job().run("one")), read_curve(job().run("several"))), "");
    job().remove("several");
  }
}

TEST(SeveralWorkers, BeginFromTheWeightsOfAnotherRun) {
  job().trained("source", ParallelJob::setting(2));
  const Overrides from = {"model.init_from=" + job().run("source").string()};
  const Overrides mixed = ParallelJob::setting(3, "mixed") + from;
  job().trained("one_from", mixed);
  job().trained("four_from", mixed + Overrides{"launch.workers=4", "parallel.zero=3"});
  EXPECT_EQ(different_bits(read_curve(job().run("one_from")), read_curve(job().run("four_from"))),
            "");
}

}  // namespace
}  // namespace skein
