// The host memory of a training process outside the arenas: a conservative estimate
// (tests/plan_test.cc compares it with real runs).
//
//   program    binary, libraries, allocator, segments of a parameter while weights are drawn or
//              read: 80 MB; with a GPU, its driver and pinned rings: 1 GB
//   threads    512 KiB each: the part of its stack and of the allocator's arena that a thread
//              touches
//   tokenizer  1 KiB per token of the vocabulary
//   text       for each of this rank's lanes, the tokens of one segment of text; the same again for
//              validation
//   exchange   128 KiB of kernel buffers for a peer that it computes with, and 16 KiB for any other
//              rank
//   store      150 MB where checkpoints go to a bucket: parts on their way, and AWS's library
//   packing    without a GPU, for each group that sums or gathers gradients: six times a gradient
//              bucket (skein/comm/gloo/packed_parts.h), or the gradients of the whole model where
//              that is less
#pragma once

#include <cstdint>

#include "skein/compile/step_programs.h"
#include "skein/config/config.h"

namespace skein {

// `threads`: the number of compute threads.
int64_t process_bytes(const Config& config, const StepSpec& spec, int threads, bool has_gpu);

// Address space that a process maps without touching it, for limits that count it (ulimit -v):
// libraries, stacks, the allocator's arenas.
int64_t process_address_bytes(int threads);

}  // namespace skein
