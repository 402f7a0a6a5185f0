#include "skein/record/run_watch.h"

#include <gtest/gtest.h>

#include <fstream>

#include "skein/base/machine.h"
#include "skein/record/events.h"

namespace skein {
namespace {

Config config_of(const std::string& name) {
  Config config;
  config.run.dir = (fs::path(testing::TempDir()) / name).string();
  config.run.steps = 40;
  fs::remove_all(config.run.dir);
  fs::create_directories(config.run.dir);
  return config;
}

bool has(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(RunWatch, SaysWhatTheFilesHoldAsTheyGrow) {
  const Config config = config_of("watch");
  RunWatch watch(config);
  EXPECT_TRUE(has(watch.text(), "skein_hosts 1"));
  EXPECT_EQ(watch.text().find("skein_loss "), std::string::npos);
  EventLog events(config.run.dir);
  events.append("start", {{"number", 1},
                          {"step", 0},
                          {"launched_seconds", 2},
                          {"allocated_bytes", {{"weights", 1000}, {"snapshot", 24}}}});
  MetricsLog metrics(config.run.dir);
  metrics.append(
      {.step = 1, .loss = 2.5f, .time = unix_time() - 5, .start = 1, .clock = boot_seconds()});
  watch.set_cluster({.generation = 3, .hosts = 2, .hosts_wanted = 4});
  std::string text = watch.text();
  for (const char* line :
       {"skein_loss 2.5", "skein_step 1", "skein_steps_planned 40", "skein_memory_bytes 1024",
        "skein_generation 3", "skein_hosts 2", "skein_hosts_wanted 4", "skein_starts_total 1",
        "skein_restarts_total{cause=\"crashed\"} 0", "skein_watch_errors_total 0"}) {
    EXPECT_TRUE(has(text, line)) << line << "\n" << text;
  }
  EXPECT_NE(text.find("\nskein_time_seconds{part=\"starting\"} 2."), std::string::npos) << text;
  EXPECT_NE(text.find("\nskein_step_age_seconds 5."), std::string::npos) << text;
  events.append("failure", {{"reason", "no space"}, {"fatal", false}});
  events.append("failure", {{"reason", "rank 1 was killed"}, {"rank", 1}, {"fatal", false}});
  events.append("generation", {{"cause", "no memory"}});
  events.append("host_lost", {{"machine", "b"}});
  events.append("checkpoint_commit", {{"step", 1}});
  metrics.append({.step = 2, .loss = 2.25f, .time = unix_time()});
  text = watch.text();
  for (const char* line : {"skein_loss 2.25", "skein_restarts_total{cause=\"no_memory\"} 1",
                           "skein_checkpoint_failures_total 1", "skein_fatal_failures_total 0",
                           "skein_hosts_lost_total 1", "skein_last_checkpoint_step 1"}) {
    EXPECT_TRUE(has(text, line)) << line << "\n" << text;
  }
  EXPECT_NE(text.find("\nskein_disk_free_bytes{folder=\"run\"} "), std::string::npos);
}

TEST(RunWatch, SaysWhenItCannotRead) {
  const Config config = config_of("watch_torn");
  fs::create_symlink("events.jsonl", fs::path(config.run.dir) / "events.jsonl");  // a circle
  EXPECT_TRUE(has(RunWatch(config).text(), "skein_watch_errors_total 1"));
}

}  // namespace
}  // namespace skein
