#include "skein/compile/serving_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <set>

#include "skein/base/text/units.h"
#include "skein/compile/forward_graph.h"
#include "skein/model/placement.h"
#include "skein/passes/memory/plan_memory.h"

namespace skein {

int64_t ServingLayout::head_rows(int64_t num_tokens) const {
  return std::min(num_tokens, max_head_rows);
}

int64_t ServingLayout::pages_of(int64_t positions) const { return ceil_div(positions, page_size); }

std::vector<int64_t> ServingLayout::token_counts() const {
  std::vector<int64_t> counts;
  for (int64_t power = 1; power <= max_tokens; power *= 2) {
    counts.push_back(power);
    if (power >= 2 && power * 3 / 2 <= max_tokens) counts.push_back(power * 3 / 2);
  }
  if (counts.back() < max_tokens) counts.push_back(max_tokens);
  return counts;
}

int64_t ServingLayout::page_bytes(const DecoderConfig& model, DType dtype) const {
  const int64_t ranks = std::max(mesh.size("tp"), mesh.size("kv"));  // that split the heads
  return 2 * model.num_hidden_layers * model.key_value_size() / ranks * page_size * size_of(dtype);
}

namespace {

// The embedding and the head are whole: logits that are split by tokens of the vocabulary would
// have to be gathered.
ShardPlan shard_plan(const DecoderConfig& model, const Mesh& mesh) {
  const auto of_training = decoder_placements(model, mesh);
  const Placements whole(static_cast<size_t>(mesh.num_axes()), Placement::replicated());
  std::set<std::string, std::less<>> vocabulary;
  for (const ParameterSpec& spec : parameter_specs(model)) {
    if (spec.is_vocabulary) vocabulary.insert(spec.name);
  }
  Placements heads = whole;  // those of keys and values
  for (const char* axis : {"tp", "kv"}) {
    if (mesh.find(axis) >= 0) heads[static_cast<size_t>(mesh.find(axis))] = Placement::sharded(1);
  }
  ShardPlan plan;
  plan.place = [=](const Value& value) -> std::optional<Placements> {
    if (value.role == Role::kCache) return heads;
    if (vocabulary.contains(value.name)) return whole;
    return of_training(value);
  };
  for (const std::string& axis : tensor_axes(mesh)) plan.whole_rows.insert(axis);
  return plan;
}

}  // namespace

std::string read_program(int64_t num_tokens) { return fmt::format("read.{}", num_tokens); }

ProgramSet serving_programs(const DecoderConfig& model, DType compute_dtype,
                            const ServingLayout& layout, const KernelTable& kernels, int64_t rank) {
  DecoderOptions options;
  options.purpose = DecoderPurpose::kServe;
  options.compute_dtype = compute_dtype;
  // A packed weight cannot be split.
  options.packed_weights = kernels.contains("packed_linear") && layout.mesh.num_ranks() == 1;
  options.cache = {.num_pages = layout.num_pages,
                   .page_size = layout.page_size,
                   .num_sequences = layout.max_sequences,
                   .pages_a_sequence = layout.pages_of(layout.max_positions)};
  const ShardPlan plan = shard_plan(model, layout.mesh);
  std::deque<Graph> graphs;
  std::vector<GraphToPlan> to_plan;
  std::vector<int64_t> counts = layout.token_counts();
  std::reverse(counts.begin(), counts.end());  // the first has all rows of what they share
  for (const int64_t num_tokens : counts) {
    options.sequence_length = num_tokens;
    options.cache.head_rows = layout.head_rows(num_tokens);
    const Graph& graph = graphs.emplace_back(forward_graph(model, options, layout.mesh, plan));
    to_plan.push_back({&graph, read_program(num_tokens), "", ""});
  }
  return plan_memory(to_plan, kernels, rank);
}

}  // namespace skein
