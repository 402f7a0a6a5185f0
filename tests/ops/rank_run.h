// Runs a small graph as every rank of its mesh would, one rank after the other in one process: each
// has its own parts of the values and its own localized attrs; `redistribute` moves parts by hand.
#pragma once

#include <gtest/gtest.h>
#include <omp.h>

#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "tests/ops/graph_run.h"

namespace skein::op_test {

class RankRun {
 public:
  // `inputs` are whole; of a Partial one, the first rank of the axis holds all and the others 0.
  RankRun(const Graph& graph, const std::map<ValueId, Tensor>& inputs, int64_t row_padding = 0)
      : graph_(graph), row_padding_(row_padding), kernels_(test_device().kernels) {
    views_.assign(graph.mesh().num_ranks(), std::vector<View>(graph.values().size()));
    for (const auto& [id, tensor] : inputs) {
      for (int64_t rank = 0; rank < num_ranks(); ++rank) fill_input(rank, id, tensor);
    }
    for (const Node& node : graph.nodes()) {
      if (node.op->name == "redistribute") {
        redistribute(node);
      } else {
        for (int64_t rank = 0; rank < num_ranks(); ++rank) run(node, rank);
      }
    }
    for (const auto& buffer : buffers_) {
      EXPECT_TRUE(buffer->intact()) << "a kernel wrote outside of its operands or scratch";
    }
  }

  int64_t num_ranks() const { return static_cast<int64_t>(views_.size()); }

  // What one rank holds.
  std::vector<double> local(int64_t rank, ValueId id) const {
    return GraphRun::values_of(views_.at(rank).at(id));
  }

  // The whole value: parts put together, terms added, replicas expected to hold the same bits.
  std::vector<double> whole(ValueId id) const {
    const TensorType& type = graph_.type(id);
    std::map<std::vector<int64_t>, std::vector<double>> terms;
    for (int64_t rank = 0; rank < num_ranks(); ++rank) {
      std::vector<double>& term = terms[partial_coordinates(type, rank)];
      term.resize(type.shape.num_elements(), kUnset);
      const std::vector<double> part = local(rank, id);
      size_t next = 0;
      for (const int64_t at : local_elements(type, graph_.mesh(), rank)) {
        EXPECT_TRUE(term[at] == kUnset || term[at] == part[next])
            << "ranks disagree about " << graph_.value(id).name << "[" << at << "]: " << term[at]
            << " and " << part[next];
        term[at] = part[next++];
      }
    }
    std::vector<double> sum(type.shape.num_elements(), 0.0);
    for (const auto& [coordinates, term] : terms) {
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
    }
    return sum;
  }

 private:
  static constexpr double kUnset = -1.2345e300;

  static std::vector<int64_t> indices(const Shape& shape, const Box& box) {
    const bool matrix = shape.rank() == 2;
    const int64_t row = matrix ? box.offset[0] : 0, col = shape.rank() > 0 ? box.offset.back() : 0;
    std::vector<int64_t> result;
    for (int64_t r = 0; r < box.shape.rows(); ++r) {
      for (int64_t c = 0; c < box.shape.cols(); ++c) {
        result.push_back((row + r) * shape.cols() + col + c);
      }
    }
    return result;
  }

  std::vector<int64_t> partial_coordinates(const TensorType& type, int64_t rank) const {
    std::vector<int64_t> coordinates = graph_.mesh().coordinates(rank);
    for (size_t axis = 0; axis < coordinates.size(); ++axis) {
      if (!type.placements[axis].is_partial()) coordinates[axis] = 0;
    }
    return coordinates;
  }

  Buffer& new_buffer(int64_t num_bytes) {
    buffers_.push_back(std::make_unique<Buffer>(num_bytes));
    return *buffers_.back();
  }

  View& allocate(int64_t rank, ValueId id) {
    const Value& value = graph_.value(id);
    const Shape shape = value.type.local_shape(graph_.mesh());
    const bool padded = shape.rank() == 2 && !value.name.starts_with("sum.") &&
                        (value.role == Role::kActivation || value.role == Role::kInput);
    const int64_t stride = shape.cols() + (padded ? row_padding_ : 0);
    Buffer& buffer = new_buffer(shape.rows() * stride * size_of(value.type.dtype));
    View& view = views_[rank][id];
    view = {buffer.data(), value.type.dtype, shape, stride};
    buffer.own(view);
    return view;
  }

  void fill_input(int64_t rank, ValueId id, const Tensor& tensor) {
    const TensorType& type = graph_.type(id);
    const std::vector<int64_t> partial = partial_coordinates(type, rank);
    const bool term = std::accumulate(partial.begin(), partial.end(), int64_t{0}) == 0;
    std::vector<double> part;
    for (const int64_t at : local_elements(type, graph_.mesh(), rank)) {
      part.push_back(term ? tensor.values.at(at) : 0.0);
    }
    GraphRun::fill(allocate(rank, id), part);
  }

