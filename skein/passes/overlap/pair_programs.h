// Has the forward of a micro-batch run in one program with the backward of the one before it, so
// that while one of them waits for other ranks, the other one computes.
//
// Programs  "pair" of forward and backward; "pair.first" of forward and backward.first. A run of
//           one in slot s is the backward of the micro-batch in s and the forward of the one in the
//           other slot (Instruction::ahead)
// Order     Each of the two keeps its own. Whichever may go on does, on paper: collectives take
//           nominal seconds, one behind the other, and a wait whose collective is not over holds
//           its half up; of two halves that may go on, that of which a smaller part is done. The
//           same on every rank, whatever the hardware
// Numbers   The same bits: of what outlives a program each writes what the other does not touch,
//           which check_memory sees (tied embeddings have a sum for each of their two uses)
// Memory    Forward and backward share no workspace, and two micro-batches' activations are kept
//           (plan_memory)
// Source    "Overlapped forward and backward": DeepSeek-V3, arXiv:2412.19437, section 3.2.1
#pragma once

#include "skein/ir/program.h"

namespace skein {

inline constexpr int64_t kPairSlots = 2;

// For programs of one chunk, planned for pairs.
void pair_programs(ProgramSet& programs);

}  // namespace skein
