#include "skein/optim/global_sums.h"

#include "skein/ops/add/add.h"
#include "skein/ops/redistribute/redistribute.h"
#include "skein/ops/sum_squares/sum_squares.h"
#include "skein/optim/gradient_buckets.h"
#include "skein/optim/update.h"

namespace skein {

void GlobalSums::begin_reports(int64_t num_corpora) {
  TensorType type =
      TensorType::replicated(DType::kF64, Shape{kNumReports + num_corpora - 1}, graph_.mesh());
  bool several_ranks = false;
  for (int axis = 0; axis < graph_.mesh().num_axes(); ++axis) {
    const MeshAxis& of = graph_.mesh().axis(axis);
    if (of.size == 1) continue;
    several_ranks = true;
    if (of.name != "pp") type.placements[axis] = Placement::partial();  // pp: sum_over
  }
  if (!several_ranks) return;
  reports_ = graph_.add_input(Role::kInput, "rank_reports", std::move(type));
}

void GlobalSums::finish_reports() {
  if (reports_ == kNoValue) return;
  reports_ = whole(reports_);  // over axes along which nothing else was summed: none so far
  graph_.rename(reports_, "all_reports");
  graph_.mark_output(reports_);
}

ValueId GlobalSums::of_losses(ValueId loss) {
  const ValueId sum = whole_loss(loss);
  if (!pipelined_) return sum;
  if (reports_ == kNoValue) return sum_over(graph_, sum, "pp");
  const auto sums = sum_over(graph_, {sum, reports_}, "pp");
  reports_ = sums[1];
  return sums[0];
}

ValueId GlobalSums::of_label_tokens(ValueId num_tokens) { return whole(num_tokens); }

void GlobalSums::add_squares(Squares& squares, const std::vector<ValueId>& values,
                             const std::string& what) {
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

ValueId GlobalSums::of_squares(const Squares& squares, const std::string& what) {
  ValueId sum = kNoValue;
  for (const auto& [split, partial] : squares) {
    const ValueId of_all = whole_with_reports(partial);
    sum = sum == kNoValue ? of_all : add(graph_, sum, of_all, what + "_squares");
  }
  if (pipelined_) sum = sum_over(graph_, sum, "pp");
  graph_.rename(sum, what + "_norm_squared");
  return sum;
}

bool GlobalSums::is_pending(ValueId id, int axis) const {
  return graph_.type(id).placements[axis].is_partial();
}

bool GlobalSums::reports_pending(int axis) const {
  return reports_ != kNoValue && is_pending(reports_, axis);
}

ValueId GlobalSums::whole(ValueId sum) {
  Placements wanted = graph_.type(sum).placements;
  for (Placement& one : wanted) {
    if (one.is_partial()) one = Placement::replicated();
  }
  return redistribute_all(graph_, sum, wanted);
}

// As `whole`, over data and context ranks. A stage without the head has no loss to add up there,
// and adds up the reports alone, while the one that has adds up both: stages meet after it.
ValueId GlobalSums::whole_loss(ValueId sum) {
  for (int axis = graph_.mesh().num_axes() - 1; axis >= 0; --axis) {
    const std::string& name = graph_.mesh().axis(axis).name;
    std::vector<ValueId*> values;
    if (is_pending(sum, axis)) values.push_back(&sum);
    if (reports_pending(axis) && (name == "dp" || name == "cp")) values.push_back(&reports_);
    redistribute_each(graph_, values, axis, Placement::replicated());
  }
  return sum;
}

// As `whole`; where it is pending over an axis over which the reports are, they go along.
ValueId GlobalSums::whole_with_reports(ValueId sum) {
  for (int axis = graph_.mesh().num_axes() - 1; axis >= 0; --axis) {
    if (!is_pending(sum, axis)) continue;
    std::vector<ValueId*> values = {&sum};
    if (reports_pending(axis)) values.push_back(&reports_);
    redistribute_each(graph_, values, axis, Placement::replicated());
  }
  return sum;
}

}  // namespace skein
