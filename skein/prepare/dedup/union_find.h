// Connected components of documents, from pairs of them.
//
// Formula  a component is named by its smallest member, so that the order of pairs does not matter
// Memory   4 bytes a document
// Cost     nearly constant per pair (paths are halved)
// Threads  one at a time
// Source   Tarjan, van Leeuwen, "Worst-case analysis of set union algorithms", 1984
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace skein {

class UnionFind {
 public:
  explicit UnionFind(uint32_t num_documents) : parent_(num_documents) {
    std::iota(parent_.begin(), parent_.end(), 0U);
  }

  uint32_t find(uint32_t document) {
    while (parent_[document] != document) {
      parent_[document] = parent_[parent_[document]];
      document = parent_[document];
    }
    return document;
  }

  void join(uint32_t a, uint32_t b) {
    a = find(a), b = find(b);
    if (a > b) std::swap(a, b);
    parent_[b] = a;
  }

 private:
  std::vector<uint32_t> parent_;
};

}  // namespace skein
