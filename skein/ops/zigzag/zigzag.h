// Reorders rows into the order in which context parallelism divides a sequence, and back.
//
// With causal attention the last tokens of a sequence attend to the most keys. So that each of n
// ranks gets equal work, every sequence of S tokens is cut into 2n pieces, and rank r holds pieces
// r and 2n - 1 - r.
//
// Formula       natural order: sequence by sequence. Zigzag order: rank by rank; within a rank,
//               sequence by sequence; within a sequence, its two pieces. For each rank of the axes
//               that split the rows, among its own rows:
//               zigzag   y[i] = x[zigzag_row(i)]      (inverse: y[zigzag_row(i)] = x[i])
// Shapes        x, y [T, features] or [T], any dtype; T a multiple of S, S of 2n
// Attrs         sequence_length (S), parts (n), inverse
// Derivative    the other direction
// Backward      saves nothing; selective recomputation runs it again
// Cost          memory only
// Placement     S0 -> S0, whole sequences to a rank; S1 -> S1; P -> P
// Errors        kInvalid: rows that are not whole sequences, a sequence that 2n does not divide
// Source        Brandon et al., "Striped Attention", arXiv:2311.09431, on the imbalance; the order
//               is that of Dubey et al., "The Llama 3 Herd of Models", arXiv:2407.21783, 3.3.2
#pragma once

#include "skein/ir/graph.h"

namespace skein {

extern const OpDef kZigzag;  // (x) {sequence_length, parts, inverse} -> y

ValueId zigzag(Graph& graph, ValueId x, int64_t sequence_length, int64_t parts, bool inverse,
               const std::string& name);

// The natural row of row `index` in zigzag order, among all rows of `sequences`.
int64_t zigzag_row(int64_t index, int64_t sequences, int64_t sequence_length, int64_t parts);

// The natural rows that `rank` of `parts` holds, in order: sequences * sequence_length / parts
// rows. Throws Error{kInvalid} if 2 * parts does not divide the sequence.
std::vector<int64_t> zigzag_rows(int64_t sequences, int64_t sequence_length, int64_t parts,
                                 int64_t rank);

}  // namespace skein
