#include "skein/schedule/simulate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "skein/base/error.h"

namespace skein {
namespace {

StepTimes equal_times(const PipelineShape& shape, double forward, double backward) {
  StepTimes times;
  times.chunks.assign(static_cast<size_t>(shape.num_chunks()), {forward, backward});
  return times;
}

// Times are powers of two, so sums are exact and the bubble equals the formula's.
TEST(Simulate, BubbleOfEqualTasksIsThatOfTheLiterature) {
  for (int64_t p = 1; p <= 8; ++p) {
    for (int64_t v = 1; v <= 4; ++v) {
      for (int64_t m = p; m <= 24; ++m) {
        for (const ChunkSeconds seconds : {ChunkSeconds{1, 2}, {1, 1}, {2, 1}}) {
          const PipelineShape shape{p, v, m};
          const StepTimeline timeline =
              simulate(shape, equal_times(shape, seconds.forward, seconds.backward));
          EXPECT_DOUBLE_EQ(timeline.bubble_fraction,
                           static_cast<double>(p - 1) / static_cast<double>(m * v))
              << "p " << p << " v " << v << " m " << m;
          EXPECT_DOUBLE_EQ(timeline.step_seconds, (seconds.forward + seconds.backward) *
                                                      static_cast<double>(m * v + p - 1));
        }
      }
    }
  }
}

// No task starts before its input arrives, none overlaps another of its stage, and none waits
// without a reason.
TEST(Simulate, EveryStartHasItsReason) {
  for (const PipelineShape& shape : {PipelineShape{4, 1, 7}, {2, 2, 5}, {3, 3, 11}, {5, 2, 3}}) {
    StepTimes times;
    for (int64_t chunk = 0; chunk < shape.num_chunks(); ++chunk) {
      const auto c = static_cast<double>(chunk);
      times.chunks.push_back({1 + 0.25 * c, 2.5 - 0.125 * c});
    }
    times.transfer_seconds = 0.375;
    times.update_seconds = 3;
    const StepTimeline timeline = simulate(shape, times);
    const auto ends = [&](TaskKind kind, int64_t chunk, int64_t micro_batch) {
      for (const TaskSpan& span : timeline.stages[static_cast<size_t>(shape.stage_of(chunk))]) {
        const Task& task = span.task;
        if (task.kind == kind && task.chunk == chunk && task.micro_batch == micro_batch)
          return span.end;
      }
      return std::nan("");
    };
    double last_end = 0;
    for (const auto& spans : timeline.stages) {
      double free_at = 0;
      for (const TaskSpan& span : spans) {
        const Task& task = span.task;
        const bool forward = task.kind == TaskKind::kForward;
        const ChunkSeconds& seconds = times.chunks[static_cast<size_t>(task.chunk)];
        double source = 0;
        if (!forward && task.chunk == shape.num_chunks() - 1) {
          source = ends(TaskKind::kForward, task.chunk, task.micro_batch);
        } else if (!forward || task.chunk > 0) {
          source = ends(task.kind, task.chunk + (forward ? -1 : 1), task.micro_batch) +
                   times.transfer_seconds;
        }
        EXPECT_GE(span.ready, source);
        EXPECT_EQ(span.start, std::max(span.ready, free_at));
        EXPECT_DOUBLE_EQ(span.end - span.start, forward ? seconds.forward : seconds.backward);
        free_at = span.end;
      }
      last_end = std::max(last_end, free_at);
    }
    EXPECT_EQ(timeline.update_start, last_end);
    EXPECT_EQ(timeline.step_seconds, last_end + 3);
  }
}

// Two stages, one micro-batch: F, transfer, F, B, transfer, B.
TEST(Simulate, TransfersDelayTheNextStage) {
  const PipelineShape shape{2, 1, 1};
  StepTimes times = equal_times(shape, 1, 2);
  times.transfer_seconds = 0.5;
  EXPECT_DOUBLE_EQ(simulate(shape, times).step_seconds, 1 + 0.5 + 1 + 2 + 0.5 + 2);
}

// A link slower than the stages limits the rate, since transfers are sent one after another.
TEST(Simulate, TransfersOfOneDirectionQueue) {
  const PipelineShape shape{2, 1, 3};
  StepTimes times = equal_times(shape, 1, 1);
  times.transfer_seconds = 10;
  std::vector<std::vector<Task>> lists(2);
  for (int64_t i = 0; i < 3; ++i) lists[0].push_back({TaskKind::kForward, 0, i, i});
  for (int64_t i = 0; i < 3; ++i) lists[1].push_back({TaskKind::kForward, 1, i, i});
  const StepTimeline timeline = simulate(lists, times);
  EXPECT_DOUBLE_EQ(timeline.stages[1][0].start, 11);
  EXPECT_DOUBLE_EQ(timeline.stages[1][1].start, 21);
  EXPECT_DOUBLE_EQ(timeline.stages[1][2].start, 31);
}

TEST(Simulate, StagesThatShareAMachineSlowEachOtherDown) {
  const PipelineShape shape{2, 1, 2};
  StepTimes times = equal_times(shape, 1, 2);
  times.tasks_at_once = 1;
  const StepTimeline timeline = simulate(shape, times);
  const auto end = [&](size_t stage, size_t task) { return timeline.stages[stage][task].end; };
  // The second forward of the first stage beside the first one of the last.
  EXPECT_DOUBLE_EQ(end(0, 0), 1);
  EXPECT_DOUBLE_EQ(end(0, 1), 3);
  EXPECT_DOUBLE_EQ(end(1, 0), 3);
  EXPECT_DOUBLE_EQ(end(1, 1), 5);
  // Then a backward of each: those of the first stage wait for those of the last.
  EXPECT_DOUBLE_EQ(end(1, 2), 7);
  EXPECT_DOUBLE_EQ(end(0, 2), 9);
  EXPECT_DOUBLE_EQ(end(1, 3), 10);
  EXPECT_DOUBLE_EQ(timeline.step_seconds, 2 * 2 * 3);

  times.tasks_at_once = 2;
  EXPECT_DOUBLE_EQ(simulate(shape, times).step_seconds,
                   simulate(shape, equal_times(shape, 1, 2)).step_seconds);
}

TEST(Simulate, OneStageHasNoBubbleAndNoTransfers) {
  const PipelineShape shape{1, 1, 4};
  StepTimes times = equal_times(shape, 1, 2);
  times.transfer_seconds = 100;
  times.update_seconds = 0.5;
  const StepTimeline timeline = simulate(shape, times);
  EXPECT_DOUBLE_EQ(timeline.step_seconds, 12.5);
  EXPECT_DOUBLE_EQ(timeline.bubble_fraction, 0);
}

TEST(Simulate, ListsThatWaitForEachOtherAreNamed) {
  const std::vector<std::vector<Task>> lists = {
      {{TaskKind::kBackward, 0, 0, 0}, {TaskKind::kForward, 0, 0, 0}},
      {{TaskKind::kForward, 1, 0, 0}, {TaskKind::kBackward, 1, 0, 0}}};
  try {
    simulate(lists, equal_times({2, 1, 1}, 1, 1));
    FAIL() << "a deadlock that was not seen";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalid);
    EXPECT_NE(std::string(error.what()).find("stage 0"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("backward of chunk 0"), std::string::npos);
  }
}

TEST(Simulate, ChunksWithoutTimesAreRefused) {
  EXPECT_THROW(simulate(PipelineShape{2, 2, 2}, equal_times({2, 1, 2}, 1, 1)), Error);
}

}  // namespace
}  // namespace skein
