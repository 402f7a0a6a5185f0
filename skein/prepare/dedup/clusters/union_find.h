// Connected components of documents, from pairs of them.
//
// Formula  a component is named by its smallest member, so that neither the order of pairs nor the
//          threads matter: a document's parent is never larger than itself, and what is joined to
//          another is always a root
// Memory   4 bytes a document
// Cost     nearly constant per pair (paths are halved)
// Threads  several at once
// Source   Tarjan, van Leeuwen, "Worst-case analysis of set union algorithms", 1984; without locks:
//          Anderson, Woll, "Wait-free parallel algorithms for the union-find problem", 1991
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace skein {

class UnionFind {
 public:
  explicit UnionFind(uint32_t num_documents) : parent_(num_documents) {
    for (uint32_t i = 0; i < num_documents; ++i) parent_[i].store(i, std::memory_order_relaxed);
  }

  uint32_t find(uint32_t document) {
    while (true) {
      const uint32_t parent = parent_[document].load(std::memory_order_relaxed);
      if (parent == document) return document;
      const uint32_t above = parent_[parent].load(std::memory_order_relaxed);
      // Not a root, and never one again: any that lies above it will do.
      if (above != parent) parent_[document].store(above, std::memory_order_relaxed);
      document = above;
    }
  }

  void join(uint32_t a, uint32_t b) {
    while (true) {
      a = find(a), b = find(b);
      if (a == b) return;
      if (a > b) std::swap(a, b);
      uint32_t root = b;
      if (parent_[b].compare_exchange_strong(root, a, std::memory_order_relaxed)) return;
    }
  }

 private:
  std::vector<std::atomic<uint32_t>> parent_;
};

}  // namespace skein
