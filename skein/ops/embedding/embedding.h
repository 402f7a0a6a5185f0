// Rows of a table, picked by token.
//
// Formula       x[t] = table[tokens[t]]; a zero row if the token is outside the table
//               (the source of the tokens checks them; this only keeps reads inside the table)
// Derivative    sum[v] += sum over t with tokens[t] = v of dx[t], tokens in order
// Shapes        tokens [T] i32; table [V, D] f32 or bf16; x [T, D] of the table's dtype;
//               sum [V, D] f32
// Accumulation  fp32
// Backward      saves the tokens
// Cost          memory only
// Placement     tokens S0, table Replicated -> x S0, sum Partial; table S1 -> x S1. A table S0,
//               split over the vocabulary, gives x Partial (a rank has zero rows for tokens of
//               other ranks) and sum S0: a rank adds only to its own rows, which begin at its attr
//               `first_row`
#pragma once

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kEmbedding;    // (tokens, table) -> x
extern const OpDef kEmbeddingDw;  // (tokens, dx, sum) -> sum'

ValueId embedding(Graph& graph, ValueId tokens, ValueId table, const std::string& name);
ValueId embedding_dw(Graph& graph, ValueId tokens, ValueId dx, ValueId sum);

}  // namespace skein
