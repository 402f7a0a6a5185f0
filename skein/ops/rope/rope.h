// Rotary position embedding of q and k, in place.
//
// Formula       with (x1, x2) = dims (i, i + head_dim/2) of a head at position p, and
//               c = rope_table[p, i], s = rope_table[p, head_dim/2 + i]:
//               x1' = x1 c - x2 s;   x2' = x2 c + x1 s.   `inverse`: s is negated
//               (halves, as Hugging Face's rotate_half; not Meta's interleaved pairs)
// Shapes        q [T, heads * head_dim], k [T, kv_heads * head_dim], f32 or bf16;
//               positions i32[T]; rope_table f32[P, head_dim], cosines then sines. The data loader
//               guarantees positions in [0, P); a kernel clamps them, and so stays in bounds.
// Attrs         head_dim (even), inverse
// Accumulation  fp32 without fused multiply-add, rounded once: in f32 the bits of Hugging Face's
// Backward      rope with `inverse` toggled on (dq, dk); saves positions and rope_table
// Cost          3 flops an element; reads and writes q and k
// Placement     tokens S0, with positions; heads S1, k also R under q S1 (kv replication)
// Errors        kInvalid: an odd head_dim, shapes that do not match, a placement that splits a head
// Source        Su et al., arXiv:2104.09864; transformers, modeling_llama.py, apply_rotary_pos_emb
#pragma once

#include <utility>

#include "skein/ir/graph.h"

namespace skein {

// With {largest} one more output, of both (skein/ops/largest.h).
extern const OpDef kRope;

// Returns the rotated q and k.
std::pair<ValueId, ValueId> rope(Graph& graph, ValueId q, ValueId k, ValueId positions,
                                 ValueId rope_table, int64_t head_dim, const std::string& q_name,
                                 const std::string& k_name, bool inverse = false);

}  // namespace skein
