// Which values of a graph show the same memory, as its ops' layouts say: views, parts of a
// concatenation, and what an op writes in place of its input. By rows, the first dim, which is how
// layouts share memory; values that only lie beside each other share nothing.
//
// Cost  a step up for each concatenation that a value went into
#pragma once

#include <vector>

#include "skein/ir/graph.h"

namespace skein {

class SharedRows {
 public:
  explicit SharedRows(const Graph& graph) : graph_(graph), place_(graph.values().size()) {}

  // The outputs of `node`, whose inputs were added before. Graph inputs need no adding.
  void add(const Node& node, const Layout& layout);

  // All values so far with a row in common with `id`, itself among them.
  std::vector<ValueId> sharing(ValueId id);
  bool share(ValueId a, ValueId b);

 private:
  struct Place {
    int block = -1;
    int64_t row = 0;
  };
  // Rows that belong together; part of another where a concatenation joined them.
  struct Block {
    Place parent;
    std::vector<ValueId> values;
  };

  Place resolve(ValueId id);
  void put(ValueId id, Place at);
  void join(const std::vector<ValueId>& parts);
  int64_t num_rows(ValueId id) const;

  const Graph& graph_;
  std::vector<Place> place_;  // by value
  std::vector<Block> blocks_;
};

}  // namespace skein
