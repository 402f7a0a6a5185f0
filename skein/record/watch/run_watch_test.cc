#include "skein/record/watch/run_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "skein/base/files/file.h"
#include "skein/base/machine/machine.h"
#include "skein/record/files/events.h"
#include "skein/record/files/metrics.h"

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

// The text of a scrape once it has `line`, which comes as soon as the files are read.
std::string text_with(RunWatch& watch, const std::string& line) {
  std::string text = watch.text();
  for (int i = 0; i < 1000 && !has(text, line); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    text = watch.text();
  }
  EXPECT_TRUE(has(text, line)) << line << "\n" << text;
  return text;
}

TEST(RunWatch, SaysWhatTheFilesHoldAsTheyGrow) {
  const Config config = config_of("watch");
  RunWatch watch(config);
  text_with(watch, "skein_hosts 1");
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
  std::string text = text_with(watch, "skein_loss 2.5");
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
  text = text_with(watch, "skein_loss 2.25");
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
  RunWatch watch(config);
  text_with(watch, "skein_watch_errors_total 1");
}

// The newest step of a long file is there at once, the rest follows.
TEST(RunWatch, BeginsWithTheEndOfALongFile) {
  const Config config = config_of("watch_long");
  EventLog(config.run.dir).append("start", {{"number", 1}, {"step", 0}});
  const fs::path path = fs::path(config.run.dir) / "metrics.jsonl";
  {
    MetricsLog metrics(config.run.dir);
    for (int64_t step = 1; step <= 6000; ++step) {
      metrics.append({.step = step, .loss = 2.5F, .time = unix_time(), .start = 1});
    }
  }
  ASSERT_GT(fs::file_size(path), 2u << 20);
  RunWatch watch(config);
  const std::string first = text_with(watch, "skein_step 6000");
  const std::string whole = text_with(watch, "skein_catching_up 0");
  EXPECT_NE(whole.find("\nskein_goodput_ratio "), std::string::npos);
  EXPECT_EQ(first.find("\nskein_goodput_ratio ") == std::string::npos,
            has(first, "skein_catching_up 1"))
      << "goodput of a part of the file would be wrong";
}

// Somebody else's file that nobody writes to holds whoever opens it, and nobody else.
TEST(RunWatch, TheSupervisorDoesNotWaitForAReaderThatIsHeld) {
  const Config config = config_of("watch_held");
  const fs::path path = fs::path(config.run.dir) / "metrics.jsonl";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  {
    RunWatch watch(config);
    std::thread scraper([&] { watch.text(); });
    watch.set_cluster({.generation = 3});
    EXPECT_TRUE(has(watch.text(), "skein_generation 3"));
    scraper.join();
  }  // nor does the end of the watch
  const FileDescriptor writer(::open(path.c_str(), O_RDWR | O_CLOEXEC));  // lets the reader go
}

}  // namespace
}  // namespace skein
