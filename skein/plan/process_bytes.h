// What a training process takes of the host's memory beside its plan: an estimate, on the safe side
// (tests/plan_test.cc holds it against what runs really take).
//
//   program    binary, libraries, allocator, pieces of a parameter while weights are drawn or read:
//              80 MB; with a GPU, its driver and pinned rings: 1 GB
//   threads    512 KiB each: what of a stack and of the allocator's arena a thread touches
//   tokenizer  1 KiB a token of the vocabulary
//   text       of each of this rank's lanes the tokens of one segment; as much again to validate
//   exchange   128 KiB for a peer that it computes with, in buffers of the kernel, and 16 KiB for
//              any other rank
//   packing    without a GPU, for each group that sums or gathers gradients: six times a bucket of
//              them (skein/comm/gloo/packed_parts.h), or the gradients of the whole model where
//              that is less
#pragma once

#include <cstdint>

#include "skein/compile/step_programs.h"
#include "skein/config/config.h"

namespace skein {

// `threads` that compute.
int64_t process_bytes(const Config& config, const StepSpec& spec, int threads, bool has_gpu);

// Addresses that a process maps and does not touch, for limits that count them: libraries, stacks,
// the allocator's arenas.
int64_t process_address_bytes(int threads);

}  // namespace skein
