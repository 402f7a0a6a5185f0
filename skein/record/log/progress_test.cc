#include "skein/record/log/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

namespace skein {
namespace {

const ProgressLine kLine{.metrics = {.step = 120,
                                     .loss = 5.43211f,
                                     .learning_rate = 3e-4f,
                                     .grad_norm = 1.2345f,
                                     .epoch = 0.413f,
                                     .tokens_per_s = 12345,
                                     .matmul_ceiling_share = 0.61f},
                         .total_steps = 2000,
                         .seconds_left = 200};

TEST(Progress, RendersEveryField) {
  EXPECT_EQ(
      render_progress(kLine, 200),
      "step  120/2000  loss 5.4321  12.3 k tokens/s  61.0% of ceiling  grad 1.23  lr 3.00e-04 "
      " epoch 0.41  left 3 min 20 s");
  ProgressLine line = kLine;
  line.metrics.epoch = 0.000123f;
  EXPECT_NE(render_progress(line, 200).find("  epoch 0.00012  "), std::string::npos);
  line.metrics.epoch = 1234.5f;
  EXPECT_NE(render_progress(line, 200).find("  epoch 1234.50  "), std::string::npos);
}

TEST(Progress, ATerminalThatWasClosedIsNoError) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  std::setvbuf(full, nullptr, _IONBF, 0);  // unbuffered, as stderr
  for (const bool on_terminal : {false, true}) {
    Progress progress(full, on_terminal, 10, 1);
    for (int step = 1; step <= 3; ++step) progress.update({.step = step}, step);
    progress.clear();
    progress.finish();
  }
  std::fclose(full);
}

TEST(Progress, DropsTheLeastImportantFieldsFirst) {
  EXPECT_EQ(render_progress(kLine, 102),
            "step  120/2000  loss 5.4321  12.3 k tokens/s  61.0% of ceiling  grad 1.23  epoch 0.41 "
            " left 3 min 20 s");
  EXPECT_EQ(render_progress(kLine, 94),
            "step  120/2000  loss 5.4321  12.3 k tokens/s  61.0% of ceiling  grad 1.23  left 3 min "
            "20 s");
  EXPECT_EQ(render_progress(kLine, 60), "step  120/2000  loss 5.4321  left 3 min 20 s");
  EXPECT_EQ(render_progress(kLine, 30), "step  120/2000  loss 5.4321");
  EXPECT_EQ(render_progress(kLine, 4), "step");
  EXPECT_EQ(render_progress(kLine, 0), "");
  for (int width = 0; width < 120; ++width) {
    EXPECT_LE(render_progress(kLine, width).size(), static_cast<size_t>(width));
  }
}

TEST(Progress, SaysWhenTheTimeLeftIsNotKnown) {
  ProgressLine line = kLine;
  line.seconds_left = -1;
  EXPECT_NE(render_progress(line, 200).find("left ?"), std::string::npos);
}

// What Progress writes while `drive` runs.
std::string shown(bool on_terminal, int64_t total_steps, int64_t every_steps,
                  const std::function<void(Progress&)>& drive) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  Progress progress(out, on_terminal, total_steps, every_steps);
  drive(progress);
  std::fclose(out);
  std::string result(text, size);
  std::free(text);
  return result;
}

int64_t count(const std::string& text, char c) { return std::count(text.begin(), text.end(), c); }

TEST(Progress, PlainLinesComeHoweverFastStepsAre) {
  const std::string text = shown(false, 1000, 1, [](Progress& progress) {
    for (int step = 1; step <= 1000; ++step) progress.update({.step = step}, 0.001 * step);
  });
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("step    1/1000"), 0u);
  EXPECT_EQ(count(text, '\n'), 1000);
}

TEST(Progress, PlainLinesKeepToEverySteps) {
  const std::string text = shown(false, 25, 10, [](Progress& progress) {
    for (int step = 1; step <= 25; ++step) progress.update({.step = step}, 5.0 * step);
  });
  EXPECT_EQ(count(text, '\n'), 4);  // 1, 10, 20, 25
  EXPECT_NE(text.find("step 10/25"), std::string::npos);
  EXPECT_NE(text.find("left 1 min 15 s"), std::string::npos);  // 15 steps of 5 s
}

// "I 21:03:17 step  1/100  …": not one a step, in files that grow for weeks.
TEST(Progress, WhereNothingIsSetAPlainLineComesEveryTenSeconds) {
  const auto lines = [](double seconds_a_step) {
    const std::string text = shown(false, 100, 0, [&](Progress& progress) {
      for (int step = 1; step <= 100; ++step)
        progress.update({.step = step}, seconds_a_step * step);
    });
    EXPECT_THAT(text, testing::ContainsRegex("^I [0-2][0-9]:[0-5][0-9]:[0-6][0-9] step   1/100  "
                                             "loss 0\\.0000  "));
    EXPECT_NE(text.find(" step 100/100  "), std::string::npos) << text;
    return count(text, '\n');
  };
  EXPECT_EQ(lines(0.01), 2);  // the first and the last
  EXPECT_EQ(lines(1), 11);    // 1, 11, 21, …, 91, 100
  EXPECT_EQ(lines(25), 100);
}

TEST(Progress, WhatIsSetHoldsOnATerminalToo) {
  const std::string text = shown(true, 100, 10, [](Progress& progress) {
    for (int step = 1; step <= 100; ++step) progress.update({.step = step}, step);
    progress.finish();
  });
  EXPECT_EQ(count(text, '\n'), 10);
  EXPECT_NE(text.find("step  10/100"), std::string::npos);
  EXPECT_NE(text.find("step  11/100"), std::string::npos);  // redrawn in between
  EXPECT_EQ(text.back(), '\n');
}

TEST(Progress, ATerminalLineIsRedrawnClearedAndEnded) {
  const std::string text = shown(true, 1000, 0, [](Progress& progress) {
    for (int step = 1; step <= 1000; ++step) progress.update({.step = step}, 0.01 * step);
    progress.clear();
    progress.clear();
    progress.update({.step = 1000}, 11);
    progress.finish();
    progress.finish();
  });
  EXPECT_EQ(count(text, '\n'), 1);
  EXPECT_EQ(text.back(), '\n');
  EXPECT_GE(count(text, '\r'), 90);
  EXPECT_LE(count(text, '\r'), 105);
}

}  // namespace
}  // namespace skein
