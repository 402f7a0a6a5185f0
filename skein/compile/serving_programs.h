// Programs that read texts piece by piece and keep their keys and values in a cache of pages
// (ops/paged_attention): for generation, scoring and serving.
//
// Program   "read.<T>" reads up to T tokens of any texts and gives the logits of up to
//           ServingLayout::head_rows(T) of them. Inputs and outputs: decoder_names, of kServe; all
//           programs share them, and each uses their first rows
// Memory    arenas of one ProgramSet: weights (packed where the device's products read packed
//           weights), the cache, inputs, and the workspace of the largest program
// Ranks     of a mesh (tensor_mesh) have their heads and columns of the layers' weights, their part
//           of the cache, and the embedding and the head whole: they add up twice a layer
// Bits      what a token gets depends on its own text alone, whatever program, rows and pages it is
//           given, on CPUs. A GPU's library may choose another algorithm for another T
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/ir/program.h"
#include "skein/model/decoder.h"

namespace skein {

struct ServingLayout {
  int64_t max_tokens = 512;     // that the largest program reads
  int64_t max_head_rows = 128;  // whose logits it gives
  int64_t page_size = 16;       // positions: little is read twice where texts part
  int64_t num_pages = 0;
  int64_t max_sequences = 64;  // under way at once
  int64_t max_positions = 0;   // of a text
  Mesh mesh = {};              // of several ranks; else empty

  int64_t head_rows(int64_t num_tokens) const;
  int64_t pages_of(int64_t positions) const;  // that so many positions take
  // How many tokens programs read, ascending; the steps waste at most a third of one.
  std::vector<int64_t> token_counts() const;
  // The bytes of a page in all layers, keys and values, on a rank.
  int64_t page_bytes(const DecoderConfig& model, DType dtype) const;
};

std::string read_program(int64_t num_tokens);

ProgramSet serving_programs(const DecoderConfig& model, DType compute_dtype,
                            const ServingLayout& layout, const KernelTable& kernels,
                            int64_t rank = 0);

}  // namespace skein
