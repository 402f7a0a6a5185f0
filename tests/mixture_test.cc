// A run that reads several corpora by weight: the same rows and bits at any number of data ranks
// and over stops, weights that change only where the key says so, and a loss for each validation
// set.
#include "tests/parallel_job.h"

namespace skein {
namespace {

// Three corpora: a file, a folder of two, and one that is smaller than a batch.
class MixtureJob : public ParallelJob {
 public:
  MixtureJob() {
    fs::create_directories(folder / "b");
    ingest(folder / "b" / "part-00000-of-00002.arrow", 60'000);
    ingest(folder / "b" / "part-00001-of-00002.arrow", 40'000);
    ingest(folder / "small.arrow", 300);
  }

  Overrides setting(const std::string& weight_of_b = "0.3", int64_t steps = 6) const {
    return ParallelJob::setting(steps) +
           Overrides{"data.train=", "data.source=[{path = \"" + corpus().string() +
                                        "\", weight = 0.5}, {path = \"" + (folder / "b").string() +
                                        "\", weight = " + weight_of_b + "}, {path = \"" +
                                        (folder / "small.arrow").string() +
                                        "\", weight = 0.2, name = \"few\"}]"};
  }

 private:
  void ingest(const fs::path& out, int64_t bytes) const {
    const fs::path documents = folder / fmt::format("documents_{}.jsonl", bytes);
    write_documents(documents, bytes);
    must({"data", "ingest", "--out", out.string(), documents.string()});
  }
};

const MixtureJob& job() {
  static const MixtureJob job;
  return job;
}

// What each step says of epochs, as text.
std::vector<std::string> epochs(const std::string& run) {
  std::vector<std::string> all;
  for (const OrderedJson& step : read_json_lines(job().run(run) / "metrics.jsonl")) {
    all.push_back(step.at("epochs").dump());
  }
  return all;
}

TEST(Mixture, IsTheSameAtAnyNumberOfDataRanksAndOverStops) {
  job().trained("one", job().setting());
  job().trained("four", job().setting() + Overrides{"launch.workers=4"});
  EXPECT_EQ(different_bits(read_curve(job().run("one")), read_curve(job().run("four"))), "");
  EXPECT_EQ(different_state(job().checkpoint("one", 6), job().checkpoint("four", 6)), "");
  EXPECT_EQ(epochs("one"), epochs("four"));

  const Overrides saves = {"checkpoint.every_steps=2"};
  job().trained("saves", job().setting() + saves + Overrides{"launch.workers=2"});
  const Overrides from = {"run.resume=" + job().checkpoint("saves", 2).string()};
  job().trained("goes_on", job().setting() + from);
  EXPECT_EQ(different_state(job().checkpoint("one", 6), job().checkpoint("goes_on", 6)), "");
  EXPECT_EQ(epochs("one").back(), epochs("goes_on").back());
  EXPECT_NE(epochs("one").back().find("\"few\""), std::string::npos);
}

TEST(Mixture, WeightsChangeOnlyWhereTheKeySaysSo) {
  job().trained("changes", job().setting());
  const Overrides other = job().setting("0.6", 8);
  expect_refused(job().train("changes", other), 2,
                 {"data.source differs: b has weight 0.3 there and 0.6 in the configuration. ",
                  "run.accept_changes = \"data.source\""});
  job().trained("changes", other + Overrides{"run.accept_changes=data.source"});
  // Another text under the name of a source has other positions.
  Overrides renamed = job().setting("0.6", 9);
  std::string& sources = renamed.back();
  sources.replace(sources.find("small.arrow"), 11, "b");
  expect_refused(job().train("changes", renamed + Overrides{"run.accept_changes=data.source"}), 2,
                 {"data.source differs: few is another text: (", ") there and ("});
}

TEST(Mixture, ARunThatBeganWithOneCorpusMayGoOnWithMore) {
  job().trained("alone", ParallelJob::setting(4));
  expect_refused(job().train("alone", job().setting()), 2, {"data.source"});
  const Arguments third = {"data", "sample", job().run("alone").string(), "--step", "3"};
  const std::string before = TinyJob::must(third).out;
  job().trained("alone", job().setting() + Overrides{"run.accept_changes=data.source"});
  const CheckpointReader checkpoint(job().checkpoint("alone", 6));
  const Json& lanes = checkpoint.state().lanes;
  EXPECT_EQ(lanes.at("sources").size(), 3u);
  fs::remove_all(job().checkpoint("alone", 4));
  EXPECT_EQ(TinyJob::must(third).out, before);
}

// What the refusal says to do can be done.
TEST(Mixture, ACorpusThatIsGoneCanBeNamedElsewhere) {
  job().trained("moved", job().setting());
  const fs::path away = job().folder / "away.arrow";
  fs::rename(job().folder / "small.arrow", away);
  const Arguments train = {"train", job().run("moved").string(), "--set", "run.steps=7"};
  const Outcome refused = run_skein(train);
  expect_refused(refused, 2, {"small.arrow', which is gone", "its path in [[data.source]]"});
  const size_t begin = refused.err.find("--set '") + 7;
  std::string option = refused.err.substr(begin, refused.err.find("]'", begin) + 1 - begin);
  const size_t at = option.find("\"PATH\"");
  ASSERT_NE(at, std::string::npos) << refused.err;
  option.replace(at, 6, "\"" + away.string() + "\"");
  TinyJob::must(train + Arguments{"--set", option});
  fs::rename(away, job().folder / "small.arrow");
}

TEST(Mixture, EveryValidationSetHasALossOfItsOwn) {
  const Overrides sets = {
      "data.validation=" + job().corpus().string(),
      "data.validation_set=[{path = \"" + (job().folder / "b").string() + "\", name = \"held\"}]",
      "validate.every_steps=3", "validate.batches=1"};
  job().trained("sets", job().setting() + sets);
  std::map<std::string, int> found;
  for (const OrderedJson& event : read_json_lines(job().run("sets") / "events.jsonl")) {
    if (event.at("event") != "validation") continue;
    ++found[event.contains("set") ? event.at("set").get<std::string>() : ""];
  }
  EXPECT_EQ(found, (std::map<std::string, int>{{"", 2}, {"held", 2}}));
  const Outcome report = TinyJob::must({"report", job().run("sets").string()});
  EXPECT_NE(report.out.find("validation, held"), std::string::npos) << report.out;
}

TEST(Mixture, ImpossibleOnesAreRefused) {
  const std::string corpus = job().corpus().string();
  const auto refused = [&](const Overrides& overrides, const std::vector<std::string>& words) {
    expect_refused(job().train("refused", job().setting() + overrides), 2, words);
    EXPECT_FALSE(fs::exists(job().run("refused")));
  };
  refused({"data.train=" + corpus}, {"train and source"});
  refused({"run.steps=0.5"}, {"run.steps"});
  refused({"data.source=[{path = \"" + corpus + "\"}, {path = \"" + corpus + "\"}]"},
          {"two corpora of the name \"corpus\"", "another `name`"});
  refused({"data.source=[{path = \"" + corpus + "\", weight = 0}]"}, {"a number above 0"});
  refused({"data.source=[{path = \"" + (job().folder / "gone.arrow").string() + "\"}]"},
          {"data.source", "gone.arrow"});
}

}  // namespace
}  // namespace skein
