#include "skein/schedule/pipeline_tasks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "skein/base/error.h"

namespace skein {
namespace {

using Lists = std::vector<std::vector<Task>>;

Lists lists_of(const PipelineShape& shape) {
  Lists lists;
  for (int64_t stage = 0; stage < shape.num_stages; ++stage)
    lists.push_back(stage_tasks(shape, stage));
  return lists;
}

std::string text(const PipelineShape& shape) {
  return "p " + std::to_string(shape.num_stages) + " v " + std::to_string(shape.virtual_stages) +
         " m " + std::to_string(shape.micro_batches);
}

// Every combination of up to 8 stages, 4 virtual stages and 24 micro-batches.
std::vector<PipelineShape> all_shapes() {
  std::vector<PipelineShape> shapes;
  for (int64_t p = 1; p <= 8; ++p) {
    for (int64_t v = 1; v <= 4; ++v) {
      for (int64_t m = 1; m <= 24; ++m) shapes.push_back({p, v, m});
    }
  }
  for (const PipelineShape& large : {PipelineShape{16, 5, 77}, {32, 1, 200}, {13, 3, 101}})
    shapes.push_back(large);
  return shapes;
}

std::string short_form(const std::vector<Task>& tasks) {
  std::string result;
  for (const Task& task : tasks) {
    result += task.kind == TaskKind::kForward ? "F" : "B";
    result += std::to_string(task.chunk) + "." + std::to_string(task.micro_batch) + " ";
  }
  return result;
}

TEST(Pipeline, FourStagesOf1F1B) {
  const PipelineShape shape{4, 1, 5};
  EXPECT_EQ(short_form(stage_tasks(shape, 0)),
            "F0.0 F0.1 F0.2 F0.3 B0.0 F0.4 B0.1 B0.2 B0.3 B0.4 ");
  EXPECT_EQ(short_form(stage_tasks(shape, 3)),
            "F3.0 B3.0 F3.1 B3.1 F3.2 B3.2 F3.3 B3.3 F3.4 B3.4 ");
}

TEST(Pipeline, PairsOfMicroBatches) {
  const auto order = [](int64_t micro_batches, int64_t group) {
    std::string text;
    for (const Task& task : stage_tasks({1, 1, micro_batches, group}, 0)) {
      text += fmt::format("{}{}{}:{} ", task.beside ? "+" : "",
                          task.kind == TaskKind::kForward ? "F" : "B", task.micro_batch, task.slot);
    }
    return text;
  };
  EXPECT_EQ(order(4, 4), "F0:0 +F1:1 B0:0 +F2:0 B1:1 +F3:1 B2:0 B3:1 ");
  EXPECT_EQ(order(4, 2), "F0:0 +F1:1 B0:0 B1:1 F2:0 +F3:1 B2:0 B3:1 ");
  EXPECT_EQ(order(3, 1), "F0:0 B0:0 F1:0 B1:0 F2:0 B2:0 ");
  EXPECT_THROW(stage_tasks({2, 1, 4, 4}, 0), Error);
}

// Figure 4 of the paper has p 4, v 2, m 8; this is the same for p 2, m 4.
TEST(Pipeline, TwoStagesInterleaved) {
  const PipelineShape shape{2, 2, 4};
  EXPECT_EQ(short_form(stage_tasks(shape, 0)),
            "F0.0 F0.1 F2.0 F2.1 F0.2 B2.0 F0.3 B2.1 F2.2 B0.0 F2.3 B0.1 B2.2 B2.3 B0.2 B0.3 ");
  EXPECT_EQ(short_form(stage_tasks(shape, 1)),
            "F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 F1.2 B1.0 F1.3 B1.1 F3.2 B3.2 F3.3 B3.3 B1.2 B1.3 ");
}

TEST(Pipeline, EveryTaskOnceInOrderOfMicroBatches) {
  for (const PipelineShape& shape : all_shapes()) {
    std::map<std::pair<TaskKind, int64_t>, int64_t> done;  // tasks done, by kind and chunk
    for (int64_t stage = 0; stage < shape.num_stages; ++stage) {
      for (const Task& task : stage_tasks(shape, stage)) {
        ASSERT_EQ(shape.stage_of(task.chunk), stage) << text(shape);
        ASSERT_EQ((done[{task.kind, task.chunk}]++), task.micro_batch) << text(shape);
      }
    }
    ASSERT_EQ(done.size(), static_cast<size_t>(2 * shape.num_chunks())) << text(shape);
    for (const auto& [key, count] : done) ASSERT_EQ(count, shape.micro_batches) << text(shape);
  }
}

TEST(Pipeline, LastChunksBackwardFollowsItsForward) {
  for (const PipelineShape& shape : all_shapes()) {
    const std::vector<Task> tasks = stage_tasks(shape, shape.num_stages - 1);
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].kind != TaskKind::kForward || tasks[i].chunk != shape.num_chunks() - 1) continue;
      ASSERT_LT(i + 1, tasks.size());
      Task backward = tasks[i];
      backward.kind = TaskKind::kBackward;
      ASSERT_EQ(tasks[i + 1], backward) << text(shape);
    }
  }
}

