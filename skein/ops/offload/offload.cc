#include "skein/ops/offload/offload.h"

#include "skein/ops/checks.h"

namespace skein {
namespace {

std::vector<TensorType> infer(const OpCall& call) { return {call.input(0)}; }

std::vector<TensorType> infer_stash_end(const OpCall&) { return {}; }

Layout layout_fetch_end(const OpCall&) { return {.aliases = {{.output = 0, .input = 0}}}; }

Cost cost(const OpCall& call) { return {0, input_bytes(call), output_bytes(call)}; }

Cost cost_end(const OpCall&) { return {}; }

}  // namespace

const OpDef kStash = {.name = "stash",
                      .infer = infer,
                      .cost = cost,
                      .ended_by = "stash_end",
                      .outputs_on_host = true};
const OpDef kStashEnd = {.name = "stash_end", .infer = infer_stash_end, .cost = cost_end};
const OpDef kFetch = {.name = "fetch", .infer = infer, .cost = cost, .ended_by = "fetch_end"};
const OpDef kFetchEnd = {
    .name = "fetch_end", .infer = infer, .cost = cost_end, .layout = layout_fetch_end};

std::vector<const OpDef*> offload_ops() { return {&kStash, &kStashEnd, &kFetch, &kFetchEnd}; }

ValueId stash(Graph& graph, ValueId x, int64_t channel, const std::string& name) {
  return graph.add1(kStash, {x}, {{"channel", channel}}, name);
}

void end_stash(Graph& graph, ValueId x, int64_t channel) {
  graph.add(kStashEnd, {x}, {{"channel", channel}}, {});
}

ValueId fetch(Graph& graph, ValueId stashed, int64_t channel, const std::string& name) {
  return graph.add1(kFetch, {stashed}, {{"channel", channel}}, name);
}

ValueId end_fetch(Graph& graph, ValueId fetched, int64_t channel, const std::string& name) {
  return graph.add1(kFetchEnd, {fetched}, {{"channel", channel}}, name);
}

}  // namespace skein
