// A training step of a tiny model, for tests of what is compiled for it.
#pragma once

#include "skein/compile/step_programs.h"

namespace skein {

inline StepSpec tiny_spec(const Mesh& mesh, int64_t micro_batches) {
  StepSpec spec;
  spec.layout.mesh = mesh;
  spec.layout.reduction_width = mesh.size("dp");
  spec.model = parse_decoder({{"hidden_size", 32},
                              {"num_hidden_layers", 2},
                              {"num_attention_heads", 4},
                              {"num_key_value_heads", 2},
                              {"intermediate_size", 48},
                              {"vocab_size", 96}},
                             "tiny");
  spec.micro_batches = micro_batches;
  spec.sequence_length = 32;
  spec.update.precision = Precision::kBF16Stochastic;
  return spec;
}

}  // namespace skein