// Runs the lists with an ordered queue for each pair of stages and kind of tensor: a receive
// blocks, a send does not. Each received tensor must be the one that the task needs.
bool runs_to_its_end(const PipelineShape& shape, const Lists& lists) {
  std::map<std::tuple<int64_t, int64_t, TaskKind>, std::deque<std::pair<int64_t, int64_t>>> wires;
  std::vector<size_t> position(lists.size(), 0);
  const auto run_next = [&](int64_t stage) {
    const Task& task = lists[static_cast<size_t>(stage)][position[static_cast<size_t>(stage)]];
    const int64_t step = task.kind == TaskKind::kForward ? 1 : -1;
    const int64_t source = task.chunk - step, target = task.chunk + step;
    if (source >= 0 && source < shape.num_chunks()) {
      auto& wire = wires[{shape.stage_of(source), stage, task.kind}];
      if (wire.empty()) return false;
      EXPECT_EQ(wire.front(), std::pair(task.chunk, task.micro_batch)) << text(shape);
      wire.pop_front();
    }
    if (target >= 0 && target < shape.num_chunks())
      wires[{stage, shape.stage_of(target), task.kind}].emplace_back(target, task.micro_batch);
    ++position[static_cast<size_t>(stage)];
    return true;
  };
  bool moved = true;
  while (moved) {
    moved = false;
    for (size_t stage = 0; stage < lists.size(); ++stage) {
      while (position[stage] < lists[stage].size() && run_next(static_cast<int64_t>(stage)))
        moved = true;
    }
  }
  for (size_t stage = 0; stage < lists.size(); ++stage) {
    if (position[stage] < lists[stage].size()) return false;
  }
  return true;
}

TEST(Pipeline, NeverDeadlocksAndMessagesKeepTheirOrder) {
  for (const PipelineShape& shape : all_shapes())
    ASSERT_TRUE(runs_to_its_end(shape, lists_of(shape))) << text(shape);
}

TEST(Pipeline, ADeadlockWouldBeSeen) {
  const PipelineShape shape{2, 1, 2};
  Lists lists = lists_of(shape);
  std::swap(lists[0][0], lists[0][2]);  // a backward before its forward
  EXPECT_FALSE(runs_to_its_end(shape, lists));
}

TEST(Pipeline, SlotsAreTheLowestThatAreFree) {
  for (const PipelineShape& shape : all_shapes()) {
    for (int64_t stage = 0; stage < shape.num_stages; ++stage) {
      std::map<int64_t, std::map<int64_t, int64_t>> taken;  // chunk -> slot -> micro-batch
      for (const Task& task : stage_tasks(shape, stage)) {
        auto& slots = taken[task.chunk];
        if (task.kind == TaskKind::kBackward) {
          ASSERT_TRUE(slots.count(task.slot)) << text(shape);
          ASSERT_EQ(slots[task.slot], task.micro_batch) << text(shape);
          slots.erase(task.slot);
          continue;
        }
        int64_t lowest = 0;
        while (slots.count(lowest)) ++lowest;
        ASSERT_EQ(task.slot, lowest) << text(shape);
        slots[lowest] = task.micro_batch;
      }
    }
  }
}

