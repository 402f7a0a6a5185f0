#include "skein/optim/update.h"

#include "skein/base/hash.h"
#include "skein/ir/verify.h"
#include "skein/ops/adamw/adamw.h"
#include "skein/ops/clip_scale/clip_scale.h"
#include "skein/ops/redistribute/redistribute.h"
#include "skein/ops/sum_squares/sum_squares.h"

namespace skein {
namespace {

struct Trained {
  ValueId parameter;
  ValueId gradient;  // after the last micro-batch
};

// Follows the chain of in-place sums from each gradient input to its last value.
std::vector<Trained> trained_parameters(const Graph& graph) {
  std::vector<ValueId> latest(graph.values().size());
  for (size_t id = 0; id < latest.size(); ++id) latest[id] = static_cast<ValueId>(id);
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (node->op->layout == nullptr) continue;
    for (const Alias& alias : node->op->layout(graph.call(*node)).aliases) {
      const ValueId input = node->inputs[alias.input];
      if (alias.in_place && input != kNoValue) latest[input] = latest[node->outputs[alias.output]];
    }
  }
  std::vector<Trained> result;
  for (size_t id = 0; id < graph.values().size(); ++id) {
    if (graph.values()[id].role != Role::kParameter) continue;
    const ValueId sum = graph.find("grad." + graph.values()[id].name);
    if (sum != kNoValue) result.push_back({static_cast<ValueId>(id), latest[sum]});
  }
  return result;
}

class UpdateBuilder {
 public:
  UpdateBuilder(Graph& graph, const UpdateOptions& options) : graph_(graph), options_(options) {}

  void build() {
    std::vector<Trained> trained = trained_parameters(graph_);
    graph_.set_phase(Phase::kUpdate);
    graph_.set_scope("update");
    learning_rate_ = scalar("learning_rate", DType::kF32);
    step_ = scalar("step", DType::kI32);
    const ValueId num_tokens = scalar("num_label_tokens", DType::kI32);

    std::vector<ValueId> gradients;
    for (Trained& one : trained) {
      one.gradient = whole(one.gradient);
      gradients.push_back(one.gradient);
    }
    const ValueId norm_sum = total_squares(gradients, "grad");
    const auto clip =
        clip_scale(graph_, norm_sum, num_tokens, options_.clip_norm, "grad_scale", "grad_norm");
    std::vector<ValueId> updated;
    for (const Trained& one : trained) updated.push_back(update(one, clip.scale));
    graph_.mark_output(clip.norm);
    graph_.mark_output(total_squares(updated, "param"));
    graph_.set_scope("");
  }

 private:
  ValueId scalar(const std::string& name, DType dtype) {
    return graph_.add_input(Role::kInput, name,
                            TensorType::replicated(dtype, Shape{1}, graph_.mesh()));
  }

  // The sum that is still owed over the axes that split the batch.
  ValueId whole(ValueId sum) {
    for (const MeshAxis& axis : graph_.mesh().axes()) {
      if (graph_.type(sum).placements[graph_.mesh().find(axis.name)].is_partial()) {
        sum = redistribute(graph_, sum, axis.name, Placement::replicated());
      }
    }
    return sum;
  }

  ValueId state(const std::string& prefix, ValueId parameter, DType dtype) {
    TensorType type = graph_.type(parameter);
    type.dtype = dtype;
    return graph_.add_input(Role::kOptimizer, prefix + graph_.value(parameter).name, type);
  }

  ValueId total_squares(const std::vector<ValueId>& values, const std::string& what) {
    return whole(sum_squares(graph_, values, what + "_norm_squared"));
  }

  ValueId update(const Trained& one, ValueId scale) {
    const std::string name = graph_.value(one.parameter).name;
    AdamwInputs inputs;
    inputs.weight = one.parameter;
    inputs.gradient = one.gradient;
    inputs.exp_avg = state("exp_avg.", one.parameter, options_.moments);
    inputs.exp_avg_sq = state("exp_avg_sq.", one.parameter, options_.moments);
    if (options_.precision == Precision::kMixed) {
      inputs.master = state("master.", one.parameter, DType::kF32);
    }
    inputs.scale = scale;
    inputs.learning_rate = learning_rate_;
    inputs.step = step_;
    AdamwAttrs attrs;
    attrs.beta1 = options_.beta1;
    attrs.beta2 = options_.beta2;
    attrs.epsilon = options_.epsilon;
    attrs.weight_decay = options_.decays(name) ? options_.weight_decay : 0.0;
    attrs.stochastic_rounding = options_.precision == Precision::kBF16Stochastic;
    attrs.seed = options_.seed;
    attrs.stream = static_cast<uint32_t>(hash_name(name));
    return adamw(graph_, inputs, attrs, name).weight;
  }

  Graph& graph_;
  const UpdateOptions& options_;
  ValueId learning_rate_ = kNoValue;
  ValueId step_ = kNoValue;
};

}  // namespace

Precision parse_precision(std::string_view mode) {
  if (mode == "fp32") return Precision::kF32;
  if (mode == "bf16") return Precision::kBF16;
  if (mode == "bf16-sr") return Precision::kBF16Stochastic;
  if (mode == "mixed") return Precision::kMixed;
  fail(ErrorCode::kUsage, "precision.mode is '{}': expected fp32, bf16, bf16-sr or mixed", mode);
}

DType compute_dtype(Precision precision) {
  return precision == Precision::kF32 ? DType::kF32 : DType::kBF16;
}

void append_update(Graph& graph, const UpdateOptions& options) {
  UpdateBuilder(graph, options).build();
  verify(graph, "append_update");
}

}  // namespace skein
