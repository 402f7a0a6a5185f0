// skein report of several runs: the table, its order, the page; and skein why --save, which the
// page shows.
#include "tests/testing.h"

namespace skein {
namespace {

// Three trained runs, two that differ in a key.
const TinyJob& job() {
  static const TinyJob job;
  static const bool once = [] {
    const Overrides validated = {"data.validation=" + job.corpus().string(),
                                 "validate.every_steps=3", "validate.batches=2"};
    job.trained("slow", validated + Overrides{"optimizer.learning_rate=1e-4"});
    job.trained("fast", validated + Overrides{"optimizer.learning_rate=3e-3"});
    job.trained("short", validated + Overrides{"optimizer.learning_rate=1e-4", "run.steps=3"});
    return true;
  }();
  EXPECT_TRUE(once);
  return job;
}

std::string run(const std::string& name) { return job().run(name).string(); }

Outcome report(const Arguments& arguments) {
  Arguments all = {"report"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_skein(all);
}

TEST(ReportDiff, ShowsWhatDiffersAndTheFigures) {
  const Outcome outcome = report({run("slow"), run("fast"), "--diff"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* words : {"optimizer.learning_rate      0.0001  0.003", "validation.loss",
                            "state                        done    done"}) {
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
  }
  EXPECT_EQ(outcome.out.find("run.seed"), std::string::npos) << outcome.out;
}

TEST(ReportDiff, TheFiguresAreThoseOfTheReport) {
  const OrderedJson both = OrderedJson::parse(
      TinyJob::must({"report", run("slow"), run("fast"), "--diff", "--json"}).out);
  for (size_t i = 0; i < 2; ++i) {
    const OrderedJson& one = both.at("runs")[i];
    const OrderedJson alone =
        OrderedJson::parse(TinyJob::must({"report", one.at("run"), "--json"}).out);
    EXPECT_EQ(one.at("report"), alone);
    EXPECT_NEAR(one.at("metrics").at("loss"), alone.at("final_loss"), 1e-6);
    EXPECT_NEAR(one.at("metrics").at("validation.best"), alone.at("best_validation_loss"), 1e-6);
    EXPECT_EQ(one.at("metrics").at("tokens"), alone.at("tokens"));
  }
  const OrderedJson plain =
      OrderedJson::parse(TinyJob::must({"report", run("slow"), run("fast"), "--json"}).out);
  EXPECT_EQ(plain.at("runs").size(), 2u);
  EXPECT_EQ(plain.at("runs")[1].at("run"), run("fast"));
}

TEST(ReportDiff, SortsTheBestFirst) {
  const auto order = [](const std::string& figure) {
    std::vector<std::string> names;
    const Outcome outcome = TinyJob::must(
        {"report", run("short"), run("slow"), run("fast"), "--diff", "--json", "--sort", figure});
    const OrderedJson json = OrderedJson::parse(outcome.out);
    for (const OrderedJson& one : json.at("runs")) {
      names.push_back(one.at("name"));
    }
    return names;
  };
  EXPECT_EQ(order("validation.loss"), (std::vector<std::string>{"fast", "slow", "short"}));
  EXPECT_EQ(order("steps").back(), "short");
  expect_refused(report({run("slow"), "--diff", "--sort", "validation.los"}), 2,
                 {"--sort validation.los", "did you mean validation.loss?"});
  expect_refused(report({run("slow"), "--sort", "loss"}), 2, {"--diff or --html"});
}

TEST(ReportDiff, RefusesAndNotesByName) {
  const fs::path log = job().folder / "0000.log";
  std::ofstream(log) << "text";
  const Outcome outcome = report({run("slow"), log.string(), "--diff"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.err.find("0000.log: no run folder; left out"), std::string::npos)
      << outcome.err;
  expect_refused(report({run("slow"), run("gone"), "--diff"}), 1, {"gone", "is not there"});
  expect_refused(report({log.string(), "--diff"}), 1, {"expected a run folder"});
}

TEST(ReportDiff, WritesAPage) {
  const fs::path page = job().folder / "report.html";
  TinyJob::must({"why", run("fast"), "--step", "5", "--save"});
  const Outcome outcome =
      TinyJob::must({"report", run("slow"), run("fast"), "--html", page.string()});
  EXPECT_EQ(outcome.out, "");
  const std::string text = read_file(page);
  const size_t first = text.find("id=\"data\">") + 10;
  const OrderedJson data =
      OrderedJson::parse(text.substr(first, text.find("</script>", first) - first));
  ASSERT_EQ(data.at("runs").size(), 2u);
  EXPECT_EQ(data.at("differences")[0],
            OrderedJson::parse(R"(["optimizer.learning_rate", "0.0001", "0.003"])"));
  const OrderedJson& fast = data.at("runs")[1];
  EXPECT_EQ(fast.at("curves").at("loss").at("step").size(), 6u);
  ASSERT_EQ(fast.at("explained").size(), 1u);
  EXPECT_EQ(fast.at("explained")[0].at("step"), 5);
  EXPECT_FALSE(fast.at("explained")[0].at("documents").empty());
  EXPECT_GT(fast.at("memory").at("allocated").at("weights"), 0);
  EXPECT_GT(fast.at("memory").at("peak_resident_bytes"), 1 << 20);
  // Its own page is replaced, another file is not.
  TinyJob::must({"report", run("slow"), "--html", page.string()});
  std::ofstream(page) << "mine";
  expect_refused(report({run("slow"), "--html", page.string()}), 2, {"--html", "remove it"});
  expect_refused(report({run("slow"), "--html", job().folder.path().string()}), 2, {"is a folder"});
  expect_refused(report({run("slow"), "--html", (job().folder / "no/x.html").string()}), 2,
                 {"is no folder"});
}

}  // namespace
}  // namespace skein
