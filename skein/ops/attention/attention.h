// Flash attention over packed documents, causal or not, with grouped key-value heads.
//
// Formula       rows are sequences * S tokens; i and j are positions of one sequence
//               visible(i, j) = start[i] == start[j] and (not causal or j <= i)
//               p[i, j] = softmax over visible j of scale * q[i] . k[j]
//               o[i] = sum_j p[i, j] v[j];   lse[i] = log sum_j exp(scale * q[i] . k[j])
//               query head h reads key-value head h / (heads / kv_heads)
// Shapes        q, o [T, heads * head_dim], k, v [T, kv_heads * head_dim], f32 or bf16;
//               attention_start i32[T]: the index within its sequence (0 .. S-1) of the first
//               position of the token's document, never decreasing along a sequence and never
//               beyond the token itself (guaranteed by the data loader; kernels stay in bounds with
//               any values); lse f32[T, heads]
// Attrs         heads, kv_heads (global), head_dim, sequence_length (S), causal, scale (> 0);
//               documents: false where every sequence is one document (attention_start is 0
//               everywhere, which a kernel may then rely on); absent, there may be several.
//               repeatable: false where backward may add in any order; absent, it may not
// Accumulation  fp32, softmax in fp32. With bf16 inputs a kernel may round p, and ds in backward,
//               to bf16 before the products that read them.
// Backward      attention_backward, from q, k, v, o, lse; it recomputes p:
//               delta[i] = do[i] . o[i];  ds[i, j] = p[i, j] (do[i] . v[j] - delta[i])
//               dv[j] = sum_i p[i, j] do[i];  dk[j] = scale * sum_i ds[i, j] q[i];
//               dq[i] = scale * sum_j ds[i, j] k[j];  dk, dv sum over the query heads of a group
// Cost          4 * head_dim flops a pair (i, j) and head, backward 10; S (S + 1) / 2 pairs if
//               causal, S * S otherwise (documents only reduce it). No S x S matrix in memory:
//               blocks without a visible pair are never computed.
// Placement     tokens S0, whole sequences to a rank; heads S1. On an axis that shards q but not k
//               and v (kv replication) each rank must hold one kv head; dk and dv are P there.
//               Context parallelism: q S0, and k, v and start Replicated, over axes of n ranks
//               inside those that split whole sequences. q, o and lse have their rows in zigzag
//               order (ops/zigzag), part r of n on the r-th rank; k, v and start have whole
//               sequences in natural order; dk and dv are P. Given k and v S0 like q, and start
//               Replicated, attention() and `expand` gather and reorder them first. Every rank has
//               the same number of pairs if sequences have the same documents; its attrs `part` and
//               `parts` say which rows of a sequence it holds
// Errors        kInvalid: shapes that do not match the attrs, a placement that splits a head or a
//               sequence, a sequence that 2n does not divide
// Source        Dao, "FlashAttention-2", arXiv:2307.08691
#pragma once

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kAttention;
extern const OpDef kAttentionBackward;

struct AttentionAttrs {
  int64_t heads = 0;     // global
  int64_t kv_heads = 0;  // global
  int64_t head_dim = 0;
  int64_t sequence_length = 0;
  bool causal = true;
  bool documents = true;   // a sequence may have several; false: attention_start is 0 everywhere
  bool repeatable = true;  // false: backward may add in any order
  double scale = 0;        // usually 1 / sqrt(head_dim)
};

struct AttentionResult {
  ValueId o = kNoValue;
  ValueId lse = kNoValue;
};

// Appends "<name>" and "<name>_lse"; if the tokens of a sequence are split, first the gathers of k
// and v.
AttentionResult attention(Graph& graph, ValueId q, ValueId k, ValueId v, ValueId attention_start,
                          const AttentionAttrs& attrs, const std::string& name);

struct AttentionGrads {
  ValueId dq = kNoValue;
  ValueId dk = kNoValue;
  ValueId dv = kNoValue;
};

// `attrs` are those of the forward node. `names`: of dq, dk and dv.
AttentionGrads attention_backward(Graph& graph, ValueId grad, ValueId q, ValueId k, ValueId v,
                                  const AttentionResult& forward, ValueId attention_start,
                                  const Attrs& attrs, const std::vector<std::string>& names);

}  // namespace skein
