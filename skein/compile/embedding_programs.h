// Programs that read whole texts and give the last hidden states of their tokens.
//
// Program   "embed.<S>" reads rows(S) texts of at most S tokens, a row each. Inputs tokens,
//           positions and attention_start, i32[rows(S) * S]; output "final" [rows(S) * S, hidden],
//           the output of the last norm. All programs share them, and each uses their first rows
// Padding   behind a text is a document of its own, which the text does not attend to
// Bits      on CPUs, what a text gets depends on its own tokens alone: whatever S, whatever stands
//           in the other rows
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/ir/program.h"
#include "skein/model/decoder.h"

namespace skein {

struct EmbeddingLayout {
  int64_t max_tokens = 2048;  // of a program; more where one text has more
  int64_t max_positions = 0;  // of a text

  // S of the programs, ascending: of a text's row a sixteenth is padding at most, or three tokens.
  std::vector<int64_t> lengths() const;
  int64_t rows(int64_t length) const;
};

std::string embed_program(int64_t length);

ProgramSet embedding_programs(const DecoderConfig& model, DType compute_dtype,
                              const EmbeddingLayout& layout, const KernelTable& kernels);

}  // namespace skein
