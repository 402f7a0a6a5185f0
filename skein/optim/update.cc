#include "skein/optim/update.h"

#include "skein/base/exact_sum.h"
#include "skein/base/hash.h"
#include "skein/ops/adamw/adamw.h"
#include "skein/ops/add/add.h"
#include "skein/ops/clip_scale/clip_scale.h"
#include "skein/ops/fill_zero/fill_zero.h"
#include "skein/ops/fold/fold.h"
#include "skein/ops/pipeline/pipeline.h"
#include "skein/ops/redistribute/redistribute.h"
#include "skein/ops/sum_squares/sum_squares.h"

namespace skein {
namespace {

struct Trained {
  ValueId parameter = kNoValue;
  // After the last micro-batch: one for each scope that uses the parameter, first its own.
  std::vector<ValueId> sums;
  ValueId gradient = kNoValue;  // over all ranks: whole, or this rank's range
};

// What the memory of each value holds in the end, following the chains of in-place ops.
std::vector<ValueId> latest_values(const Graph& graph) {
  std::vector<ValueId> latest(graph.values().size());
  for (size_t id = 0; id < latest.size(); ++id) latest[id] = static_cast<ValueId>(id);
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (node->op->layout == nullptr) continue;
    for (const Alias& alias : node->op->layout(graph.call(*node)).aliases) {
      const ValueId input = node->inputs[alias.input];
      if (alias.in_place && input != kNoValue) latest[input] = latest[node->outputs[alias.output]];
    }
  }
  return latest;
}

std::vector<Trained> trained_parameters(const Graph& graph) {
  const std::vector<ValueId> latest = latest_values(graph);
  std::map<std::string, std::vector<ValueId>> sums;  // by parameter
  for (const Value& value : graph.values()) {
    if (value.role != Role::kGradient) continue;
    const std::string name = value.name.substr(std::string_view("grad.").size());
    const size_t slash = name.find('/');
    std::vector<ValueId>& list = sums[name.substr(0, slash)];
    list.insert(slash == std::string::npos ? list.begin() : list.end(),
                latest[graph.find(value.name)]);
  }
  std::vector<Trained> result;
  for (size_t id = 0; id < graph.values().size(); ++id) {
    if (graph.values()[id].role != Role::kParameter) continue;
    const auto found = sums.find(graph.values()[id].name);
    if (found != sums.end()) {
      result.push_back({.parameter = static_cast<ValueId>(id), .sums = found->second});
    }
  }
  return result;
}

class UpdateBuilder {
 public:
  UpdateBuilder(Graph& graph, const UpdateOptions& options)
      : graph_(graph),
        options_(options),
        data_axis_(graph.mesh().find("dp")),
        pipelined_(graph.mesh().size("pp") > 1) {}

  void build() {
    trained_ = trained_parameters(graph_);
    add_reports();
    total_loss();
    learning_rate_ = scalar("learning_rate", DType::kF32);
    step_ = scalar("step", DType::kI32);

    for (const Bucket& bucket : buckets()) {
      reduce(bucket);
      sum_over_model_axes(bucket);  // of ranges, where there are some: less to move
    }
    Squares grad_squares;
    std::vector<ValueId> gradients;
    for (Trained& one : trained_) {
      add_shared(one);
      if (counts(one)) gradients.push_back(one.gradient);
    }
    add_squares(grad_squares, gradients, "grad");
    const auto clip = clip_scale(graph_, total(grad_squares, "grad"), num_tokens_,
                                 options_.clip_norm, "grad_scale", "grad_norm");
    graph_.mark_output(clip.norm);
    finish_reports();
    Squares param_squares;
    for (const Bucket& bucket : buckets()) update(bucket, clip.scale, param_squares);
    graph_.mark_output(total(param_squares, "param"));
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
    ValueId sum = whole_loss(loss);
    if (pipelined_) sum = sum_over_stages(sum);
    graph_.replace_output(loss, sum);
    num_tokens_ = whole(scalar("num_label_tokens", DType::kI32, "dp"));
    if (graph_.value(num_tokens_).producer >= 0) graph_.rename(num_tokens_, "global_label_tokens");
    graph_.mark_output(num_tokens_);
  }

 private:
  using Bucket = std::vector<Trained*>;
  // Of values that are placed alike, so that each counts once, as its type says: by whether each
  // axis splits them.
  using Squares = std::map<std::vector<bool>, ValueId>;

  ValueId scalar(const std::string& name, DType dtype, std::string_view pending_over = "") {
    TensorType type = TensorType::replicated(dtype, Shape{1}, graph_.mesh());
    const int axis = graph_.mesh().find(pending_over);
    if (axis >= 0 && graph_.mesh().axis(axis).size > 1) {
      type.placements[axis] = Placement::partial();
    }
    return graph_.add_input(Role::kInput, name, std::move(type));
  }

  const Placement& placement(ValueId id, int axis) const {
    return graph_.type(id).placements[axis];
  }

