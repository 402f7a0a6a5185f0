#include "skein/ops/pipeline/pipeline.h"

#include <sstream>

#include "skein/ops/checks.h"

namespace skein {
namespace {

std::vector<TensorType> infer_send(const OpCall& call) {
  call.check(call.input(0) == call.input(1), "{} does not fit {}", call.describe(0),
             call.describe(1));
  return {call.input(1)};
}

Layout layout_send(const OpCall&) { return {.aliases = {{.output = 0, .input = 1}}}; }

std::vector<TensorType> infer_receive(const OpCall& call) {
  const std::optional<DType> dtype = parse_dtype(call.attrs.text("dtype"));
  call.check(dtype.has_value(), "dtype is '{}'", call.attrs.text("dtype"));
  TensorType type{*dtype, Shape(call.attrs.integers("shape")), {}};
  std::istringstream words(call.attrs.text("placements"));
  for (std::string word; words >> word;) type.placements.push_back(Placement::parse(word));
  call.check(static_cast<int>(type.placements.size()) == call.mesh.num_axes(),
             "placements '{}' do not fit {}", call.attrs.text("placements"), call.mesh.to_string());
  return {type};
}

Cost cost_send(const OpCall& call) {
  const int64_t bytes = call.input(0).local_bytes(call.mesh);
  return {0, bytes, bytes};
}
Cost cost_receive(const OpCall& call) { return {0, 0, call.output(0).local_bytes(call.mesh)}; }

}  // namespace

const OpDef kSend = {.name = "send", .infer = infer_send, .cost = cost_send, .layout = layout_send};
const OpDef kReceive = {.name = "receive", .infer = infer_receive, .cost = cost_receive};

std::vector<const OpDef*> pipeline_ops() { return {&kSend, &kReceive}; }

ValueId send(Graph& graph, ValueId x, ValueId buffer, std::string_view group, int64_t peer,
             int64_t channel) {
  return graph.add1(kSend, {x, buffer},
                    {{"axis", std::string(group)}, {"peer", peer}, {"channel", channel}},
                    graph.value(buffer).name);
}

ValueId receive(Graph& graph, const TensorType& type, std::string_view group, int64_t peer,
                const std::string& name) {
  std::string placements;
  for (const Placement placement : type.placements) {
    placements += (placements.empty() ? "" : " ") + placement.to_string();
  }
  return graph.add1(kReceive, {},
                    {{"axis", std::string(group)},
                     {"peer", peer},
                     {"dtype", std::string(dtype_name(type.dtype))},
                     {"shape", type.shape.dims()},
                     {"placements", placements}},
                    name);
}

}  // namespace skein
