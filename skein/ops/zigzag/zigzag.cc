#include "skein/ops/zigzag/zigzag.h"

#include <array>

#include "skein/ir/backward.h"
#include "skein/ops/checks.h"

namespace skein {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  const TensorType& x = call.input(0);
  const int64_t length = call.attrs.integer("sequence_length");
  const int64_t parts = call.attrs.integer("parts");
  call.attrs.flag("inverse");
  call.check(x.shape.rank() == 1 || x.shape.rank() == 2, "{} must be a vector or a matrix",
             call.describe(0));
  call.check(parts > 0 && length > 0 && length % (2 * parts) == 0,
             "a sequence of {} tokens is not {} equal pieces, two for each of {} parts", length,
             2 * parts, parts);
  const int64_t rows = x.local_shape(call.mesh).dim(0);
  call.check(rows % length == 0, "{} gives a rank {} rows, not whole sequences of {} tokens",
             call.describe(0), rows, length);
  static constexpr std::array<std::string_view, 3> kRules = {"S0 -> S0", "S1 -> S1", "P -> P"};
  return {{x.dtype, x.shape, match_placements(call, {0}, 1, kRules)[0]}};
}

Cost cost(const OpCall& call) { return {0, input_bytes(call), output_bytes(call)}; }

void backward(BackwardContext& context) {
  const ValueId dy = context.output_grad(0);
  if (dy == kNoValue) return;
  if (dy == kUnitGrad) {
    context.add_input_grad(0, kUnitGrad);
    return;
  }
  const Attrs& attrs = context.node().attrs;
  context.add_input_grad(
      0, zigzag(context.graph(), dy, attrs.integer("sequence_length"), attrs.integer("parts"),
                !attrs.flag("inverse"), context.name(0)));
}

Rematerialization rematerialize(const Node& node) {
  return {.inputs = node.inputs, .outputs = {0}};
}

}  // namespace

const OpDef kZigzag = {.name = "zigzag",
                       .infer = infer,
                       .cost = cost,
                       .backward = backward,
                       .passes_pending = true,
                       .rematerialize = rematerialize};

std::vector<const OpDef*> zigzag_ops() { return {&kZigzag}; }

ValueId zigzag(Graph& graph, ValueId x, int64_t sequence_length, int64_t parts, bool inverse,
               const std::string& name) {
  return graph.add1(kZigzag, {x},
                    {{"sequence_length", sequence_length}, {"parts", parts}, {"inverse", inverse}},
                    name);
}

int64_t zigzag_row(int64_t index, int64_t sequences, int64_t sequence_length, int64_t parts) {
  const int64_t size = sequence_length / (2 * parts);
  const int64_t rank = index / (sequences * 2 * size), in_rank = index % (sequences * 2 * size);
  const int64_t sequence = in_rank / (2 * size), in_sequence = in_rank % (2 * size);
  const int64_t piece = in_sequence < size ? rank : 2 * parts - 1 - rank;
  return sequence * sequence_length + piece * size + in_sequence % size;
}

std::vector<int64_t> zigzag_rows(int64_t sequences, int64_t sequence_length, int64_t parts,
                                 int64_t rank) {
  if (parts < 1 || rank < 0 || rank >= parts || sequence_length % (2 * parts) != 0) {
    fail(ErrorCode::kInvalid,
         "sequences of {} tokens have no part {} of {}: the length should be a multiple of {}",
         sequence_length, rank, parts, 2 * parts);
  }
  std::vector<int64_t> rows(sequences * sequence_length / parts);
  const auto count = static_cast<int64_t>(rows.size());
  for (int64_t i = 0; i < count; ++i) {
    rows[i] = zigzag_row(rank * count + i, sequences, sequence_length, parts);
  }
  return rows;
}

}  // namespace skein
