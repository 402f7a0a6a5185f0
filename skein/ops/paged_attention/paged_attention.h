// Causal attention of some tokens of several sequences over keys and values in a cache of pages,
// which it first extends by these tokens' own: generation, and prompts in pieces.
//
// Formula       for token t of sequence s = sequence[t] at p = position[t], query head h and its
//               key-value head g = h / (heads / kv_heads):
//               slot(s, j) is place j % P of page pages[s, j / P]
//               keys[slot(s, p)] = k[t], values[slot(s, p)] = v[t]: all, before any attends
//               o[t, h] = sum over j <= p of w[j] values[slot(s, j), g],
//               w = softmax over j <= p of scale * q[t, h] . keys[slot(s, j), g]
// Shapes        q, o [T, heads * D]; k, v [T, kv_heads * D]; keys, values [N, kv_heads * D * P];
//               all f32 or all bf16. A row of the cache is a page: of keys [kv_heads][D][P], so
//               that neighbouring positions lie side by side, of values [kv_heads][P][D].
//               sequence, position i32[T]; pages i32[R, M]
// Attrs         heads, kv_heads (global), head_dim (D), page_size (P, a multiple of 16), scale > 0
// Padding       a token whose sequence is outside [0, R), whose position is outside [0, M * P), or
//               that has a page outside [0, N) at one of its positions 0 .. p. Nothing is stored
//               for it, and its o is 0: wrong tables make no kernel leave the cache. Two tokens of
//               a call must not have the same slot; it is undefined which of them it would hold
// Accumulation  fp32, in an order that depends on positions alone. The bits of o[t] follow from
//               q[t] and from keys and values of its sequence up to p; not from other tokens, T,
//               the choice of pages, threads, or how the sequence was cut into calls.
//               Score: x[j] = scale * (a chain of fused multiply-adds over d = 0 .. D - 1).
//               A block of 64 positions begins at a multiple of 64. Of its positions up to p:
//               m = max x[j], e[j] = exp(x[j] - m), never rounded to bf16;
//               a[d]: a chain of fused multiply-adds of e[j] and values[j, d] in order of j;
//               l[i], 0 <= i < 16: the sum of e[j] of j % 16 = i, in order of j.
//               Blocks are merged in order, beginning with m = -inf, a = 0, l = 0: with the larger
//               m', a' = fma(a of the block, exp(m of the block - m'), a * exp(m - m')), as is l'.
//               o = a * (1 / l), the l added in halves: i and i + 8, then 4, 2, 1. So the blocks of
//               a long context may be divided among threads, if they are merged in this order.
//               exp is that of ops/simd/simd-inl.h. GPUs have the bits of CPUs with fused
//               multiply-adds; others (sse4) differ in rounding
// Backward      none
// Cost          4 * D flops a position and query head, of a context of M * P / 2
// Placement     heads split: S1 S1 S1 S1 S1 R R R -> S1 S1 S1
//               fewer kv heads than ranks: S1 R R R R R R R -> S1 R R; each rank holds the one kv
//               head that its query heads read, so the global k has one head to a rank's copy
// Errors        kInvalid: shapes that do not match the attrs, a placement that splits a head, more
//               than one kv head on a rank under the second placement
// Source        Kwon et al., "PagedAttention", arXiv:2309.06180; Dao, arXiv:2307.08691
#pragma once

#include "skein/ir/graph.h"

namespace skein {

// (q, k, v, keys, values, sequence, position, pages) -> (o, keys', values'), the last two in place
extern const OpDef kPagedAttention;

struct PagedAttentionAttrs {
  int64_t heads = 0;     // global
  int64_t kv_heads = 0;  // global
  int64_t head_dim = 0;
  int64_t page_size = 0;
  double scale = 0;  // usually 1 / sqrt(head_dim)

  Attrs to_attrs() const;
};

struct PagedAttention {
  ValueId o = kNoValue;
  ValueId keys = kNoValue;
  ValueId values = kNoValue;
};

// Appends "<name>", "<name>.keys" and "<name>.values".
PagedAttention paged_attention(Graph& graph, ValueId q, ValueId k, ValueId v, ValueId keys,
                               ValueId values, ValueId sequence, ValueId position, ValueId pages,
                               const PagedAttentionAttrs& attrs, const std::string& name);

}  // namespace skein
