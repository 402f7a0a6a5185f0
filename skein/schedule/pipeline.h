// Pipeline schedules as plain lists: which forward and which backward a stage runs, in which order.
// Also how the layers are dealt to the chunks of the model.
//
// Chunks    0 … p v - 1 in the order of the model, for p stages of v virtual stages; chunk c lives
//           on stage c mod p. A task reads what the neighbouring chunk sent: the forward of chunk c
//           the boundary tensor of c - 1, its backward the gradient of c + 1.
// 1F1B      (v = 1) stage s runs p - s - 1 forwards, then a forward and a backward in turn, then
//           the backwards that are left.
// Interleaved  (v > 1) micro-batches go through in groups; a stage takes a group through its first
//           chunk, then through its second, and so on; 2 (p - s - 1) + (v - 1) n forwards of
//           warm-up for groups of n. A group has p micro-batches where p divides m, and otherwise
//           up to 2 p - 1: m is dealt to floor(m / p) groups as evenly as can be, the larger ones
//           first. (One group of m where m < p.)
// Promises  Any shape runs to its end with sends that do not block and receives that do;
//           send_buffers says how much room that takes. Forwards of a chunk run in the order of
//           micro-batches, and so do backwards. On the last chunk, the backward of a micro-batch
//           directly follows its forward. Between two stages the boundary tensors arrive in the
//           order in which they are needed, and so do the gradients; between the two kinds there is
//           no order (with p = 2 they share a pair of ranks: use two channels).
// Cost      For equal tasks and m >= p, idle time is (p - 1) / (m v) of the work. In flight are at
//           most p - s micro-batches on stage s of 1F1B, and (v - 1) n + 2 (p - s - 1) + 1 pairs of
//           chunk and micro-batch interleaved.
// Errors    Error{kUsage} where a count is below one, or a stage is not one of the shape's
// Source    Narayanan et al., arXiv 2104.04473, section 2.2; unequal groups: ours, in the spirit of
//           Llama 3, arXiv 2407.21783, section 3.3.2
#pragma once

#include <cstdint>
#include <vector>

namespace skein {

struct PipelineShape {
  int64_t num_stages = 1;      // p
  int64_t virtual_stages = 1;  // v: chunks a stage
  int64_t micro_batches = 1;   // m: a step

  int64_t num_chunks() const { return num_stages * virtual_stages; }
  int64_t stage_of(int64_t chunk) const { return chunk % num_stages; }
};

enum class TaskKind { kForward, kBackward };

struct Task {
  TaskKind kind = TaskKind::kForward;
  int64_t chunk = 0;
  int64_t micro_batch = 0;
  // Where the chunk keeps the micro-batch's activations from forward to backward: the lowest number
  // that is free when the forward starts.
  int64_t slot = 0;

  bool operator==(const Task&) const = default;
};

// What `stage` runs in a step, in order: 2 m v tasks.
std::vector<Task> stage_tasks(const PipelineShape& shape, int64_t stage);

// How many boundary tensors a chunk must be able to have under way in one direction, so that the
// stages' lists run to their end although a send waits while all its buffers are: 1 but for
// interleaved schedules of unequal groups. Cost  a few passes over all tasks
int64_t send_buffers(const PipelineShape& shape);

// How many activation slots `chunk` needs; 0 where the tasks never run it.
int64_t max_in_flight(const std::vector<Task>& tasks, int64_t chunk);

// Half-open.
struct LayerRange {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const LayerRange&) const = default;
};

// The layers of each chunk. Each has floor(num_layers / num_chunks); the remainder goes, a layer
// each, to the last chunk but one, the one before it, and so on to the first: the last chunk also
// has the head and the loss, the first the embedding, and early stages keep more micro-batches.
// Errors  Error{kUsage} where there are fewer layers than chunks
std::vector<LayerRange> chunk_layers(int64_t num_layers, int64_t num_chunks);

}  // namespace skein
