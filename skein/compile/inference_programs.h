// Programs that only run a model forward, one sequence at a time on one rank.
#pragma once

#include "skein/ir/program.h"
#include "skein/model/decoder.h"

namespace skein {

// Scoring: program `forward` with inputs tokens, labels, positions and attention_start, and output
// `token_loss`. Generation: instead the output `logits` of row `last_row`.
ProgramSet scoring_programs(const DecoderConfig& model, DType compute_dtype,
                            int64_t sequence_length, const KernelTable& kernels);
ProgramSet generation_programs(const DecoderConfig& model, DType compute_dtype,
                               int64_t sequence_length, const KernelTable& kernels);

}  // namespace skein
