// Pipeline schedules as plain lists: the forwards and backwards that a stage runs, in order. Also
// the distribution of layers over the model's chunks.
//
// Chunks    0 ... p v - 1 in the order of the model, for p stages of v virtual stages; chunk c is
//           on stage c mod p. A task reads what the neighbouring chunk sent: the forward of chunk c
//           the activations of c - 1, its backward the gradient of c + 1.
// 1F1B      (v = 1) stage s runs p - s - 1 forwards, then alternates a forward and a backward, then
//           runs the remaining backwards.
// Interleaved  (v > 1) micro-batches are processed in groups; a stage takes a group through its
//              first chunk, then through its second, and so on, with 2 (p - s - 1) + (v - 1) n
//              forwards of warm-up for groups of n. A group has p micro-batches where p divides m,
//              and otherwise up to 2 p - 1: m is divided into floor(m / p) groups as evenly as
//              possible, the larger ones first. (One group of m where m < p.)
// Pairs     (p = 1) a micro-batch's forward runs together with the backward of the one before it,
//           but for the first of each virtual rank, whose sums are its own.
// Promises  Any shape runs to its end with sends that do not block and receives that do;
//           send_buffers() gives the buffers that this takes. A chunk runs its forwards in the
//           order of micro-batches, and so its backwards. On the last chunk, the backward of a
//           micro-batch directly follows its forward. Between two stages activations arrive in the
//           order in which they are needed, and so do gradients; between these two kinds there is
//           no order (with p = 2 they share a pair of ranks: use two channels).
// Cost      For equal tasks and m >= p, idle time is (p - 1) / (m v) of the work. In flight are at
//           most p - s micro-batches on stage s of 1F1B, and (v - 1) n + 2 (p - s - 1) + 1 pairs of
//           chunk and micro-batch when interleaved.
// Errors    Error{kUsage} where a count is below one, or the stage does not exist;
//           Error{kInternal} for pairs in a pipeline
// Source    Narayanan et al., arXiv 2104.04473, section 2.2; unequal groups: ours, similar to Llama
//           3, arXiv 2407.21783, section 3.3.2
#pragma once

#include <cstdint>
#include <vector>

namespace skein {

struct PipelineShape {
  int64_t num_stages = 1;      // p
  int64_t virtual_stages = 1;  // v: chunks per stage
  int64_t micro_batches = 1;   // m: per step
  int64_t pair_group = 0;      // micro-batches of a virtual rank, where they run in pairs; 0: alone

  int64_t num_chunks() const { return num_stages * virtual_stages; }
  int64_t stage_of(int64_t chunk) const { return chunk % num_stages; }
};

enum class TaskKind { kForward, kBackward };

struct Task {
  TaskKind kind = TaskKind::kForward;
  int64_t chunk = 0;
  int64_t micro_batch = 0;
  // The slot in which the chunk keeps the micro-batch's activations from forward to backward: the
  // lowest that is free when the forward starts.
  int64_t slot = 0;
  bool beside = false;  // a forward that runs together with the backward that follows it

  bool operator==(const Task&) const = default;
};

// The tasks of `stage` in a step, in order: 2 m v of them.
std::vector<Task> stage_tasks(const PipelineShape& shape, int64_t stage);

// The number of send buffers that a chunk needs per direction for the schedule to finish without
// deadlock, if a send blocks while all buffers are in use. 1 except for interleaved schedules with
// unequal groups. Cost: a few passes over all tasks.
int64_t send_buffers(const PipelineShape& shape);

// The number of activation slots that `chunk` needs; 0 where the tasks never run it.
int64_t max_in_flight(const std::vector<Task>& tasks, int64_t chunk);

// Half-open range of layers.
struct LayerRange {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const LayerRange&) const = default;
};

// The layers of each chunk: floor(num_layers / num_chunks). The remainder goes, one layer each, to
// the last chunk but one, the one before it, and so on. The last chunk gets none since it also has
// the head and the loss; the first comes last since it has the embedding, and early stages store
// more micro-batches.
// Errors  Error{kUsage} where there are fewer layers than chunks
std::vector<LayerRange> chunk_layers(int64_t num_layers, int64_t num_chunks);

}  // namespace skein
