// What the update sums over all ranks beside gradients: losses, label tokens, squares of norms.
// What ranks report to each other goes along with them, never alone.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "skein/ir/graph.h"

namespace skein {

class GlobalSums {
 public:
  // Of values that are placed alike, so that each counts once, as its type says: by whether each
  // axis splits them.
  using Squares = std::map<std::vector<bool>, ValueId>;

  explicit GlobalSums(Graph& graph) : graph_(graph), pipelined_(graph.mesh().size("pp") > 1) {}

  // What this rank reports becomes an input of the graph, where there are several ranks; the sum of
  // all, after the other sums, an output.
  void begin_reports(int64_t num_corpora);
  void finish_reports();

  ValueId of_losses(ValueId loss);
  ValueId of_label_tokens(ValueId num_tokens);

  // Sums of squares over all of several lists of values: `what` is for names.
  void add_squares(Squares& squares, const std::vector<ValueId>& values, const std::string& what);
  ValueId of_squares(const Squares& squares, const std::string& what);

 private:
  bool is_pending(ValueId id, int axis) const;
  bool reports_pending(int axis) const;
  ValueId whole(ValueId sum);
  ValueId whole_loss(ValueId sum);
  ValueId whole_with_reports(ValueId sum);

  Graph& graph_;
  const bool pipelined_;
  ValueId reports_ = kNoValue;
};

}  // namespace skein