  ValueId whole(ValueId sum) {
    Placements wanted = graph_.type(sum).placements;
    for (Placement& one : wanted) {
      if (one.is_partial()) one = Placement::replicated();
    }
    return redistribute_all(graph_, sum, wanted);
  }

  // ---- what ranks report to each other: it goes with other scalars, never alone ----

  void add_reports() {
    TensorType type = TensorType::replicated(DType::kF64, Shape{kNumReports}, graph_.mesh());
    for (int axis = 0; axis < graph_.mesh().num_axes(); ++axis) {
      const MeshAxis& of = graph_.mesh().axis(axis);
      if (of.size == 1) continue;
      several_ranks_ = true;
      if (of.name != "pp") type.placements[axis] = Placement::partial();  // pp: sum_over
    }
    if (!several_ranks_) return;
    graph_.set_phase(Phase::kUpdate);
    graph_.set_scope({"update"});
    reports_ = graph_.add_input(Role::kInput, "rank_reports", std::move(type));
  }

  // As `whole`, over data and context ranks. A stage without the head has no loss to add up there,
  // and adds up the reports alone, while the one that has adds up both: stages meet after it.
  ValueId whole_loss(ValueId sum) {
    for (int axis = graph_.mesh().num_axes() - 1; axis >= 0; --axis) {
      const std::string& name = graph_.mesh().axis(axis).name;
      std::vector<ValueId*> values;
      if (placement(sum, axis).is_partial()) values.push_back(&sum);
      const bool reported = reports_ != kNoValue && placement(reports_, axis).is_partial();
      if (reported && (name == "dp" || name == "cp")) values.push_back(&reports_);
      redistribute_each(values, axis, Placement::replicated());
    }
    return sum;
  }

  // As `whole`; where it is pending over an axis over which the reports are, they go along.
  ValueId whole_with_reports(ValueId sum) {
    for (int axis = graph_.mesh().num_axes() - 1; axis >= 0; --axis) {
      if (!placement(sum, axis).is_partial()) continue;
      std::vector<ValueId*> values = {&sum};
      if (reports_ != kNoValue && placement(reports_, axis).is_partial()) {
        values.push_back(&reports_);
      }
      redistribute_each(values, axis, Placement::replicated());
    }
    return sum;
  }

  ValueId sum_over_stages(ValueId sum) {
    if (reports_ == kNoValue) return sum_over(graph_, sum, "pp");
    const auto sums = sum_over(graph_, {sum, reports_}, "pp");
    reports_ = sums[1];
    return sums[0];
  }

  void finish_reports() {
    if (reports_ == kNoValue) return;
    reports_ = whole(reports_);  // over axes along which nothing else was summed: none so far
    graph_.rename(reports_, "all_reports");
    graph_.mark_output(reports_);
  }

  bool splits_state() const {
    return options_.zero > 0 && data_axis_ >= 0 && graph_.mesh().axis(data_axis_).size > 1;
  }

  int64_t whole_gradient_bytes(const Trained& one) const {
    TensorType type = graph_.type(one.sums.front());
    if (type.flat_axis() >= 0) type.placements[data_axis_] = Placement::replicated();
    return type.local_bytes(graph_.mesh());
  }

  // Consecutive parameters, up to kBucketBytes of gradient.
  std::vector<Bucket> buckets() {
    std::vector<Bucket> all;
    int64_t bytes = 0;
    for (Trained& one : trained_) {
      const int64_t of_one = whole_gradient_bytes(one);
      if (all.empty() || bytes + of_one > kBucketBytes) {
        all.emplace_back();
        bytes = 0;
      }
      all.back().push_back(&one);
      bytes += of_one;
    }
    return all;
  }

  // What is pending over context and tensor axes, one collective an axis.
  void sum_over_model_axes(const Bucket& bucket) {
    for (int axis = 0; axis < graph_.mesh().num_axes(); ++axis) {
      if (axis == data_axis_) continue;
      std::vector<ValueId*> pending;
      for (Trained* one : bucket) {
        for (ValueId& sum : one->sums) {
          if (placement(sum, axis).is_partial()) pending.push_back(&sum);
        }
      }
      redistribute_each(pending, axis, Placement::replicated());
    }
  }

  void redistribute_each(const std::vector<ValueId*>& values, int axis, Placement to) {
    if (values.empty()) return;
    std::vector<ValueId> ids;
    for (const ValueId* value : values) ids.push_back(*value);
    const auto results = redistribute(graph_, ids, graph_.mesh().axis(axis).name, to);
    for (size_t i = 0; i < results.size(); ++i) *values[i] = results[i];
  }

