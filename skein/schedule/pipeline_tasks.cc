#include "skein/schedule/pipeline_tasks.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

#include "skein/base/error.h"

namespace skein {
namespace {

void check_shape(const PipelineShape& shape, int64_t stage) {
  if (shape.num_stages < 1 || shape.virtual_stages < 1 || shape.micro_batches < 1) {
    fail(ErrorCode::kUsage,
         "pipeline: {} stages, {} virtual stages and {} micro-batches: each must be at least 1",
         shape.num_stages, shape.virtual_stages, shape.micro_batches);
  }
  if (stage < 0 || stage >= shape.num_stages) {
    fail(ErrorCode::kUsage, "pipeline: there is no stage {}: they are 0 to {}", stage,
         shape.num_stages - 1);
  }
  if (shape.pair_group > 0 && shape.num_chunks() > 1) {
    fail(ErrorCode::kInternal, "pipeline: pairs of micro-batches in {} chunks", shape.num_chunks());
  }
}

// The sizes of the groups of micro-batches that pass through a stage's chunks together.
std::vector<int64_t> group_sizes(const PipelineShape& shape) {
  const int64_t m = shape.micro_batches;
  if (shape.virtual_stages == 1) return std::vector<int64_t>(static_cast<size_t>(m), 1);
  const int64_t num_groups = std::max<int64_t>(1, m / shape.num_stages);
  std::vector<int64_t> sizes(static_cast<size_t>(num_groups), m / num_groups);
  std::fill_n(sizes.begin(), m % num_groups, m / num_groups + 1);
  return sizes;
}

// The forwards of a stage, or its backwards, in order.
std::vector<Task> tasks_of_kind(const PipelineShape& shape, int64_t stage, TaskKind kind) {
  std::vector<Task> tasks;
  tasks.reserve(static_cast<size_t>(shape.micro_batches * shape.virtual_stages));
  int64_t first = 0;
  for (const int64_t size : group_sizes(shape)) {
    for (int64_t pass = 0; pass < shape.virtual_stages; ++pass) {
      const int64_t level = kind == TaskKind::kForward ? pass : shape.virtual_stages - 1 - pass;
      for (int64_t i = first; i < first + size; ++i)
        tasks.push_back({kind, level * shape.num_stages + stage, i});
    }
    first += size;
  }
  return tasks;
}

// For each backward of the last stage, the number of forwards before it. A backward of the last
// chunk directly follows its forward; each other backward of a group follows a forward of the next
// group through the earlier chunks.
std::vector<int64_t> forwards_before_backwards(const PipelineShape& shape) {
  const int64_t v = shape.virtual_stages;
  const std::vector<int64_t> sizes = group_sizes(shape);
  std::vector<int64_t> before;
  before.reserve(static_cast<size_t>(shape.micro_batches * v));
  int64_t past = 0;  // forwards of earlier groups
  for (size_t g = 0; g < sizes.size(); ++g) {
    const int64_t next_size = g + 1 < sizes.size() ? sizes[g + 1] : 0;
    for (int64_t i = 1; i <= sizes[g]; ++i) before.push_back(past + (v - 1) * sizes[g] + i);
    past += v * sizes[g];
    for (int64_t i = 1; i <= (v - 1) * sizes[g]; ++i)
      before.push_back(past + std::min(i, (v - 1) * next_size));
  }
  return before;
}

// Assigns the lowest free slot of a chunk.
class Slots {
 public:
  int64_t take(int64_t chunk, int64_t micro_batch) {
    Chunk& slots = chunks_[chunk];
    int64_t slot = slots.num_made;
    if (slots.free.empty()) {
      ++slots.num_made;
    } else {
      slot = slots.free.top();
      slots.free.pop();
    }
    slots.taken[micro_batch] = slot;
    return slot;
  }
  int64_t release(int64_t chunk, int64_t micro_batch) {
    Chunk& slots = chunks_[chunk];
    const auto taken = slots.taken.find(micro_batch);
    if (taken == slots.taken.end()) {
      fail(ErrorCode::kInternal,
           "pipeline: backward of chunk {}, micro-batch {} before its forward", chunk, micro_batch);
    }
    const int64_t slot = taken->second;
    slots.taken.erase(taken);
    slots.free.push(slot);
    return slot;
  }

