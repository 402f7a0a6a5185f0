// How a product on the CPU is divided: what is packed at a time, and where a long sum is cut. What
// bits depend on goes by the shapes alone, not by threads, caches or addresses.
#pragma once

#include <algorithm>
#include <cstdint>

#include "skein/ops/matmul/matmul_cpu.h"

namespace skein::matmul_cpu {

// One task computes at most kTaskRows x kTaskCols sums, which stay in L2 while the summed dim is
// traversed in depth blocks, whose panel of B stays in L1; or with MatmulKernel::keeps_a those of a
// tile's rows, in L1 themselves.
inline constexpr int64_t kTaskRows = kMatmulPanelRows;
inline constexpr int64_t kTaskCols = 256;
// Few steps read and write the sums often; more than these take A's rows of a task out of L2.
inline constexpr int64_t kMaxDepthBlockSteps = 256;
inline constexpr int64_t kMaxPanelBytes = 32 << 10;
inline int64_t depth_block_steps(const MatmulKernel& kernel) {
  return std::min(kMaxDepthBlockSteps, kMaxPanelBytes / (kernel.panel_cols * 4));
}
// A longer summed dim is cut into pieces of this many steps where both packed operands then fit.
inline constexpr int64_t kMaxPieceSteps = 1024;

// Where the sums of a piece go.
enum class Cut : uint8_t {
  kNone,        // one piece
  kAccumulate,  // each piece is added to C, which accumulates
  kKeepSums,    // unfinished sums stay in scratch memory, so that each is still one chain
};

struct Blocking {
  int64_t steps = 0;  // of all terms, or of a piece
  bool pack_a = false;
  Cut cut = Cut::kNone;
  bool stream = false;     // MatmulStore::stream
  int64_t band_rows = 0;   // rows that go through all pieces before the next ones
  int64_t block_cols = 0;  // columns of B packed at a time
  int64_t block_rows = 0;  // rows of A packed at a time
  int64_t packed_b_bytes = 0;
  int64_t packed_a_bytes = 0;
  int64_t sums_bytes = 0;
};

// The second-level cache of a core; 0 or less where the system does not say.
int64_t l2_bytes();
// Steps of a term, whole blocks.
int64_t steps_of(const MatmulTerm& term, const MatmulKernel& kernel);
Blocking choose_blocking(const Matmul& matmul, const MatmulKernel& kernel);

}  // namespace skein::matmul_cpu
