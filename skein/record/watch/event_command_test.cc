#include "skein/record/watch/event_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "skein/record/files/events.h"

namespace skein {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

fs::path fresh_run(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::string told(const fs::path& run) { return read_file_if_any(run / "told"); }

const char* const kTell =
    "read -r line; printf '%s|%s|%s|%s\\n' \"$SKEIN_EVENT\" \"$SKEIN_EVENT_STEP\" "
    "\"$SKEIN_EVENT_FATAL\" \"$line\" >> \"$SKEIN_RUN_DIR/told\"";

TEST(EventCommand, RunsOnceForEachEventThatAPersonMayHaveToKnow) {
  const fs::path run = fresh_run("on_event");
  EventLog events(run);
  events.append("failure", {{"reason", "long ago"}});
  {
    EventCommand command(run, kTell);
    command.lead(true);
    events.append("start", {{"step", 0}});
    events.append("failure", {{"step", 7}, {"reason", "rank \"1\"\nwas killed"}, {"fatal", true}});
    events.append("checkpoint_commit", {{"step", 8}});
    events.append("stop", {{"step", 8}, {"reason", "regroup"}});
    events.append("stop", {{"step", 9}, {"reason", "done"}});
  }
  const std::string text = told(run);
  EXPECT_TRUE(text.starts_with("failure|7|true|{")) << text;
  EXPECT_THAT(text, HasSubstr(R"(rank \"1\"\nwas killed)"));
  EXPECT_THAT(text, HasSubstr("\nstop|9||{"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
}

TEST(EventCommand, AnotherMachineGoesOnFromWhatWasTold) {
  const fs::path run = fresh_run("on_event_leads");
  EventLog events(run);
  EventCommand first(run, kTell), second(run, kTell);
  first.lead(true);
  events.append("failure", {{"step", 1}});
  while (told(run).empty() || !fs::exists(run / ".events_told")) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  first.lead(false);
  events.append("failure", {{"step", 2}});
  second.lead(true);
  while (told(run).find("failure|2|") == std::string::npos) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(told(run).find("failure|1|"), told(run).rfind("failure|1|"));
}

// EIO, ESTALE, EACCES: which events were passed on is unknown then, and not none of them.
TEST(EventCommand, WhatCannotBeReadOfWhatWasToldIsWaitedFor) {
  const fs::path run = fresh_run("on_event_unread");
  EventLog events(run);
  EventCommand first(run, kTell);
  events.append("failure", {{"step", 1}});
  write_file_atomic(run / "aside", std::to_string(fs::file_size(run / "events.jsonl")));
  events.append("failure", {{"step", 2}});
  fs::create_symlink(".events_told", run / ".events_told");
  EventCommand second(run, kTell);
  second.lead(true);
  std::this_thread::sleep_for(milliseconds(700));  // some looks
  EXPECT_EQ(told(run), "");
  fs::rename(run / "aside", run / ".events_told");
  while (told(run).find("failure|2|") == std::string::npos) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(told(run).find("failure|1|"), std::string::npos);
}

TEST(EventCommand, AMachineThatOthersWentOnWithoutTellsNoMore) {
  const fs::path run = fresh_run("on_event_left");
  {
    EventCommand command(run, kTell);
    command.lead(true);
    EventLog events(run);
    events.append("failure", {{"step", 1}});
    while (told(run).empty()) std::this_thread::sleep_for(milliseconds(1));
    JsonlWriter(run / "events.jsonl")
        .append(event_line(1, "generation", {{"generation", 2}, {"host", "another"}}));
  }
  EXPECT_TRUE(told(run).starts_with("failure|1|")) << told(run);
  EXPECT_EQ(told(run).find("generation|"), std::string::npos) << told(run);
}

TEST(EventCommand, OneThatHangsIsKilledWithAllThatItStarted) {
  const fs::path run = fresh_run("on_event_hangs");
  EventLog events(run);
  const auto before = std::chrono::steady_clock::now();
  testing::internal::CaptureStdout();  // where the log goes before it is started
  {
    EventCommand command(run, "echo said; sleep 1000 & echo $! > \"$SKEIN_RUN_DIR/child\"; wait",
                         milliseconds(300));
    command.lead(true);
    for (int step = 1; step <= 3; ++step) events.append("failure", {{"step", step}});
    while (!fs::exists(run / "child")) std::this_thread::sleep_for(milliseconds(1));
  }
  const std::string log = testing::internal::GetCapturedStdout();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(60));
  const int child = std::stoi(read_file(run / "child"));
  for (int i = 0; i < 5000 && ::kill(child, 0) == 0; ++i) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_NE(::kill(child, 0), 0);
  EXPECT_THAT(read_file(run / "logs" / "on_event.log"), HasSubstr("said"));
  EXPECT_THAT(log, HasSubstr("did not end in time"));
  EXPECT_EQ(log.find("launch.on_event"), log.rfind("launch.on_event")) << log;  // once
}

TEST(EventCommand, OfTooManyTheOldestAreLeftOut) {
  const fs::path run = fresh_run("on_event_many");
  EventLog events(run);
  testing::internal::CaptureStdout();
  {
    EventCommand command(run, "echo $SKEIN_EVENT_STEP >> \"$SKEIN_RUN_DIR/told\"");
    for (int step = 1; step <= 130; ++step) events.append("failure", {{"step", step}});
    command.lead(true);
  }
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("not called for the first 30"));
  EXPECT_TRUE(told(run).starts_with("31\n")) << told(run).substr(0, 20);
  EXPECT_TRUE(told(run).ends_with("\n130\n"));
}

}  // namespace
}  // namespace skein
