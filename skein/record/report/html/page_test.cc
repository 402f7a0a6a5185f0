#include "skein/record/report/html/page.h"

#include <gtest/gtest.h>

#include <fstream>

#include "skein/base/text/json_text.h"
#include "skein/record/files/events.h"

namespace skein {
namespace {

constexpr const char* kHostile = "</script><!--<script>&\"'\xff";

std::string page_data(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">\n";
  const size_t first = page.find(begin) + begin.size();
  return page.substr(first, page.find("</script>", first) - first);
}

std::string write_run(const std::string& name, int64_t num_steps) {
  const fs::path folder = fs::path(testing::TempDir()) / "page" / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::ofstream(folder / "config.toml") << "[data]\ntrain = \"</script>\"\n";
  std::ofstream events(folder / "events.jsonl"), metrics(folder / "metrics.jsonl");
  events << event_line(100, "start",
                       {{"step", 0}, {"allocated_bytes", {{"weights", 1000}, {"loader", 24}}}})
         << "\n";
  for (int64_t step = 1; step <= num_steps; ++step) {
    metrics << metrics_line({.step = step,
                             .loss = step == 2 ? std::nanf("") : 0.3f,
                             .grad_norm = step == num_steps / 2 ? 50.0f : 1.0f,
                             .tokens = step * 1000,
                             .tokens_per_s = 500,
                             .step_ms = 1000,
                             .time = 100.0 + static_cast<double>(step)})
            << "\n";
  }
  events << event_line(100.0 + static_cast<double>(num_steps), "failure",
                       {{"step", num_steps}, {"rank", 0}, {"fatal", true}, {"reason", kHostile}})
         << "\n";
  return folder.string();
}

std::string page_of(const std::vector<std::string>& folders) {
  std::vector<OrderedJson> pages;
  const ComparedRuns runs =
      read_compared_runs(folders, [&](const ComparedRun& run, const RunReport& report) {
        pages.push_back(page_run(run, report));
      });
  return report_page(runs, std::move(pages), 1000);
}

TEST(ReportPage, NoTextEndsTheBlockOfData) {
  const std::string run = write_run("<!--<script>", 3);
  const std::string page = page_of({run});
  const std::string data = page_data(page);
  EXPECT_EQ(data.find('<'), std::string::npos);
  const OrderedJson json = OrderedJson::parse(data);
  EXPECT_EQ(json["runs"][0]["name"], "<!--<script>");
  EXPECT_EQ(json["runs"][0]["report"]["failures"][0]["reason"],
            "</script><!--<script>&\"'\xef\xbf\xbd");
  EXPECT_EQ(json["runs"][0]["settings"][0][1], "</script>");
  // The template's own: one block of data, one of code.
  size_t count = 0;
  for (size_t at = page.find("</script>"); at != std::string::npos;
       at = page.find("</script>", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, 2u);
}

TEST(ReportPage, ANameThatIsAMarkOfTheTemplateStays) {
  const std::string page = page_of({write_run("* data", 3), write_run("* report_page.js *", 3)});
  EXPECT_EQ(OrderedJson::parse(page_data(page))["runs"][1]["name"], "* report_page.js *");
  for (const char* mark : {"/* report_page.css */", "/* report_charts.js */", "/* data */"}) {
    EXPECT_EQ(page.find(mark), std::string::npos) << mark;
  }
  EXPECT_TRUE(page.starts_with(report_page_beginning()));
  EXPECT_NE(report_page_beginning().find("skein-report"), std::string::npos);
}

TEST(ReportPage, FetchesNothing) {
  const std::string page = page_of({write_run("plain", 3)});
  EXPECT_NE(page.find("Content-Security-Policy"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  for (const char* word : {" src=", " href=", "@import", "url(//", "fetch(", "XMLHttpRequest"}) {
    EXPECT_EQ(page.find(word), std::string::npos) << word;
  }
}

TEST(ReportPage, ALongRunHasFewPointsAndItsSpike) {
  const OrderedJson json = OrderedJson::parse(page_data(page_of({write_run("long", 20'000)})));
  const OrderedJson& run = json["runs"][0];
  EXPECT_EQ(run["num_steps"], 20'000);
  const OrderedJson& norm = run["curves"]["grad_norm"];
  EXPECT_LE(norm["step"].size(), 2000u);
  EXPECT_EQ(norm["step"].size(), norm["value"].size());
  EXPECT_FALSE(norm["means"]["value"].empty());
  bool has_spike = false;
  for (size_t i = 0; i < norm["step"].size(); ++i) {
    has_spike |= norm["step"][i] == 10'000 && norm["value"][i] == 50.0;
  }
  EXPECT_TRUE(has_spike);
  ASSERT_EQ(run["spikes"].size(), 1u);
  EXPECT_EQ(run["spikes"][0]["step"], 10'000);
  EXPECT_EQ(run["curves"]["loss"]["value"][0], 0.3);  // the float's own digits
  EXPECT_FALSE(run["curves"].contains("peak_utilization"));
  EXPECT_EQ(run["axis"]["hours"].front(), 0.000278);
  EXPECT_EQ(run["memory"]["allocated"]["weights"], 1000);
  EXPECT_LT(json_text(json).size(), 1'000'000u);
}

TEST(ReportPage, ARunWithoutAStep) {
  const fs::path folder = fs::path(testing::TempDir()) / "page/none";
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::ofstream(folder / "config.toml") << "[run]\nsteps = 4\n";
  const OrderedJson run = OrderedJson::parse(page_data(page_of({folder.string()})))["runs"][0];
  EXPECT_EQ(run["state"], "not begun");
  EXPECT_TRUE(run["curves"].empty());
  EXPECT_EQ(run["notes"].size(), 1u);
}

}  // namespace
}  // namespace skein
