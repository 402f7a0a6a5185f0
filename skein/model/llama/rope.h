// The frequencies of rotary position embeddings, with `linear` and `llama3` scaling.
//
// Formula  f[i] = 1 / theta^(2i / head_dim), i < head_dim / 2; the angle of pair i at position p is
//          p * f[i]. Pair i is dims (i, i + head_dim/2) of a head: halves, as Hugging Face stores.
//   linear f[i] / factor.
//   llama3 with wavelength w = 2 pi / f and the length L of original training positions:
//          f where w < L / high_freq_factor, f / factor where w > L / low_freq_factor, between them
//          (1 - s) f / factor + s f with s = (L / w - low) / (high - low).
// Rounding fp32, operation for operation as transformers computes it on a CPU, so that the result
//          has the same bits wherever the two power functions round alike (this one is correctly
//          rounded; the other errs by up to 1 unit in the last place, in about 1 % of values).
// Source   transformers, modeling_rope_utils.py; arXiv:2104.09864; Llama 3.1 reference code.
#pragma once

#include <vector>

#include "skein/model/llama/config.h"

namespace skein {

std::vector<float> rope_inverse_frequencies(const LlamaConfig& config);  // [head_dim / 2]

}  // namespace skein
