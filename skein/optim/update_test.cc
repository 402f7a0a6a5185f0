#include "skein/optim/update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "skein/base/numbers/exact_sum.h"
#include "skein/ir/verify.h"
#include "skein/ops/linear/linear.h"

namespace skein {
namespace {

struct Weight {
  std::string name;
  int64_t elements = 8;
  bool tied = false;  // the head uses it, too
};

// What differentiation leaves of a model: a loss, and a sum of gradients for each use of a weight.
Graph differentiated(const Mesh& mesh, const std::vector<Weight>& weights) {
  Graph graph(mesh);
  const auto input = [&](Role role, const std::string& name, DType dtype, const Shape& shape,
                         Placement over_ranks) {
    TensorType type = TensorType::replicated(dtype, shape, mesh);
    for (const char* axis : {"dp", "cp"}) {
      if (mesh.size(axis) > 1) type.placements[mesh.find(axis)] = over_ranks;
    }
    return graph.add_input(role, name, type);
  };
  for (const Weight& weight : weights) {
    input(Role::kParameter, weight.name, DType::kF32, {weight.elements}, Placement::replicated());
  }
  graph.mark_output(
      input(Role::kInput, "loss_sum", DType::kF64, Shape{exact_sum::kBins}, Placement::partial()));
  graph.set_phase(Phase::kBackward);
  for (const Weight& weight : weights) {
    for (const std::string& use : {weight.name + "/head", weight.name}) {  // backward
      if (use != weight.name && !weight.tied) continue;
      const ValueId sum = input(Role::kGradient, "grad." + use, DType::kF32, {weight.elements},
                                Placement::partial());
      const ValueId term =
          input(Role::kInput, "d." + use, DType::kF32, {4, weight.elements}, Placement::sharded(0));
      linear_db(graph, {term}, {sum});
    }
  }
  return graph;
}

Graph updated(const Mesh& mesh, const std::vector<Weight>& weights, const UpdateOptions& options) {
  Graph graph = differentiated(mesh, weights);
  append_update(graph, options);
  verify(graph, "append_update");
  return graph;
}

const std::vector<Weight> kModel = {{"table", 64, true}, {"norm"}, {"up", 32}};

std::vector<Mesh> meshes() {
  return {Mesh::standard(1, 1, 1, 1), Mesh::standard(1, 2, 1, 1), Mesh::standard(1, 1, 2, 1),
          Mesh::standard(1, 2, 2, 1)};
}

std::vector<const Node*> nodes_of(const Graph& graph, std::string_view op) {
  std::vector<const Node*> nodes;
  for (const Node& node : graph.nodes()) {
    if (node.op->name == op && node.phase == Phase::kUpdate) nodes.push_back(&node);
  }
  return nodes;
}

const Node* producer(const Graph& graph, ValueId id) {
  const int index = graph.value(id).producer;
  return index < 0 ? nullptr : &graph.nodes()[index];
}

// The input of the graph that `id` is: what was summed over ranks, or updated in place.
std::string source(const Graph& graph, ValueId id) {
  while (const Node* node = producer(graph, id)) {
    const auto at = std::find(node->outputs.begin(), node->outputs.end(), id);
    auto index = static_cast<int>(at - node->outputs.begin());
    if (node->op->layout != nullptr) {
      for (const Alias& alias : node->op->layout(graph.call(*node)).aliases) {
        if (node->outputs[alias.output] == id) index = alias.input;
      }
    }
    id = node->inputs.at(index);
  }
  return graph.value(id).name;
}

using Names = std::vector<std::string>;

Names sources(const Graph& graph, const std::vector<ValueId>& ids) {
  Names names;
  for (const ValueId id : ids) names.push_back(source(graph, id));
  return names;
}

// All of which the sum of squares `id` consists.
std::vector<ValueId> terms_of(const Graph& graph, ValueId id) {
  const Node* node = producer(graph, id);
  if (node == nullptr) return {};
  if (node->op->name == "sum_squares") return node->inputs;
  std::vector<ValueId> terms;
  if (node->op->name == "redistribute") {  // others go along
    const auto at = std::find(node->outputs.begin(), node->outputs.end(), id);
    return terms_of(graph, node->inputs[at - node->outputs.begin()]);
  }
  for (const ValueId input : node->inputs) {
    for (const ValueId term : terms_of(graph, input)) terms.push_back(term);
  }
  return terms;
}

Names norm_terms(const Graph& graph, const char* norm) {
  Names names = sources(graph, terms_of(graph, graph.find(norm)));
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Update, EveryParameterHasOneAdamwWithItsOwnDecay) {
  UpdateOptions options;
  options.weight_decay = 0.25;
  options.rule = [](std::string_view name) { return ParameterRule{.decays = name != "norm"}; };
  for (const Mesh& mesh : meshes()) {
    for (options.zero = 0; options.zero <= 1; ++options.zero) {
      const Graph graph = updated(mesh, kModel, options);
      Names found;
      std::set<int64_t> streams;
      for (const Node* node : nodes_of(graph, "adamw")) {
        const std::string name = source(graph, node->inputs[0]);
        EXPECT_EQ(sources(graph, {node->inputs.begin() + 1, node->inputs.begin() + 4}),
                  (Names{"grad." + name, "exp_avg." + name, "exp_avg_sq." + name}));
        EXPECT_EQ(node->attrs.real("weight_decay"), name == "norm" ? 0.0 : 0.25) << name;
        streams.insert(node->attrs.integer("stream"));
        found.push_back(name);
      }
      EXPECT_EQ(found, (Names{"table", "norm", "up"}));
      EXPECT_EQ(streams.size(), found.size());
    }
  }
}

// Tied embeddings: the two sums of gradients are added, and only that counts.
TEST(Update, ATiedParameterCountsOnceInNorms) {
  UpdateOptions options;
  for (const Mesh& mesh : meshes()) {
    for (options.zero = 0; options.zero <= 1; ++options.zero) {
      const Graph graph = updated(mesh, kModel, options);
      EXPECT_EQ(norm_terms(graph, "grad_norm_squared"),
                (Names{"grad.norm", "grad.table", "grad.up"}));
      EXPECT_EQ(norm_terms(graph, "param_norm_squared"), (Names{"norm", "table", "up"}));
      const auto folds = nodes_of(graph, "fold");
      ASSERT_EQ(folds.size(), 1u);
      EXPECT_EQ(sources(graph, folds[0]->inputs), (Names{"grad.table/head", "grad.table"}));
      const auto terms = terms_of(graph, graph.find("grad_norm_squared"));
      EXPECT_TRUE(std::count(terms.begin(), terms.end(), folds[0]->outputs[1]));
    }
  }
}

TEST(Update, TheLowerOfTwoStagesCountsWhatBothHave) {
  for (const int64_t stage : {0, 1}) {
    UpdateOptions options;
    options.stage = stage;
    options.shared_with_stage = {{"table", 1 - stage}};
    const Graph graph =
        updated(Mesh::standard(2, 1, 1, 1), {{"table", 64}, {"norm"}, {"up", 32}}, options);
    EXPECT_EQ(norm_terms(graph, "grad_norm_squared"),
              stage == 0 ? (Names{"grad.norm", "grad.table", "grad.up"})
                         : (Names{"grad.norm", "grad.up"}));
    EXPECT_EQ(norm_terms(graph, "param_norm_squared"),
              stage == 0 ? (Names{"norm", "table", "up"}) : (Names{"norm", "up"}));
    EXPECT_EQ(nodes_of(graph, "adamw").size(), 3u);
    EXPECT_EQ(nodes_of(graph, "send").size(), 1u);
    EXPECT_EQ(nodes_of(graph, "receive").size(), 1u);
  }
}

TEST(Update, EveryGradientIsScaledByTheNormOfAll) {
  UpdateOptions options;
  options.clip_norm = 0.75;
  for (const Mesh& mesh : meshes()) {
    const Graph graph = updated(mesh, kModel, options);
    const auto clips = nodes_of(graph, "clip_scale");
    ASSERT_EQ(clips.size(), 1u);
    EXPECT_EQ(clips[0]->attrs.real("max_norm"), 0.75);
    EXPECT_EQ(graph.value(clips[0]->inputs[0]).name, "grad_norm_squared");
    EXPECT_EQ(source(graph, clips[0]->inputs[1]), "num_label_tokens");
    for (const ValueId id : clips[0]->inputs) {
      for (const Placement& placement : graph.type(id).placements) {
        EXPECT_TRUE(placement.is_replicated()) << graph.value(id).name;
      }
    }
    for (const Node* node : nodes_of(graph, "adamw")) {
      EXPECT_EQ(node->inputs[5], clips[0]->outputs[0]);
    }
    const auto& outputs = graph.outputs();
    EXPECT_EQ(std::count(outputs.begin(), outputs.end(), clips[0]->outputs[1]), 1);
  }
}

TEST(Update, BucketsAreASixteenthOfASmallModel) {
  EXPECT_EQ(bucket_bytes(1000), 1 << 20);
  EXPECT_EQ(bucket_bytes(int64_t{64} << 20), int64_t{16} << 20);
  EXPECT_EQ(bucket_bytes(7'000'000'000), int64_t{32} << 20);
}

// Sizes of 20, 12, 1, 40, 4 and 4 MiB: as many in a row as fit 32 MiB, and one that is larger.
TEST(Update, BucketsHaveEveryGradientOnce) {
  std::vector<Weight> weights;
  for (const int64_t mib : {20, 12, 1, 40, 4, 4}) {
    weights.push_back({fmt::format("w{}", weights.size()), (mib << 20) / int64_t{sizeof(float)}});
  }
  weights.back().tied = true;  // its second sum travels in its bucket
  const std::vector<Names> buckets = {{"w0", "w1"}, {"w2"}, {"w3"}, {"w4", "w5"}};
  const auto gradients = [](const Names& bucket) {
    Names names;
    for (const std::string& name : bucket) names.push_back("grad." + name);
    if (bucket.back() == "w5") names.emplace_back("grad.w5/head");
    return names;
  };
  UpdateOptions options;
  for (options.zero = 0; options.zero <= 1; ++options.zero) {
    const Graph graph = updated(Mesh::standard(1, 2, 1, 1), weights, options);
    std::vector<Names> reduced, zeroed, gathered;
    for (const Node* node : nodes_of(graph, "redistribute")) {
      if (graph.type(node->inputs[0]).dtype != DType::kF32) continue;  // a norm
      const Names names =
          sources(graph, {node->inputs.begin(), node->inputs.begin() + std::ssize(node->outputs)});
      if (names[0].starts_with("grad.")) {
        EXPECT_EQ(node->attrs.text("to"), options.zero == 0 ? "R" : "F");
        reduced.push_back(names);
      }
      if (names[0].starts_with("w")) gathered.push_back(names);
    }
    for (const Node* node : nodes_of(graph, "fill_zero")) {
      zeroed.push_back(sources(graph, node->inputs));
    }
    std::vector<Names> expected;
    for (const Names& bucket : buckets) expected.push_back(gradients(bucket));
    EXPECT_EQ(reduced, expected);
    // Where ranges are updated, whole sums are cleared once they are reduced, and weights gathered.
    EXPECT_EQ(zeroed, options.zero == 0 ? std::vector<Names>{{"grad.w5/head"}} : expected);
    EXPECT_EQ(norm_terms(graph, "param_norm_squared"), (Names{"w0", "w1", "w2", "w3", "w4", "w5"}));
    EXPECT_EQ(gathered, options.zero == 0 ? std::vector<Names>{} : buckets);
  }
}

// Data and context ranks hold a range each. What was scattered over data ranks first is gathered
// over them last, beside the next bucket's gather over context ranks.
TEST(Update, ContextRanksShareTheStateWithDataRanks) {
  std::vector<Weight> weights;
  for (const char* name : {"w0", "w1", "w2"}) weights.push_back({name, 3 * kFlatGranule});
  UpdateOptions options;
  options.bucket_bytes = 1;
  const Graph graph = updated(Mesh::standard(1, 2, 2, 1), weights, options);
  for (const Value& value : graph.values()) {
    if (value.role != Role::kOptimizer) continue;
    EXPECT_EQ(value.type.to_string(graph.mesh()), "f32[3072]{dp:F cp:F}") << value.name;
  }
  Names moves;
  for (const Node* node : nodes_of(graph, "redistribute")) {
    if (graph.type(node->inputs[0]).dtype != DType::kF32) continue;  // a norm
    moves.push_back(fmt::format("{} {} {}", source(graph, node->inputs[0]),
                                node->attrs.text("axis"), node->attrs.text("to")));
  }
  EXPECT_EQ(moves, (Names{"grad.w0 dp F", "grad.w0 cp F", "grad.w1 dp F", "grad.w1 cp F",
                          "grad.w2 dp F", "grad.w2 cp F", "w0 cp R", "w1 cp R", "w0 dp R",
                          "w2 cp R", "w1 dp R", "w2 dp R"}));
  EXPECT_EQ(nodes_of(graph, "fill_zero").size(), weights.size());
  EXPECT_EQ(norm_terms(graph, "param_norm_squared"), (Names{"w0", "w1", "w2"}));
  options.zero = 0;
  const Graph whole = updated(Mesh::standard(1, 2, 2, 1), weights, options);
  for (const Value& value : whole.values()) {
    if (value.role == Role::kOptimizer) {
      EXPECT_EQ(value.type.to_string(whole.mesh()), "f32[3072]") << value.name;
    }
  }
}

}  // namespace
}  // namespace skein
