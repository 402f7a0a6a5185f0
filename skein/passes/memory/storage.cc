#include "skein/passes/memory/storage.h"

#include <algorithm>

namespace skein {
namespace {

class Assigner {
 public:
  explicit Assigner(const Graph& graph) : graph_(graph), place_(graph.values().size()) {}

  StorageAssignment run() {
    std::vector<bool> produced(graph_.values().size(), false);
    for (const Node& node : graph_.nodes()) {
      for (const ValueId id : node.outputs) produced[id] = true;
    }
    for (size_t id = 0; id < produced.size(); ++id) {
      if (!produced[id] && graph_.values()[id].role != Role::kActivation)
        open(static_cast<int>(id));
    }
    for (const Node& node : graph_.nodes()) add_node(node);
    return resolve_all();
  }

 private:
  // A matrix that becomes a storage unless a bundle makes it part of another region.
  struct Region {
    int64_t rows, cols;
    DType dtype;
    Role role;
    StoragePlace parent;  // storage < 0: a root
  };

  void open(ValueId id) {
    const Value& value = graph_.value(id);
    const Shape local = value.type.local_shape(graph_.mesh());
    const int64_t rows = local.rank() == 0 ? 1 : local.dim(0);
    const int64_t cols = rows == 0 ? 0 : local.num_elements() / rows;
    regions_.push_back({rows, cols, value.type.dtype, value.role, {}});
    place_[id] = {static_cast<int>(regions_.size()) - 1, 0, 0};
  }

  void add_node(const Node& node) {
    Layout layout;
    if (node.op->layout != nullptr) layout = node.op->layout(graph_.call(node));
    for (const Bundle& bundle : layout.bundles) {
      if (!bundle.outputs) add_bundle(node, bundle);
    }
    for (const ValueId id : node.outputs) place_[id] = {};
    for (const Alias& alias : layout.aliases) {
      const ValueId input = node.inputs.at(alias.input);
      if (input == kNoValue) continue;
      StoragePlace place = resolve(place_.at(input));
      place.row += alias.row_offset;
      place_[node.outputs.at(alias.output)] = place;
    }
    for (const ValueId id : node.outputs) {
      if (place_[id].storage < 0) open(id);
    }
    for (const Bundle& bundle : layout.bundles) {
      if (bundle.outputs) add_bundle(node, bundle);
    }
  }

  StoragePlace resolve(StoragePlace place) const {
    while (regions_[place.storage].parent.storage >= 0) {
      const StoragePlace& parent = regions_[place.storage].parent;
      place = {parent.storage, place.row + parent.row, place.col + parent.col};
    }
    return place;
  }

  // Does nothing if the values are adjacent already; otherwise joins them if they are whole
  // storages.
  void add_bundle(const Node& node, const Bundle& bundle) {
    std::vector<ValueId> ids;
    for (const int operand : bundle.operands) {
      const ValueId id = bundle.outputs ? node.outputs.at(operand) : node.inputs.at(operand);
      if (id != kNoValue) ids.push_back(id);
    }
    if (ids.size() < 2 || adjacent(ids, bundle.dim)) return;
    if (can_join(ids, bundle.dim)) {
      join(ids, bundle.dim);
    } else if (bundle.required) {
      fail(ErrorCode::kInternal, "[{}]: '{}' and its neighbours cannot lie side by side",
           node.op->name, graph_.value(ids.front()).name);
    }
  }

  std::pair<int64_t, int64_t> extent(ValueId id) const {
    const Shape local = graph_.type(id).local_shape(graph_.mesh());
    const int64_t rows = local.dim(0);
    return {rows, rows == 0 ? 0 : local.num_elements() / rows};
  }

  bool adjacent(const std::vector<ValueId>& ids, int dim) const {
    StoragePlace next = resolve(place_[ids.front()]);
    for (const ValueId id : ids) {
      const StoragePlace place = resolve(place_[id]);
      if (place.storage != next.storage || place.row != next.row || place.col != next.col) {
        return false;
      }
      const auto [rows, cols] = extent(id);
      (dim == 0 ? next.row : next.col) += dim == 0 ? rows : cols;
    }
    return true;
  }

  bool can_join(const std::vector<ValueId>& ids, int dim) const {
    const Region& first = regions_[resolve(place_[ids.front()]).storage];
    std::vector<int> roots;
    for (const ValueId id : ids) {
      const StoragePlace place = resolve(place_[id]);
      const Region& region = regions_[place.storage];
      const auto [rows, cols] = extent(id);
      const bool whole =
          place.row == 0 && place.col == 0 && rows == region.rows && cols == region.cols;
      const bool fits = dim == 0 ? region.cols == first.cols : region.rows == first.rows;
      const bool repeated = std::find(roots.begin(), roots.end(), place.storage) != roots.end();
      if (!whole || !fits || repeated || region.dtype != first.dtype || region.role != first.role) {
        return false;
      }
      roots.push_back(place.storage);
    }
    return true;
  }

  void join(const std::vector<ValueId>& ids, int dim) {
    const int joined = static_cast<int>(regions_.size());
    Region region = regions_[resolve(place_[ids.front()]).storage];
    (dim == 0 ? region.rows : region.cols) = 0;
    for (const ValueId id : ids) {
      Region& part = regions_[resolve(place_[id]).storage];
      part.parent = {joined, dim == 0 ? region.rows : 0, dim == 0 ? 0 : region.cols};
      (dim == 0 ? region.rows : region.cols) += dim == 0 ? part.rows : part.cols;
    }
    regions_.push_back(region);
  }

  StorageAssignment resolve_all() const {
    StorageAssignment result;
    std::vector<int> storage_of_region(regions_.size(), -1);
    // Storages are numbered in the order of their first value, so that arenas follow the model.
    for (const StoragePlace& place : place_) {
      if (place.storage < 0) {
        result.places.push_back({});
        continue;
      }
      StoragePlace root = resolve(place);
      int& storage = storage_of_region[root.storage];
      if (storage < 0) {
        storage = static_cast<int>(result.storages.size());
        const Region& region = regions_[root.storage];
        result.storages.push_back({region.rows, region.cols, region.dtype, region.role});
      }
      root.storage = storage;
      result.places.push_back(root);
    }
    return result;
  }

  const Graph& graph_;
  std::vector<Region> regions_;
  std::vector<StoragePlace> place_;
};

}  // namespace

StorageAssignment assign_storage(const Graph& graph) { return Assigner(graph).run(); }

}  // namespace skein
