#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

struct Pieces {
  int64_t parts, sequences, size, features;  // `size`: tokens of a piece

  explicit Pieces(const RuleCall& call) : parts(call.constants().integer("parts")) {
    const Tensor& x = call.inputs[0];
    const int64_t length = call.constants().integer("sequence_length");
    sequences = x.dim(0) / length;
    size = length / (2 * parts);
    features = x.rank() == 2 ? x.dim(1) : 1;
  }
};

// The pieces r and 2n - 1 - r of all sequences, for each rank r.
Tensor to_zigzag(const Tensor& x, const Pieces& p) {
  const Tensor pieces = reshape(x, {p.sequences, 2 * p.parts, p.size, p.features});
  const auto piece = [&](int64_t index) { return slice_dim(pieces, 1, index, index + 1); };
  const int64_t rows_of_rank = p.sequences * 2 * p.size;
  std::vector<Tensor> ranks;
  for (int64_t rank = 0; rank < p.parts; ++rank) {
    const Tensor both = concatenate({piece(rank), piece(2 * p.parts - 1 - rank)}, 1);
    ranks.push_back(reshape(both, {rows_of_rank, p.features}));
  }
  return concatenate(ranks, 0);
}

// Piece i of a sequence is the first one of rank i, or the second one of rank 2n - 1 - i.
Tensor to_natural(const Tensor& x, const Pieces& p) {
  const Tensor halves = reshape(x, {p.parts * p.sequences, 2, p.size, p.features});
  std::vector<Tensor> pieces;
  for (int64_t i = 0; i < 2 * p.parts; ++i) {
    const int64_t half = i < p.parts ? 0 : 1, rank = half == 0 ? i : 2 * p.parts - 1 - i;
    const Tensor of_rank = slice_dim(halves, 0, rank * p.sequences, (rank + 1) * p.sequences);
    pieces.push_back(slice_dim(of_rank, 1, half, half + 1));
  }
  return concatenate(pieces, 1);
}

std::vector<Tensor> forward(const RuleCall& call) {
  const Pieces pieces(call);
  const bool inverse = call.constants().flag("inverse");
  const Tensor y = (inverse ? to_natural : to_zigzag)(call.inputs[0], pieces);
  return {reshape(y, call.outputs[0].dims)};
}

}  // namespace

void add_zigzag_stablehlo_rules(stablehlo::RuleTable& rules) { rules["zigzag"] = forward; }

}  // namespace skein
