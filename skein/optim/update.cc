#include "skein/optim/update.h"

#include <utility>

#include "skein/base/numbers/exact_sum.h"
#include "skein/ir/gradient_name.h"
#include "skein/ops/clip_scale/clip_scale.h"
#include "skein/ops/fill_zero/fill_zero.h"
#include "skein/ops/fold/fold.h"
#include "skein/ops/pipeline/pipeline.h"
#include "skein/ops/redistribute/redistribute.h"
#include "skein/optim/global_sums.h"
#include "skein/optim/gradient_buckets.h"

namespace skein {
namespace {

class UpdateBuilder {
 public:
  UpdateBuilder(Graph& graph, const UpdateOptions& options)
      : graph_(graph),
        options_(options),
        settings_(settings_of(options)),
        sums_(graph),
        state_axes_(options.zero > 0 ? graph.mesh().axes_of_copies() : std::vector<int>{}) {}

  void build() {
    std::vector<TrainedParameter> trained = trained_parameters(graph_);
    sums_.begin_reports(options_.num_corpora);
    total_loss();
    learning_rate_ = scalar("learning_rate", DType::kF32);
    step_ = scalar("step", DType::kI32);

    for (const Bucket& bucket : make_buckets(graph_, trained, options_.bucket_bytes)) {
      sum_over_ranks(graph_, bucket, state_axes_);
    }
    GlobalSums::Squares grad_squares;
    std::vector<ValueId> gradients;
    for (TrainedParameter& one : trained) {
      add_shared(one);
      if (counts(one)) gradients.push_back(one.gradient);
    }
    sums_.add_squares(grad_squares, gradients, "grad");
    const auto clip = clip_scale(graph_, sums_.of_squares(grad_squares, "grad"), num_tokens_,
                                 options_.clip_norm, "grad_scale", "grad_norm");
    graph_.mark_output(clip.norm);
    sums_.finish_reports();
    UpdatePhase phase(graph_, settings_, state_axes_, clip.scale, learning_rate_, step_);
    GlobalSums::Squares param_squares;
    std::vector<ValueId> updated;
    for (const Bucket& bucket : make_buckets(graph_, trained, update_bytes(trained))) {
      update(bucket, phase, updated, param_squares);
    }
    for (ParameterRanges& ranges : gathering_) gather(ranges);
    sums_.add_squares(param_squares, updated, "param");
    graph_.mark_output(sums_.of_squares(param_squares, "param"));
    graph_.set_scope({});
  }

  // The losses and the label tokens of all ranks.
  void total_loss() {
    graph_.set_phase(Phase::kUpdate);
    graph_.set_scope({"update"});
    if (!graph_.nodes().empty()) graph_.set_chunk(graph_.nodes().front().chunk);
    ValueId loss = graph_.find("loss_sum");
    if (loss == kNoValue) {  // the head is on another stage
      loss = graph_.add_input(
          Role::kInput, "loss_sum",
          TensorType::replicated(DType::kF64, Shape{exact_sum::kBins}, graph_.mesh()));
      graph_.mark_output(loss);
    } else {
      loss = latest_values(graph_)[loss];
    }
    graph_.replace_output(loss, sums_.of_losses(loss));
    num_tokens_ = sums_.of_label_tokens(scalar("num_label_tokens", DType::kI32, "dp"));
    if (graph_.value(num_tokens_).producer >= 0) graph_.rename(num_tokens_, "global_label_tokens");
    graph_.mark_output(num_tokens_);
  }

 private:
  static OptimizerSettings settings_of(const UpdateOptions& options) {
    OptimizerSettings settings = options.optimizer;
    settings.keeps_master = options.precision == Precision::kMixed;
    settings.stochastic_rounding = options.precision == Precision::kBF16Stochastic;
    return settings;
  }

  ValueId scalar(const std::string& name, DType dtype, std::string_view pending_over = "") {
    TensorType type = TensorType::replicated(dtype, Shape{1}, graph_.mesh());
    const int axis = graph_.mesh().find(pending_over);
    if (axis >= 0 && graph_.mesh().axis(axis).size > 1) {
      type.placements[axis] = Placement::partial();
    }
    return graph_.add_input(Role::kInput, name, std::move(type));
  }

  // gradient = other + gradient, in place; returns what is left of the other.
  ValueId add_to_gradient(TrainedParameter& one, ValueId other) {
    const FoldPair sum = fold(graph_, {{other, one.gradient}}, FoldMode::kMerge).front();
    one.gradient = sum.gradient;
    return sum.level;
  }

  // The sums of one parameter's several uses, here and on another stage.
  void add_shared(TrainedParameter& one) {
    one.gradient = one.sums.front();
    for (size_t i = 1; i < one.sums.size(); ++i) {
      const ValueId rest = add_to_gradient(one, one.sums[i]);
      if (state_axes_.empty()) fill_zero(graph_, {rest});  // else it was, when it was reduced
    }
    const std::string name = graph_.value(one.parameter).name;  // values move as others are added
    const auto shared = options_.shared_with_stage.find(name);
    if (shared == options_.shared_with_stage.end()) return;
    const TensorType type = graph_.type(one.gradient);
    const ValueId buffer = graph_.add_input(Role::kInput, "send." + gradient_name(name), type);
    constexpr int64_t kChannel = int64_t{1} << 32;  // beyond those of chunks
    send(graph_, one.gradient, buffer, kForwardGroup, shared->second, kChannel);
    add_to_gradient(one, receive(graph_, type, kForwardGroup, shared->second,
                                 gradient_name(name) + ".received"));
  }

