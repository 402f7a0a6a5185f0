// Bytes on the wire against the textbook: for each strategy alone, what all ranks together send in
// a training step is the minimum that the literature gives, exactly.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "skein/base/numbers/exact_sum.h"
#include "skein/base/text/units.h"
#include "skein/compile/program_runs.h"
#include "skein/compile/step_programs.h"
#include "skein/compile/wire_use.h"
#include "skein/model/decoder.h"
#include "skein/ops/ops.h"

namespace skein {
namespace {

constexpr int64_t kLayers = 3, kHidden = 64, kVocabulary = 96, kSequence = 64;
constexpr int64_t kKeyValue = 4 * 8;               // columns of k, and of v
constexpr int64_t kActivation = 2, kGradient = 4;  // bytes of bf16, fp32

StepSpec spec_of(const Mesh& mesh, int64_t micro_batches) {
  StepSpec spec;
  spec.layout.mesh = mesh;
  spec.layout.reduction_width = mesh.size("dp");
  spec.model = parse_decoder({{"hidden_size", kHidden},
                              {"num_hidden_layers", kLayers},
                              {"num_attention_heads", 8},
                              {"num_key_value_heads", 4},
                              {"intermediate_size", 128},
                              {"vocab_size", kVocabulary}},
                             "a test");
  spec.sequence_length = kSequence;
  spec.micro_batches = micro_batches;
  spec.update.precision = Precision::kBF16Stochastic;
  return spec;
}

// Bytes that all ranks send in a step over `group` by collectives of `kind`.
int64_t total(const StepSpec& spec, std::string_view group, CollectiveKind kind) {
  int64_t bytes = 0;
  for (int64_t rank = 0; rank < spec.layout.mesh.num_ranks(); ++rank) {
    StepSpec of_rank = spec;
    of_rank.layout.rank = rank;
    of_rank.update.stage = of_rank.layout.stage();
    of_rank.update.zero = spec.layout.zero;
    const ProgramSet programs = plan_training(training_graphs(of_rank), of_rank, cpu_kernels());
    for (const auto& [key, use] : planned_wire(programs, program_runs(of_rank, programs), rank)) {
      if (key.first == group && key.second == kind) bytes += use.sent_bytes;
    }
  }
  return bytes;
}

void expect_bytes(const char* what, int64_t found, int64_t textbook) {
  fmt::print("{:<58} {:>12} {:>12}\n", what, found, textbook);
  EXPECT_EQ(found, textbook) << what;
}

// Norms of gradients and weights, and the loss; exact sums.
constexpr int64_t kSum = exact_sum::kBins * 8;
constexpr int64_t kReports = kNumReports * 8;  // of ranks to each other, with one of those sums

TEST(Wire, DataParallelism) {
  const StepSpec base = spec_of(Mesh::standard(1, 4, 1, 1), 2);
  const int64_t parameters = num_parameters(base.model), n = 4;
  using enum CollectiveKind;
  for (const int64_t zero : {1, 2}) {
    StepSpec spec = base;
    spec.layout.zero = zero;
    spec.micro_batches = zero == 2 ? 1 : 2;
    expect_bytes("data, ZeRO 1 and 2: gradients reduce-scattered once",
                 total(spec, "dp", kReduceScatter), (n - 1) * kGradient * parameters);
    expect_bytes("data, ZeRO 1 and 2: weights gathered once", total(spec, "dp", kAllGather),
                 (n - 1) * kActivation * parameters);
    expect_bytes("  loss, two norms, label count", total(spec, "dp", kAllReduce),
                 2 * (n - 1) * (3 * kSum + kReports + 4));
  }
  StepSpec spec = base;
  spec.layout.zero = 0;
  // Squares are the same everywhere then: only the loss and the label count are summed.
  expect_bytes("data, ZeRO 0: gradients all-reduced once", total(spec, "dp", kAllReduce),
               2 * (n - 1) * (kGradient * parameters + kSum + kReports + 4));
  spec.layout.zero = 3;
  const int64_t table = kVocabulary * kHidden;
  expect_bytes("data, ZeRO 3: weights gathered forward, layers backward again",
               total(spec, "dp", kAllGather),
               (n - 1) * kActivation * spec.micro_batches * (2 * parameters - 2 * table));
}

TEST(Wire, TensorAndSequenceParallelism) {
  const StepSpec spec = spec_of(Mesh::standard(1, 1, 1, 4), 2);
  const int64_t t = 4, m = spec.micro_batches;
  const int64_t rows = kSequence * kHidden * kActivation;  // the residual stream of a micro-batch
  using enum CollectiveKind;
  // A layer scatters two sums forward and two gathered inputs' gradients backward; the embedding's
  // sum forward, the gradient of the head's input.
  expect_bytes("tensor: scattered, 4 a layer and 2", total(spec, "tp", kReduceScatter),
               (t - 1) * m * rows * (4 * kLayers + 2));
  // It gathers two inputs forward, again for backward (not kept), and two gradients; the head's
  // input, the gradient of the embedding; and 12 bytes a token and rank of softmax statistics.
  expect_bytes("tensor: gathered, 6 a layer and 2, statistics", total(spec, "tp", kAllGather),
               (t - 1) * m * (rows * (6 * kLayers + 2) + t * kSequence * 12));
  expect_bytes("  gradients of norms, two squared norms", total(spec, "tp", kAllReduce),
               2 * (t - 1) * ((2 * kLayers + 1) * kHidden * kGradient + 2 * kSum + kReports));
  StepSpec kept = spec;
  kept.recompute = RecomputePolicy::kNone;
  expect_bytes("tensor, nothing recomputed: gathered, 4 a layer and 2",
               total(kept, "tp", kAllGather),
               (t - 1) * m * (rows * (4 * kLayers + 2) + t * kSequence * 12));
  StepSpec whole = spec;
  whole.layout.sequence = false;
  // Megatron's f and g: two all-reduces a layer each way; the embedding, the head's input.
  expect_bytes("tensor, rows whole: all-reduced, 4 a layer and 2", total(whole, "tp", kAllReduce),
               2 * (t - 1) * (m * rows * (4 * kLayers + 2) + 2 * kSum + kReports));
}

TEST(Wire, PipelineParallelism) {
  const StepSpec spec = spec_of(Mesh::standard(3, 1, 1, 1), 4);
  const int64_t rows = kSequence * kHidden * kActivation;
  expect_bytes("pipeline: a boundary, forward", total(spec, "pp", CollectiveKind::kSend),
               2 * spec.micro_batches * rows);
  expect_bytes("pipeline: a boundary, backward", total(spec, "pp.backward", CollectiveKind::kSend),
               2 * spec.micro_batches * rows);
}

TEST(Wire, ContextParallelism) {
  StepSpec spec = spec_of(Mesh::standard(1, 1, 4, 1), 2);
  const int64_t c = 4, m = spec.micro_batches;
  const int64_t keys_and_values = 2 * kSequence * kKeyValue * kActivation;
  using enum CollectiveKind;
  const int64_t parameters = num_parameters(spec.model);
  const int64_t gathered = (c - 1) * m * kLayers * 2 * keys_and_values;
  const int64_t scattered = (c - 1) * m * kLayers * keys_and_values;
  expect_bytes("context: keys and values forward and again, weights once",
               total(spec, "cp", kAllGather), gathered + (c - 1) * kActivation * parameters);
  expect_bytes("context: their gradients scattered, those of weights once",
               total(spec, "cp", kReduceScatter), scattered + (c - 1) * kGradient * parameters);
  expect_bytes("  loss, two norms", total(spec, "cp", kAllReduce),
               2 * (c - 1) * (3 * kSum + kReports));
  spec.layout.zero = 0;
  expect_bytes("context, ZeRO 0: keys and values", total(spec, "cp", kAllGather), gathered);
  expect_bytes("context, ZeRO 0: gradients of weights, the loss", total(spec, "cp", kAllReduce),
               2 * (c - 1) * (kGradient * parameters + kSum + kReports));
}

// Ranges of ranges: what data ranks move is as without context ranks, for each of those; what
// context ranks move is whole granules.
TEST(Wire, DataAndContextParallelism) {
  const StepSpec spec = spec_of(Mesh::standard(1, 2, 2, 1), 2);
  const int64_t n = 2, c = 2, parameters = num_parameters(spec.model);
  int64_t in_ranges = 0;  // of all data ranks, with padding
  const Graph graph = training_graphs(spec).training;
  for (const Value& value : graph.values()) {
    if (value.role != Role::kParameter) continue;
    const int64_t granules = ceil_div(value.type.shape.num_elements(), kFlatGranule);
    in_ranges += n * ceil_div(granules, n) * kFlatGranule;
  }
  const int64_t keys_and_values =
      2 * kSequence * kKeyValue * kActivation * spec.micro_batches * kLayers;
  using enum CollectiveKind;
  expect_bytes("data and context: over data, gradients", total(spec, "dp", kReduceScatter),
               (n - 1) * c * kGradient * parameters);
  expect_bytes("data and context: over data, weights", total(spec, "dp", kAllGather),
               (n - 1) * c * kActivation * parameters);
  expect_bytes("data and context: over context, gradients of ranges",
               total(spec, "cp", kReduceScatter),
               (c - 1) * (kGradient * in_ranges + n * keys_and_values));
  expect_bytes("data and context: over context, ranges of weights", total(spec, "cp", kAllGather),
               (c - 1) * (kActivation * in_ranges + n * 2 * keys_and_values));
}

// What ranks report to each other, as that one was asked to stop, costs no round trip of its own.
TEST(Wire, ReportsOfRanksTravelWithOtherSums) {
  const Mesh meshes[] = {Mesh::standard(1, 4, 1, 1), Mesh::standard(1, 1, 1, 4),
                         Mesh::standard(1, 1, 4, 1), Mesh::standard(3, 1, 1, 1),
                         Mesh::standard(3, 2, 2, 2), Mesh::standard(1, 2, 1, 4)};
  for (const Mesh& mesh : meshes) {
    for (const int64_t zero : {0, 1, 3}) {
      for (const int64_t rank : {int64_t{0}, mesh.num_ranks() - 1}) {
        StepSpec spec = spec_of(mesh, 4);
        spec.layout.zero = spec.update.zero = zero;
        spec.layout.rank = rank;
        spec.update.stage = spec.layout.stage();
        const bool has_head = spec.layout.stage() + 1 == mesh.size("pp");
        const Graph graph = training_graphs(spec).training;
        int64_t axes = 0, found = 0;
        for (int axis = 0; axis < mesh.num_axes(); ++axis) axes += mesh.axis(axis).size > 1;
        for (const Node& node : graph.nodes()) {
          for (const ValueId input : node.inputs) {
            if (input == kNoValue || !graph.value(input).name.starts_with("rank_reports")) continue;
            ++found;
            const std::string& axis = node.attrs.text("axis");
            // Another stage adds up the loss over these meanwhile.
            if (!has_head && (axis == "dp" || axis == "cp")) continue;
            EXPECT_GE(node.inputs.size(), 2u) << mesh.to_string() << " " << graph.value(input).name;
          }
        }
        EXPECT_EQ(found, axes) << mesh.to_string() << " ZeRO " << zero;
        const ValueId all = graph.find("all_reports");
        ASSERT_NE(all, kNoValue) << mesh.to_string();
        EXPECT_TRUE(std::ranges::count(graph.outputs(), all) == 1);
        for (const Placement& placement : graph.type(all).placements) {
          EXPECT_TRUE(placement.is_replicated()) << mesh.to_string();
        }
      }
    }
  }
  const StepSpec alone = spec_of(Mesh::standard(1, 1, 1, 1), 2);
  EXPECT_EQ(training_graphs(alone).training.find("rank_reports"), kNoValue);
}

}  // namespace
}  // namespace skein