  // Over the data axis; then the memory of the full sums is ready for the next step.
  void reduce(const Bucket& bucket) {
    std::vector<ValueId*> pending;
    std::vector<ValueId> full;
    for (Trained* one : bucket) {
      for (ValueId& sum : one->sums) {
        if (data_axis_ < 0 || !placement(sum, data_axis_).is_partial()) continue;
        pending.push_back(&sum);
        full.push_back(sum);
      }
    }
    const bool scatter = splits_state();
    redistribute_each(pending, data_axis_, scatter ? Placement::flat() : Placement::replicated());
    if (scatter && !full.empty()) fill_zero(graph_, full);
  }

  // gradient = other + gradient, in place; returns what is left of the other.
  ValueId add_to_gradient(Trained& one, ValueId other) {
    const FoldPair sum = fold(graph_, {{other, one.gradient}}, FoldMode::kMerge).front();
    one.gradient = sum.gradient;
    return sum.level;
  }

  // The sums of one parameter's several uses, here and on another stage.
  void add_shared(Trained& one) {
    one.gradient = one.sums.front();
    for (size_t i = 1; i < one.sums.size(); ++i) {
      const ValueId rest = add_to_gradient(one, one.sums[i]);
      if (!splits_state()) fill_zero(graph_, {rest});  // else it was, when it was reduced
    }
    const std::string name = graph_.value(one.parameter).name;  // values move as others are added
    const auto shared = options_.shared_with_stage.find(name);
    if (shared == options_.shared_with_stage.end()) return;
    const TensorType type = graph_.type(one.gradient);
    const ValueId buffer = graph_.add_input(Role::kInput, "send.grad." + name, type);
    constexpr int64_t kChannel = int64_t{1} << 32;  // beyond those of chunks
    send(graph_, one.gradient, buffer, kForwardGroup, shared->second, kChannel);
    add_to_gradient(
        one, receive(graph_, type, kForwardGroup, shared->second, "grad." + name + ".received"));
  }

  bool counts(const Trained& one) const {
    const auto shared = options_.shared_with_stage.find(graph_.value(one.parameter).name);
    return shared == options_.shared_with_stage.end() || options_.stage < shared->second;
  }

  void add_squares(Squares& squares, const std::vector<ValueId>& values, const std::string& what) {
    std::map<std::vector<bool>, std::vector<ValueId>> groups;
    for (const ValueId id : values) {
      std::vector<bool> split;
      for (const Placement& at : graph_.type(id).placements) split.push_back(!at.is_replicated());
      groups[split].push_back(id);
    }
    for (const auto& [split, group] : groups) {
      const ValueId sum = sum_squares(graph_, group, what + "_squares");
      const auto [entry, fresh] = squares.try_emplace(split, sum);
      if (!fresh) entry->second = add(graph_, entry->second, sum, what + "_squares");
    }
  }

  ValueId total(const Squares& squares, const std::string& what) {
    ValueId sum = kNoValue;
    for (const auto& [split, partial] : squares) {
      const ValueId of_all = whole_with_reports(partial);
      sum = sum == kNoValue ? of_all : add(graph_, sum, of_all, what + "_squares");
    }
    if (pipelined_) sum = sum_over(graph_, sum, "pp");
    return named(sum, what + "_norm_squared");
  }

  ValueId named(ValueId id, const std::string& name) {
    graph_.rename(id, name);
    return id;
  }

  void update(const Bucket& bucket, ValueId scale, Squares& squares) {
    std::vector<ValueId> updated, ranges, weights;
    for (const Trained* one : bucket) {
      const ValueId weight = update(*one, scale);
      if (counts(*one)) updated.push_back(weight);
      if (splits_state() && !placement(one->parameter, data_axis_).is_flat()) {
        ranges.push_back(weight);
        weights.push_back(one->parameter);
      }
    }
    if (!updated.empty()) add_squares(squares, updated, "param");
    if (ranges.empty()) return;
    // The updated ranges go to everyone's weights.
    redistribute(graph_, ranges, graph_.mesh().axis(data_axis_).name, Placement::replicated(),
                 weights);
  }

  ValueId state(const std::string& prefix, const Trained& one, DType dtype) {
    TensorType type = graph_.type(one.parameter);
    type.dtype = dtype;
    if (splits_state()) type.placements[data_axis_] = Placement::flat();
    return graph_.add_input(Role::kOptimizer, prefix + graph_.value(one.parameter).name, type);
  }

  ValueId update(const Trained& one, ValueId scale) {
    const std::string name = graph_.value(one.parameter).name;
    AdamwInputs inputs;
    inputs.weight = one.parameter;
    inputs.gradient = one.gradient;
    inputs.exp_avg = state("exp_avg.", one, options_.moments);
    inputs.exp_avg_sq = state("exp_avg_sq.", one, options_.moments);
    if (options_.precision == Precision::kMixed) {
      inputs.master = state("master.", one, DType::kF32);
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
  const int data_axis_;
  const bool pipelined_;
  std::vector<Trained> trained_;
  ValueId learning_rate_ = kNoValue;
  ValueId step_ = kNoValue;
  ValueId num_tokens_ = kNoValue;
  ValueId reports_ = kNoValue;
  bool several_ranks_ = false;
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
