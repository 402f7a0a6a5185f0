#include "skein/ops/pipeline/pipeline.h"

#include "skein/ops/checks.h"
#include "skein/ops/pipeline/pipeline_kernels.h"
#include "skein/ops/type_attrs.h"

namespace skein {
namespace {

std::vector<TensorType> infer_send(const OpCall& call) {
  call.check(call.input(1) == send_buffer_type(call.input(0), call.attrs.integer("depth")),
             "{} does not fit {}", call.describe(0), call.describe(1));
  return {call.input(1)};
}

Layout layout_send(const OpCall&) { return {.aliases = {{.output = 0, .input = 1}}}; }

std::vector<TensorType> infer_receive(const OpCall& call) { return {type_of_attrs(call)}; }

Cost cost_send(const OpCall& call) {
  const int64_t bytes = call.input(0).local_bytes(call.mesh);
  return {0, bytes, bytes};
}
Cost cost_receive(const OpCall& call) { return {0, 0, call.output(0).local_bytes(call.mesh)}; }

Collective collective_of_send(const KernelCall& call) {
  return pipeline::message(call, CollectiveKind::kSend, call.inputs[0], call.inputs[0].data);
}

}  // namespace

const OpDef kSend = {.name = "send",
                     .infer = infer_send,
                     .cost = cost_send,
                     .layout = layout_send,
                     .collective = collective_of_send};
const OpDef kReceive = {
    .name = "receive", .infer = infer_receive, .cost = cost_receive, .only_waits = true};

std::vector<const OpDef*> pipeline_ops() { return {&kSend, &kReceive}; }

TensorType send_buffer_type(TensorType x, int64_t depth) {
  if (!x.is_flat()) x.shape.set_dim(0, x.shape.dim(0) * depth);
  return x;
}

ValueId send(Graph& graph, ValueId x, ValueId buffer, std::string_view group, int64_t peer,
             int64_t channel, int64_t depth) {
  return graph.add1(
      kSend, {x, buffer},
      {{"axis", std::string(group)}, {"peer", peer}, {"channel", channel}, {"depth", depth}},
      graph.value(buffer).name);
}

ValueId receive(Graph& graph, const TensorType& type, std::string_view group, int64_t peer,
                const std::string& name) {
  Attrs attrs = type_attrs(type);
  attrs.set("axis", std::string(group));
  attrs.set("peer", peer);
  return graph.add1(kReceive, {}, std::move(attrs), name);
}

}  // namespace skein