 private:
  struct Chunk {
    int64_t num_made = 0;
    std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> free;
    std::map<int64_t, int64_t> taken;  // by micro-batch
  };
  std::map<int64_t, Chunk> chunks_;
};

}  // namespace

std::vector<Task> stage_tasks(const PipelineShape& shape, int64_t stage) {
  check_shape(shape, stage);
  const std::vector<Task> forwards = tasks_of_kind(shape, stage, TaskKind::kForward);
  const std::vector<Task> backwards = tasks_of_kind(shape, stage, TaskKind::kBackward);
  const std::vector<int64_t> before = forwards_before_backwards(shape);
  // Each earlier stage is one forward further ahead, which the next stage needs; with interleaving
  // two, which hides the transfers in both directions.
  const int64_t ahead = (shape.num_stages - 1 - stage) * (shape.virtual_stages == 1 ? 1 : 2);

  std::vector<Task> tasks;
  tasks.reserve(2 * forwards.size());
  Slots slots;
  size_t next = 0;
  for (size_t j = 0; j < backwards.size(); ++j) {
    const auto due = static_cast<size_t>(before[j] + ahead);
    const bool in_pair = shape.pair_group > 0 && static_cast<int64_t>(j + 1) % shape.pair_group > 0;
    const size_t goal = std::min(forwards.size(), due + (in_pair ? 1 : 0));
    for (; next < goal; ++next) {
      Task task = forwards[next];
      task.slot = slots.take(task.chunk, task.micro_batch);
      task.beside = next >= due;
      tasks.push_back(task);
    }
    Task task = backwards[j];
    task.slot = slots.release(task.chunk, task.micro_batch);
    tasks.push_back(task);
  }
  return tasks;
}

namespace {

// Simulates the lists of all stages with blocking receives, and with sends that block while
// `capacity` earlier ones of the same chunk and direction have not been received.
class CapacityRun {
 public:
  CapacityRun(const PipelineShape& shape, int64_t capacity)
      : shape_(shape),
        capacity_(capacity),
        position_(shape.num_stages),
        received_(shape.num_stages) {
    for (int64_t stage = 0; stage < shape.num_stages; ++stage) {
      tasks_.push_back(stage_tasks(shape, stage));
    }
  }

  bool ends() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int64_t stage = 0; stage < shape_.num_stages; ++stage) {
        while (position_[stage] < tasks_[stage].size() && step(stage)) moved = true;
      }
    }
    for (int64_t stage = 0; stage < shape_.num_stages; ++stage) {
      if (position_[stage] < tasks_[stage].size()) return false;
    }
    return true;
  }

 private:
  using Channel = std::pair<TaskKind, int64_t>;  // the direction and the sending chunk

  bool step(int64_t stage) {
    const Task& task = tasks_[stage][position_[stage]];
    const bool forward = task.kind == TaskKind::kForward;
    const int64_t last = shape_.num_chunks() - 1;
    const int64_t source = forward ? task.chunk - 1 : task.chunk + 1;
    bool moved = false;
    if (!received_[stage]) {
      if (source >= 0 && source <= last) {
        int64_t& under_way = under_way_[{task.kind, source}];
        if (under_way == 0) return false;
        --under_way;
      }
      received_[stage] = moved = true;
    }
    if (task.chunk != (forward ? last : 0)) {
      int64_t& under_way = under_way_[{task.kind, task.chunk}];
      if (under_way == capacity_) return moved;
      ++under_way;
    }
    received_[stage] = false;
    ++position_[stage];
    return true;
  }

  const PipelineShape& shape_;
  const int64_t capacity_;
  std::vector<std::vector<Task>> tasks_;
  std::vector<size_t> position_;
  std::vector<bool> received_;  // by stage: its next task has its input
  std::map<Channel, int64_t> under_way_;
};

}  // namespace

int64_t send_buffers(const PipelineShape& shape) {
  int64_t capacity = 1;
  while (!CapacityRun(shape, capacity).ends()) ++capacity;
  return capacity;
}

int64_t max_in_flight(const std::vector<Task>& tasks, int64_t chunk) {
  int64_t slots = 0;
  for (const Task& task : tasks) {
    if (task.chunk == chunk) slots = std::max(slots, task.slot + 1);
  }
  return slots;
}

std::vector<LayerRange> chunk_layers(int64_t num_layers, int64_t num_chunks) {
  if (num_chunks < 1) fail(ErrorCode::kUsage, "pipeline: {} chunks: at least 1", num_chunks);
  if (num_layers < num_chunks) {
    fail(ErrorCode::kUsage,
         "pipeline: {} layers cannot be dealt to {} chunks, since each needs one; choose "
         "parallel.pipeline times parallel.virtual_stages at most {}",
         num_layers, num_chunks, std::max<int64_t>(1, num_layers));
  }
  const int64_t remainder = num_layers % num_chunks;
  std::vector<LayerRange> ranges;
  int64_t begin = 0;
  for (int64_t chunk = 0; chunk < num_chunks; ++chunk) {
    const bool one_more = chunk < num_chunks - 1 && chunk >= num_chunks - 1 - remainder;
    const int64_t end = begin + num_layers / num_chunks + (one_more ? 1 : 0);
    ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

}  // namespace skein
