#include "skein/compile/embedding_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "skein/base/text/units.h"
#include "skein/compile/forward_graph.h"
#include "skein/passes/memory/plan_memory.h"

namespace skein {

std::vector<int64_t> EmbeddingLayout::lengths() const {
  std::vector<int64_t> all;
  for (int64_t length = 4; length < max_positions;
       length += std::max<int64_t>(4, length / 64 * 4)) {
    all.push_back(length);
  }
  all.push_back(max_positions);
  return all;
}

// The longest has as many tokens as any other, since they share its inputs.
int64_t EmbeddingLayout::rows(int64_t length) const {
  const int64_t of_longest = ceil_div(max_tokens, max_positions);
  return length == max_positions ? of_longest : of_longest * max_positions / length;
}

std::string embed_program(int64_t length) { return fmt::format("embed.{}", length); }

ProgramSet embedding_programs(const DecoderConfig& model, DType compute_dtype,
                              const EmbeddingLayout& layout, const KernelTable& kernels) {
  DecoderOptions options;
  options.purpose = DecoderPurpose::kEmbed;
  options.compute_dtype = compute_dtype;
  std::deque<Graph> graphs;
  std::vector<GraphToPlan> to_plan;
  std::vector<int64_t> lengths = layout.lengths();
  std::reverse(lengths.begin(), lengths.end());  // the first has all rows of what they share
  for (const int64_t length : lengths) {
    options.sequence_length = length;
    options.sequences = layout.rows(length);
    const Graph& graph = graphs.emplace_back(forward_graph(model, options));
    to_plan.push_back({&graph, embed_program(length), "", ""});
  }
  return plan_memory(to_plan, kernels);
}

}  // namespace skein