TEST(Pipeline, InFlightBoundOf1F1B) {
  for (const PipelineShape& shape : all_shapes()) {
    if (shape.virtual_stages != 1) continue;
    for (int64_t stage = 0; stage < shape.num_stages; ++stage) {
      EXPECT_EQ(max_in_flight(stage_tasks(shape, stage), stage),
                std::min(shape.micro_batches, shape.num_stages - stage))
          << text(shape) << " stage " << stage;
    }
  }
}

TEST(Pipeline, InFlightBoundInterleaved) {
  for (const PipelineShape& shape : all_shapes()) {
    if (shape.virtual_stages == 1) continue;
    const int64_t p = shape.num_stages, v = shape.virtual_stages, m = shape.micro_batches;
    const int64_t groups = std::max<int64_t>(1, m / p);
    const int64_t group = (m + groups - 1) / groups;
    for (int64_t stage = 0; stage < p; ++stage) {
      int64_t in_flight = 0, most = 0;
      for (const Task& task : stage_tasks(shape, stage)) {
        in_flight += task.kind == TaskKind::kForward ? 1 : -1;
        most = std::max(most, in_flight);
      }
      EXPECT_EQ(most, std::min(m * v, (v - 1) * group + 2 * (p - 1 - stage) + 1)) << text(shape);
    }
  }
}

TEST(Pipeline, ShapesThatAreNone) {
  EXPECT_THROW(stage_tasks({0, 1, 1}, 0), Error);
  EXPECT_THROW(stage_tasks({1, 0, 1}, 0), Error);
  EXPECT_THROW(stage_tasks({1, 1, 0}, 0), Error);
  EXPECT_THROW(stage_tasks({2, 1, 1}, 2), Error);
  EXPECT_THROW(stage_tasks({2, 1, 1}, -1), Error);
}

std::vector<int64_t> layer_counts(int64_t num_layers, int64_t num_chunks) {
  std::vector<int64_t> counts;
  int64_t end = 0;
  for (const LayerRange& range : chunk_layers(num_layers, num_chunks)) {
    EXPECT_EQ(range.begin, end);
    counts.push_back(range.size());
    end = range.end;
  }
  EXPECT_EQ(end, num_layers);
  return counts;
}

TEST(ChunkLayers, RemaindersGoToTheMiddleFromTheEnd) {
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(layer_counts(32, 4), (Counts{8, 8, 8, 8}));
  EXPECT_EQ(layer_counts(33, 4), (Counts{8, 8, 9, 8}));
  EXPECT_EQ(layer_counts(34, 4), (Counts{8, 9, 9, 8}));
  EXPECT_EQ(layer_counts(35, 4), (Counts{9, 9, 9, 8}));
  EXPECT_EQ(layer_counts(3, 2), (Counts{2, 1}));
  EXPECT_EQ(layer_counts(5, 1), (Counts{5}));
  for (int64_t chunks = 1; chunks < 20; ++chunks) {
    for (int64_t layers = chunks; layers < 50; ++layers) {
      const Counts counts = layer_counts(layers, chunks);
      EXPECT_LE(*std::max_element(counts.begin(), counts.end()) - counts.back(), 1);
      EXPECT_EQ(counts.back(), layers / chunks);
    }
  }
}

TEST(ChunkLayers, FewerLayersThanChunksAreRefused) {
  try {
    chunk_layers(6, 8);
    FAIL() << "6 layers on 8 chunks";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("at most 6"), std::string::npos) << error.what();
  }
  EXPECT_THROW(chunk_layers(6, 0), Error);
}

TEST(SendBuffers, OneWhereTheGroupsAreEqual) {
  for (int64_t p = 1; p <= 6; ++p) {
    for (int64_t m = 1; m <= 16; ++m) {
      EXPECT_EQ(send_buffers({p, 1, m}), 1) << p << " " << m;
      for (int64_t v = 2; v <= 3 && m % p == 0; ++v) EXPECT_EQ(send_buffers({p, v, m}), 1);
    }
  }
  EXPECT_GT(send_buffers({3, 2, 8}), 1);
}

}  // namespace
}  // namespace skein
