// Which values of a graph occupy the same memory according to the layouts of its ops: views, parts
// of a concatenation, and outputs written in place of an input. Memory is compared by rows (the
// first dim), which is how layouts share it; values that are merely adjacent share nothing.
//
// Cost  a lookup follows one link for each concatenation that a value went into
#pragma once

#include <vector>

#include "skein/ir/graph.h"

namespace skein {

class SharedRows {
 public:
  explicit SharedRows(const Graph& graph)
      : graph_(graph), place_(graph.values().size()), rows_(graph.values().size(), kUnknown) {}

  // Adds the outputs of `node`; its inputs must have been added before. Graph inputs need no
  // adding.
  void add(const Node& node, const Layout& layout);

  // All values so far that have a row in common with `id`, itself included.
  std::vector<ValueId> sharing(ValueId id);
  bool share(ValueId a, ValueId b);

 private:
  struct RowPlace {
    int block = -1;
    int64_t row = 0;
  };
  // A run of rows; part of another block once a concatenation joined them.
  struct Block {
    RowPlace parent;
    std::vector<ValueId> values;
  };

  RowPlace resolve(ValueId id);
  void put(ValueId id, RowPlace at);
  void join(const std::vector<ValueId>& parts);
  int64_t num_rows(ValueId id);

  const Graph& graph_;
  static constexpr int64_t kUnknown = -1;
  std::vector<RowPlace> place_;  // by value
  std::vector<int64_t> rows_;    // by value, of a rank: asked for once
  std::vector<Block> blocks_;
};

}  // namespace skein
