// What derives from metrics.def: every output as scripts and dashboards know it, and the page.
#include "skein/record/files/metrics_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "skein/base/files/file.h"
#include "skein/record/files/tensorboard.h"
#include "skein/record/watch/prometheus_text.h"
#include "tests/places.h"

namespace skein {
namespace {

MetricsSample sample() {
  return {.metrics = {.step = 7,
                      .loss = 2.5f,
                      .learning_rate = 3e-4f,
                      .grad_norm = 1.5f,
                      .param_norm = 60,
                      .tokens = 28672,
                      .epoch = 0.25f,
                      .tokens_per_s = 1234.5f,
                      .step_ms = 123,
                      .data_wait_ms = 1,
                      .checkpoint_stall_ms = 2,
                      .replication_stall_ms = 3,
                      .comm_exposed_ms = 4,
                      .state_check_ms = 5,
                      .matmul_ceiling_share = 0.5f,
                      .peak_utilization = 0.125f,
                      .epochs = {{"web", 0.25f}},
                      .time = 1763636883.25},
          .total_steps = 100,
          .memory_bytes = 1 << 20,
          .spike_steps = 3};
}

// HELP and TYPE are left out.
std::string prometheus_values(const MetricsSample& sample) {
  PrometheusText text;
  add_step_metrics(text, sample);
  std::string values;
  std::istringstream lines(text.text());
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) values += line + "\n";
  }
  return values;
}

TEST(MetricsTable, PrometheusHasItsNamesUnitsAndOrder) {
  const std::string all =
      "skein_step 7\nskein_steps_planned 100\nskein_loss 2.5\nskein_learning_rate 0.0003\n"
      "skein_grad_norm 1.5\nskein_param_norm 60\nskein_tokens_total 28672\nskein_epoch 0.25\n"
      "skein_tokens_per_second 1234.5\nskein_step_seconds 0.123\nskein_data_wait_seconds 0.001\n"
      "skein_checkpoint_stall_seconds 0.002\nskein_replication_stall_seconds 0.003\n"
      "skein_comm_exposed_seconds 0.004\nskein_state_check_seconds 0.005\n"
      "skein_model_flops_utilization 0.5\nskein_matmul_ceiling_share 0.5\n"
      "skein_peak_utilization 0.125\nskein_source_epochs{source=\"web\"} 0.25\n"
      "skein_memory_bytes 1048576\nskein_grad_spike_steps 3\n"
      "skein_last_step_timestamp_seconds 1763636883.25\n";
  EXPECT_EQ(prometheus_values(sample()), all);
  MetricsSample unknown = sample();
  unknown.metrics.peak_utilization = 0;
  unknown.metrics.epochs.clear();
  const size_t from = all.find("skein_peak"), to = all.find("skein_memory");
  EXPECT_EQ(prometheus_values(unknown), all.substr(0, from) + all.substr(to));
}

TEST(MetricsTable, TensorBoardHasItsTagsInTheirOrder) {
  const fs::path folder = fs::path(testing::TempDir()) / "metrics_tags";
  fs::remove_all(folder);
  TensorBoardWriter writer(folder, 1);
  const MetricsSample shown = sample();
  writer.write_step(shown.metrics, shown.memory_bytes, shown.spike_steps);
  writer.finish();
  const Scalar expected[] = {{"loss", 2.5f},
                             {"learning_rate", 3e-4f},
                             {"grad_norm", 1.5f},
                             {"param_norm", 60},
                             {"epoch", 0.25f},
                             {"tokens_per_s", 1234.5f},
                             {"model_flops_utilization", 0.5f},
                             {"matmul_ceiling_share", 0.5f},
                             {"step_ms", 123},
                             {"memory_bytes", 1 << 20},
                             {"grad_spike", 3},
                             {"epochs/web", 0.25f}};
  EXPECT_TRUE(read_file(writer.path())
                  .ends_with(tensorboard_scalars_record(shown.metrics.time, 7, expected)));
}

// What is written is read, whichever keys it has.
TEST(MetricsTable, ALineReadsBack) {
  StepMetrics metrics = sample().metrics;
  EXPECT_EQ(parse_metrics(parse_json(metrics_line(metrics), "line")), metrics);
  metrics.start = 3;
  metrics.clock = 51482.5;
  EXPECT_EQ(parse_metrics(parse_json(metrics_line(metrics), "line")), metrics);
  // Older versions wrote the former name alone.
  const auto old = parse_metrics(
      parse_json(R"({"step": 1, "loss": 1, "model_flops_utilization": 0.25})", "line"));
  ASSERT_TRUE(old.has_value());
  EXPECT_EQ(old->matmul_ceiling_share, 0.25f);
}

TEST(MetricsTable, NamesEachOnce) {
  std::set<std::string> keys, names;
  std::set<int> tags, places;
  int num_names = 0, num_tags = 0, num_places = 0;
  for (const Metric& metric : metrics_table()) {
    keys.insert(metric.key);
    num_names += metric.prometheus.name != nullptr;
    if (metric.prometheus.name != nullptr) names.insert(metric.prometheus.name);
    num_tags += metric.tensorboard > 0;
    if (metric.tensorboard > 0) tags.insert(metric.tensorboard);
    num_places += metric.progress.place > 0;
    if (metric.progress.place > 0) places.insert(metric.progress.place);
    EXPECT_FALSE(std::string(metric.page).empty()) << metric.key;
    EXPECT_EQ(std::string(metric.help).empty(), metric.prometheus.name == nullptr) << metric.key;
  }
  EXPECT_EQ(keys.size(), metrics_table().size());
  EXPECT_EQ(names.size(), static_cast<size_t>(num_names));
  EXPECT_EQ(tags.size(), static_cast<size_t>(num_tags));
  EXPECT_EQ(places.size(), static_cast<size_t>(num_places));
}

TEST(MetricsTable, DocumentationHoldsTheReference) {
  const fs::path page = fs::path(kSourceFolder) / "docs/metrics_format.md";
  const std::string text = read_file(page);
  const std::string begin = "<!-- reference: begin -->\n\n", end = "\n<!-- reference: end -->";
  const size_t from = text.find(begin), to = text.find(end);
  ASSERT_NE(from, std::string::npos);
  ASSERT_NE(to, std::string::npos);
  const std::string expected =
      text.substr(0, from + begin.size()) + metrics_reference() + text.substr(to);
  const fs::path copy = fs::absolute("metrics_format.md");  // stays, beside the program
  if (text != expected) std::ofstream(copy) << expected;
  EXPECT_TRUE(text == expected) << "docs/metrics_format.md is out of date; what it should be: "
                                << copy.string();
}

}  // namespace
}  // namespace skein
