// Programs that only run a model forward: one sequence at a time on one rank, or as a step does.
#pragma once

#include "skein/compile/step_programs.h"
#include "skein/ir/program.h"
#include "skein/model/decoder.h"

namespace skein {

// Scoring: program `forward` with inputs tokens, labels, positions and attention_start, and output
// `token_loss`. Generation: instead the output `logits` of row `last_row`.
ProgramSet scoring_programs(const DecoderConfig& model, DType compute_dtype,
                            int64_t sequence_length, const KernelTable& kernels);
ProgramSet generation_programs(const DecoderConfig& model, DType compute_dtype,
                               int64_t sequence_length, const KernelTable& kernels);

// The programs `evaluate` of training (plan_training) without the others, and without what only
// these hold in memory.
ProgramSet evaluation_programs(const StepSpec& spec, const KernelTable& kernels);

}  // namespace skein
