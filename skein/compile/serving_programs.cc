#include "skein/compile/serving_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "skein/base/text/units.h"
#include "skein/compile/forward_graph.h"
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
  return 2 * model.num_hidden_layers * model.key_value_size() * page_size * size_of(dtype);
}

std::string read_program(int64_t num_tokens) { return fmt::format("read.{}", num_tokens); }

ProgramSet serving_programs(const DecoderConfig& model, DType compute_dtype,
                            const ServingLayout& layout, const KernelTable& kernels) {
  DecoderOptions options;
  options.purpose = DecoderPurpose::kServe;
  options.compute_dtype = compute_dtype;
  options.packed_weights = kernels.contains("packed_linear");
  options.cache = {.num_pages = layout.num_pages,
                   .page_size = layout.page_size,
                   .num_sequences = layout.max_sequences,
                   .pages_a_sequence = layout.pages_of(layout.max_positions)};
  std::deque<Graph> graphs;
  std::vector<GraphToPlan> to_plan;
  std::vector<int64_t> counts = layout.token_counts();
  std::reverse(counts.begin(), counts.end());  // the first has all rows of what they share
  for (const int64_t num_tokens : counts) {
    options.sequence_length = num_tokens;
    options.cache.head_rows = layout.head_rows(num_tokens);
    const Graph& graph = graphs.emplace_back(forward_graph(model, options));
    to_plan.push_back({&graph, read_program(num_tokens), "", ""});
  }
  return plan_memory(to_plan, kernels);
}

}  // namespace skein