  bool counts(const TrainedParameter& one) const {
    const auto shared = options_.shared_with_stage.find(graph_.value(one.parameter).name);
    return shared == options_.shared_with_stage.end() || options_.stage < shared->second;
  }

  // Appends the new weights to `updated`, or adds their squares at once where they are ranges in
  // memory of their own, which those of a later bucket take.
  void update(const Bucket& bucket, UpdatePhase& phase, std::vector<ValueId>& updated,
              GlobalSums::Squares& squares) {
    const std::vector<ValueId> weights = updated_weights(bucket, phase);
    ParameterRanges ranges;
    for (size_t i = 0; i < bucket.size(); ++i) {
      if (counts(*bucket[i])) updated.push_back(weights[i]);
      if (graph_.type(weights[i]) == graph_.type(bucket[i]->parameter)) continue;
      ranges.updated.push_back(weights[i]);
      ranges.weights.push_back(bucket[i]->parameter);
    }
    if (!state_axes_.empty()) sums_.add_squares(squares, std::exchange(updated, {}), "param");
    if (ranges.updated.empty()) return;
    gather(ranges);
    gathering_.push_back(std::move(ranges));
    // Over an outer axis while the next bucket's ranges travel over the inner one.
    if (gathering_.size() == 2) {
      gather(gathering_.front());
      gathering_.erase(gathering_.begin());
    }
  }

  struct ParameterRanges {
    std::vector<ValueId> updated, weights;
  };

  // Brings updated ranges one axis nearer to everyone's weights, from the inner axes out.
  void gather(ParameterRanges& ranges) {
    const Placements& wanted = graph_.type(ranges.weights.front()).placements;
    std::vector<int> axes;
    for (const int axis : state_axes_) {
      if (graph_.type(ranges.updated.front()).placements[axis] != wanted[axis])
        axes.push_back(axis);
    }
    if (axes.empty()) return;
    ranges.updated = redistribute(graph_, ranges.updated, graph_.mesh().axis(axes.back()).name,
                                  Placement::replicated(),
                                  axes.size() == 1 ? ranges.weights : std::vector<ValueId>{});
  }

  // Of gradients whose parameters are updated together: a bucket, or as many as give each owner a
  // matrix.
  int64_t update_bytes(const std::vector<TrainedParameter>& trained) const {
    int64_t ranks = 1, most = options_.bucket_bytes;
    for (const int axis : state_axes_) ranks *= graph_.mesh().axis(axis).size;
    for (const TrainedParameter& one : trained) {
      const ParameterRule rule = options_.rule(graph_.value(one.parameter).name);
      const int64_t owners = std::min(ranks, rule.optimizer->most_owners);
      most = std::max(most, owners * whole_gradient_bytes(graph_, one));
    }
    return most;
  }

  // The new weights of the bucket, in its order; parameters of one optimizer together.
  std::vector<ValueId> updated_weights(const Bucket& bucket, UpdatePhase& phase) {
    std::map<const Optimizer*, std::vector<size_t>> indices;
    std::vector<const Optimizer*> order;  // of the graph, not of addresses
    std::vector<OptimizedParameter> parameters;
    for (size_t i = 0; i < bucket.size(); ++i) {
      const std::string& name = graph_.value(bucket[i]->parameter).name;
      const ParameterRule rule = options_.rule(name);
      parameters.push_back({name, bucket[i]->parameter, bucket[i]->gradient,
                            rule.decays ? options_.weight_decay : 0.0});
      std::vector<size_t>& of_optimizer = indices[rule.optimizer];
      if (of_optimizer.empty()) order.push_back(rule.optimizer);
      of_optimizer.push_back(i);
    }
    std::vector<ValueId> weights(bucket.size());
    for (const Optimizer* optimizer : order) {
      std::vector<OptimizedParameter> own;
      for (const size_t i : indices[optimizer]) own.push_back(parameters[i]);
      const std::vector<ValueId> updated = optimizer->append(phase, own);
      for (size_t i = 0; i < own.size(); ++i) weights[indices[optimizer][i]] = updated[i];
    }
    return weights;
  }

  Graph& graph_;
  const UpdateOptions& options_;
  const OptimizerSettings settings_;
  GlobalSums sums_;
  const std::vector<int> state_axes_;       // over which a rank has a range of optimizer state
  std::vector<ParameterRanges> gathering_;  // whose way may not be over
  ValueId learning_rate_ = kNoValue;
  ValueId step_ = kNoValue;
  ValueId num_tokens_ = kNoValue;
};

}  // namespace

Precision parse_precision(std::string_view mode) {
  if (mode == "fp32") return Precision::kF32;
  if (mode == "bf16") return Precision::kBF16;
  // What fp8 products change is not the update.
  if (mode == "bf16-sr" || mode == "fp8") return Precision::kBF16Stochastic;
  if (mode == "mixed") return Precision::kMixed;
  fail(ErrorCode::kUsage, "precision.mode is '{}': expected fp32, bf16, bf16-sr, mixed or fp8",
       mode);
}

DType compute_dtype(Precision precision) {
  return precision == Precision::kF32 ? DType::kF32 : DType::kBF16;
}

void append_update(Graph& graph, const UpdateOptions& options) {
  UpdateBuilder(graph, options).build();
}

void append_loss_total(Graph& graph) { UpdateBuilder(graph, {}).total_loss(); }

}  // namespace skein
