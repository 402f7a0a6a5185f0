// Internal to the CPU kernels of attention: the bound problem, and the block kernels that each
// instruction set provides.
//
// Work is divided into independent units by shape alone, so results do not depend on threads:
//   forward   (sequence, query head, kGroupBlocks blocks of kBlock queries)
//   backward  (sequence, kv head, a piece of the keys); dk and dv belong to the unit. With several
//             pieces each writes its own dq in fp32, and the pieces are added in order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "skein/base/text/units.h"
#include "skein/tensor/view.h"

namespace skein::attention_cpu {

constexpr int64_t kBlock = 64;       // queries, and keys, of one score block
constexpr int64_t kGroupBlocks = 4;  // query blocks that share a packed key block
constexpr int64_t kMinPieceKeys = 1024;
constexpr int64_t kMaxPieces = 4;

struct Problem {
  View q, k, v, o, lse;
  View grad, dq, dk, dv;  // backward only
  const int32_t* start = nullptr;
  int64_t num_sequences = 0, sequence_length = 0;
  int64_t part = 0, parts = 1;                    // which queries of each sequence this rank has
  int64_t heads = 0, kv_heads = 0, head_dim = 0;  // of this rank
  bool causal = true;
  float scale = 1;

  // Row length of packed panels, a multiple of the widest vector, and of a row of a tile.
  int64_t padded_dim() const { return round_up(head_dim, 32); }
  int64_t group_size() const { return heads / kv_heads; }
  // The queries of a sequence lie in spans of adjacent positions: the whole sequence, or two pieces
  // in zigzag order (ops/zigzag).
  int64_t num_queries() const { return sequence_length / parts; }
  int64_t num_spans() const { return parts > 1 ? 2 : 1; }
  int64_t span_length() const { return num_queries() / num_spans(); }
  int64_t span_blocks() const { return (span_length() + kBlock - 1) / kBlock; }
  int64_t span_begin(int64_t span) const {
    return (span == 0 ? part : 2 * parts - 1 - part) * span_length();
  }
  // The row of q, o, lse and their gradients that holds a position of one of the spans.
  int64_t query_row(int64_t sequence, int64_t position) const {
    const int64_t span = num_spans() == 1 || position < span_begin(1) ? 0 : 1;
    return sequence * num_queries() + span * span_length() + position - span_begin(span);
  }
  int64_t num_blocks() const { return num_spans() * span_blocks(); }  // of queries
  int64_t num_groups() const { return (num_blocks() + kGroupBlocks - 1) / kGroupBlocks; }
  int64_t piece_keys() const {
    const int64_t share = (sequence_length + kMaxPieces - 1) / kMaxPieces;
    return std::min(round_up(std::max(share, kMinPieceKeys), kBlock),
                    round_up(sequence_length, kBlock));
  }
  int64_t num_pieces() const { return (sequence_length + piece_keys() - 1) / piece_keys(); }
  // Offset of a piece's dq[num_queries, head_dim] of one head.
  int64_t dq_piece_offset(int64_t piece, int64_t sequence, int64_t head) const {
    return ((piece * num_sequences + sequence) * heads + head) * num_queries() * head_dim;
  }
};

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
};
inline bool intersects(Range a, Range b) { return a.begin < b.end && b.begin < a.end; }

// Positions of a sequence's block of queries, and of keys; and the keys that some query of a block
// may see.
inline Range query_range(const Problem& problem, int64_t block) {
  const int64_t span = block / problem.span_blocks(), begin = problem.span_begin(span);
  const int64_t first = begin + block % problem.span_blocks() * kBlock;
  return {first, std::min(first + kBlock, begin + problem.span_length())};
}
inline Range key_range(const Problem& problem, int64_t block) {
  return {block * kBlock, std::min((block + 1) * kBlock, problem.sequence_length)};
}
Range visible_keys(const Problem& problem, int64_t sequence, Range queries);
// Whether every query of a block sees every key of another.
bool all_visible(const Problem& problem, int64_t sequence, Range queries, Range keys);

// Block kernels. `scratch` belongs to the calling thread and is 64-byte aligned.
struct Kernels {
  int64_t (*forward_bytes)(const Problem&);
  // Before a thread's first unit of a run: what an earlier run left in `scratch` counts no longer.
  void (*begin_forward)(const Problem&, void* scratch);
  void (*forward)(const Problem&, int64_t sequence, int64_t head, int64_t group, void* scratch);
  int64_t (*backward_bytes)(const Problem&);
  // `dq_pieces`: null if there is only one piece, which then writes dq itself.
  void (*backward)(const Problem&, int64_t sequence, int64_t kv_head, int64_t piece, void* scratch,
                   float* dq_pieces);
  void (*sum_dq)(const Problem&, int64_t sequence, int64_t head, int64_t block,
                 const float* dq_pieces);
};

// What a call's state is.
struct ChosenKernels {
  const Kernels* kernels;
  int num_threads;  // that scratch memory is reserved for
};

// The products of bf16 inputs: widened to fp32, or as far as this machine has them bf16 dot
// products of vectors, or of tiles.
enum class Products : uint8_t { kFp32, kBf16Dot, kTiles };
Products best_products();
const Kernels& kernels_for(DType dtype, Products products);

// Allocates parts of a thread's scratch memory; with a null base it only counts bytes.
class Scratch {
 public:
  explicit Scratch(void* base) : base_(static_cast<std::byte*>(base)) {}
  template <typename T>
  T* take(int64_t count) {
    T* part = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += round_up(count * static_cast<int64_t>(sizeof(T)), 64);
    return part;
  }
  int64_t used() const { return used_; }

 private:
  std::byte* base_;
  int64_t used_ = 0;
};

}  // namespace skein::attention_cpu