  void place_outputs(const Node& node, int64_t rank) {
    std::vector<View>& views = views_[rank];
    if (node.op->layout != nullptr) {
      for (const Alias& alias : node.op->layout(graph_.call(node)).aliases) {
        const View& whole = views[node.inputs.at(alias.input)];
        const ValueId output = node.outputs.at(alias.output);
        const TensorType& type = graph_.type(output);
        const Shape shape = type.local_shape(graph_.mesh());
        const int64_t stride = shape.rank() < 2 ? 1 : whole.row_stride;
        views[output] = {whole.as<uint8_t>() + alias.row_offset * stride * size_of(type.dtype),
                         type.dtype, shape, shape.rank() < 2 ? shape.cols() : stride};
      }
    }
    for (const ValueId output : node.outputs) {
      if (views[output].data == nullptr) allocate(rank, output);
    }
  }

  void run(const Node& node, int64_t rank) {
    place_outputs(node, rank);
    const Kernel& kernel = kernels_.at(node.op->name);
    KernelCall call{.attrs = node.attrs, .stream = test_device().stream};
    if (node.op->localize != nullptr) node.op->localize(graph_.call(node), rank, call.attrs);
    for (const ValueId id : node.inputs) {
      call.inputs.push_back(id < 0 ? View{} : views_[rank][id]);
    }
    for (const ValueId id : node.outputs) call.outputs.push_back(views_[rank][id]);
    if (kernel.prepare != nullptr) call.state = kernel.prepare(call);
    const int64_t bytes = kernel.scratch_bytes == nullptr ? 0 : kernel.scratch_bytes(call);
    call.scratch = new_buffer(bytes).data();
    buffers_.back()->own(View::contiguous(call.scratch, DType::kBF16, Shape{(bytes + 1) / 2}));
    kernel.run(call);
    test_device().synchronize();
  }

  // What the ranks of one axis hold together, as collectives do it: parts of `dim` one behind the
  // other, in rank order.
  std::vector<double> join(const std::vector<int64_t>& ranks, ValueId id, int dim) const {
    const Shape part = views_[ranks[0]][id].shape;
    const auto n = static_cast<int64_t>(ranks.size());
    const int64_t inner = dim == 0 && part.rank() == 2 ? part.cols() : 1;
    const int64_t size = part.dim(dim) * inner, outer = part.num_elements() / size;
    std::vector<double> whole(part.num_elements() * n);
    for (int64_t i = 0; i < n; ++i) {
      const std::vector<double> values = local(ranks[i], id);
      for (int64_t o = 0; o < outer; ++o) {
        std::copy_n(values.begin() + o * size, size, whole.begin() + (o * n + i) * size);
      }
    }
    return whole;
  }

  void redistribute(const Node& node) {
    const ValueId x = node.inputs[0], y = node.outputs[0];
    const int axis = graph_.mesh().find(node.attrs.text("axis"));
    const Placement from = graph_.type(x).placements[axis], to = graph_.type(y).placements[axis];
    for (int64_t rank = 0; rank < num_ranks(); ++rank) {
      const std::vector<int64_t> here = graph_.mesh().coordinates(rank);
      std::vector<int64_t> group;
      for (int64_t other = 0; other < num_ranks(); ++other) {
        std::vector<int64_t> there = graph_.mesh().coordinates(other);
        there[axis] = here[axis];
        if (there == here) group.push_back(other);
      }
      std::vector<double> values = local(rank, x);
      Shape shape = views_[rank][x].shape;
      if (from.is_sharded()) {
        values = join(group, x, from.dim());
        shape.set_dim(from.dim(), shape.dim(from.dim()) * static_cast<int64_t>(group.size()));
      } else if (from.is_partial()) {
        std::fill(values.begin(), values.end(), 0.0);
        for (const int64_t other : group) {
          const std::vector<double> term = local(other, x);
          for (size_t i = 0; i < values.size(); ++i) values[i] += term[i];
        }
      }
      if (to.is_sharded()) {
        Box box{std::vector<int64_t>(shape.rank(), 0), shape};
        box.shape.set_dim(to.dim(), shape.dim(to.dim()) / static_cast<int64_t>(group.size()));
        box.offset[to.dim()] = here[axis] * box.shape.dim(to.dim());
        std::vector<double> part;
        for (const int64_t at : indices(shape, box)) part.push_back(values[at]);
        values = part;
      }
      GraphRun::fill(allocate(rank, y), values);
    }
  }

  const Graph& graph_;
  int64_t row_padding_;
  const KernelTable& kernels_;
  std::vector<std::vector<View>> views_;  // [rank][value]
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

// "S0 R P" as the placements of a mesh's axes.
inline TensorType placed_type(DType dtype, Shape shape, const std::string& placements) {
  TensorType type{dtype, std::move(shape), {}};
  std::istringstream words(placements);
  for (std::string word; words >> word;) type.placements.push_back(Placement::parse(word));
  return type;
}

}  // namespace skein::op_test
