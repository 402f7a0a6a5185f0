// Which values share memory: resolves aliases and bundles to storages.
//
// A storage is a matrix of one dtype; a value occupies a rectangle of it. Seen as a matrix, a value
// has its first dim as rows and all others as columns (a vector is one column).
#pragma once

#include <vector>

#include "skein/ir/graph.h"

namespace skein {

struct Storage {
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
  Role role = Role::kActivation;
  int64_t num_bytes() const { return rows * cols * size_of(dtype); }
};

struct StoragePlace {
  int storage = -1;
  int64_t row = 0;
  int64_t col = 0;
};

struct StorageAssignment {
  std::vector<Storage> storages;
  std::vector<StoragePlace> places;  // by value
};

// Errors  Error{kInternal} where a required bundle cannot be laid out
StorageAssignment assign_storage(const Graph& graph);

}  // namespace skein
