#include "skein/ops/packed_linear/packed_linear.h"

#include "skein/ops/checks.h"
#include "skein/ops/matmul/matmul_cpu.h"

namespace skein {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  const TensorType& x = check_matrix(call, 0);
  const int64_t out = call.attrs.integer("out");
  call.check(call.mesh.num_ranks() == 1, "the mesh {} has several ranks: expected one",
             call.mesh.to_string());
  check_type(call, 1, DType::kI32, {packed_weight_words(x.dtype, out, x.shape.dim(1))});
  if (call.attrs.flag("bias")) check_type(call, 2, x.dtype, {out});
  const DType dtype = call.attrs.flag("f32_output") ? DType::kF32 : x.dtype;
  return {TensorType::replicated(dtype, {x.shape.dim(0), out}, call.mesh)};
}

Cost cost(const OpCall& call) {
  const double out = static_cast<double>(call.attrs.integer("out"));
  return {2 * static_cast<double>(call.input(0).shape.num_elements()) * out, input_bytes(call),
          output_bytes(call)};
}

std::vector<TensorType> infer_pack(const OpCall& call) {
  const TensorType& w = check_matrix(call, 0);
  return {TensorType::replicated(
      DType::kI32, {packed_weight_words(w.dtype, w.shape.dim(0), w.shape.dim(1))}, call.mesh)};
}

Cost cost_pack(const OpCall& call) { return {0, input_bytes(call), output_bytes(call)}; }

}  // namespace

const OpDef kPackedLinear = {.name = "packed_linear", .infer = infer, .cost = cost};
const OpDef kPackWeight = {.name = "pack_weight", .infer = infer_pack, .cost = cost_pack};

std::vector<const OpDef*> packed_linear_ops() { return {&kPackedLinear, &kPackWeight}; }

int64_t packed_weight_words(DType dtype, int64_t out, int64_t in) {
  return matmul_packed_b_words(dtype, out, in);
}

ValueId packed_linear(Graph& graph, ValueId x, ValueId packed, ValueId bias, int64_t out,
                      const std::string& name, bool f32_output) {
  std::vector<ValueId> inputs = {x, packed};
  if (bias != kNoValue) inputs.push_back(bias);
  return graph.add1(kPackedLinear, std::move(inputs),
                    {{"out", out}, {"bias", bias != kNoValue}, {"f32_output", f32_output}}, name);
}

}  // namespace skein
