// Runs a small graph on the kernels of the device under test, in memory that shows who writes where
// it should not. On a mesh of several ranks it runs one of them, without collectives: `inputs` are
// that rank's parts, as local_part() cuts them.
#pragma once

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "hwy/targets.h"
#include "skein/base/numbers/philox.h"
#include "skein/ir/graph.h"
#include "tests/ops/test_device.h"

namespace skein::op_test {

// Values that `dtype` can hold, as doubles. Rank 0: an absent optional input.
struct Tensor {
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<double> values;
  Role role = Role::kInput;  // kParameter: its gradient is accumulated in fp32

  double operator[](int64_t index) const { return values[index]; }
  double at(int64_t row, int64_t col) const { return values[row * shape.cols() + col]; }
};
using Tensors = std::vector<Tensor>;

inline double round_to(DType dtype, double value) {
  if (dtype == DType::kF32) return static_cast<float>(value);
  if (dtype == DType::kBF16) return static_cast<float>(bfloat16(static_cast<float>(value)));
  return dtype == DType::kI32 ? std::nearbyint(value) : value;
}

inline Tensor make_tensor(DType dtype, Shape shape, const std::function<double(int64_t)>& value,
                          Role role = Role::kInput) {
  Tensor tensor{dtype, std::move(shape), {}, role};
  tensor.values.resize(tensor.shape.num_elements());
  for (size_t i = 0; i < tensor.values.size(); ++i) tensor.values[i] = round_to(dtype, value(i));
  return tensor;
}
// Normal draws times `scale`; another `stream`, other draws.
inline Tensor random_tensor(DType dtype, Shape shape, uint32_t stream = 0, double scale = 1.0,
                            Role role = Role::kInput) {
  const Philox random(20240917, RandomPurpose::kInitialize, stream, 0);
  return make_tensor(
      dtype, std::move(shape), [&](int64_t i) { return scale * random.normal(i); }, role);
}
// Uniform integers of [0, limit).
inline Tensor random_ids(Shape shape, int64_t limit, uint32_t stream = 0) {
  const Philox random(7, RandomPurpose::kDataOrder, stream, 0);
  return make_tensor(DType::kI32, std::move(shape),
                     [&](int64_t i) { return static_cast<double>(random.word(i) % limit); });
}

// The elements of the whole that each local element of `rank` is; -1: padding.
inline std::vector<int64_t> local_elements(const TensorType& type, const Mesh& mesh, int64_t rank) {
  const Box box = type.local_box(mesh, rank);
  const FlatRange range = type.local_range(mesh, rank);
  std::vector<int64_t> elements(type.local_shape(mesh).num_elements(), -1);
  for (int64_t i = 0; i < range.count; ++i) {
    int64_t rest = range.begin + i, stride = 1;
    elements[i] = 0;
    for (int dim = type.shape.rank() - 1; dim >= 0; --dim) {
      elements[i] += (box.offset[dim] + rest % box.shape.dim(dim)) * stride;
      rest /= box.shape.dim(dim);
      stride *= type.shape.dim(dim);
    }
  }
  return elements;
}

// What `rank` holds of the whole tensor; padding is zero.
inline Tensor local_part(const Tensor& whole, const TensorType& type, const Mesh& mesh,
                         int64_t rank) {
  Tensor part{whole.dtype, type.local_shape(mesh), {}, whole.role};
  for (const int64_t element : local_elements(type, mesh, rank)) {
    part.values.push_back(element < 0 ? 0.0 : whole[element]);
  }
  return part;
}

// Memory for some values side by side; bytes that belong to none must stay as they were.
class Buffer {
 public:
  static constexpr int64_t kGuardBytes = 256;
  static constexpr uint8_t kFill = 0xff;  // NaN in every float type

  explicit Buffer(int64_t num_bytes) : owned_(num_bytes + 2 * kGuardBytes + 64) {
    bytes_ = static_cast<uint8_t*>(test_device().allocate(static_cast<int64_t>(owned_.size())));
    std::fill_n(bytes_, owned_.size(), kFill);
    const auto address = reinterpret_cast<uintptr_t>(bytes_ + kGuardBytes);
    data_ = bytes_ + kGuardBytes + (64 - address % 64) % 64;
  }
  ~Buffer() { test_device().release(bytes_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  uint8_t* data() { return data_; }
  void own(const View& view) {
    const int64_t begin = static_cast<uint8_t*>(view.data) - bytes_;
    const int64_t size = size_of(view.dtype);
    for (int64_t row = 0; row < view.rows(); ++row) {
      const auto at = owned_.begin() + begin + row * view.row_stride * size;
      std::fill(at, at + view.cols() * size, uint8_t{0xff});
    }
  }
  bool intact() const {
    uint8_t changed = 0;  // without a branch: scratch may be large
    for (size_t i = 0; i < owned_.size(); ++i) changed |= (bytes_[i] ^ kFill) & ~owned_[i];
    return changed == 0;
  }

 private:
  std::vector<uint8_t> owned_;  // 0xff, or 0
  uint8_t* bytes_;
  uint8_t* data_;
};

// Gives every value of a graph memory, as the layouts of the ops ask, and runs the nodes once.
class GraphRun {
 public:
  struct Options {
    int num_threads = 2;
    int64_t row_padding = 0;  // elements between the rows of activations
    int64_t simd_target = 0;  // of Highway; 0: the best of this machine
    int64_t rank = 0;         // in the graph's mesh
  };

  GraphRun(const Graph& graph, const std::map<ValueId, Tensor>& inputs, Options options)
      : graph_(graph), options_(options), views_(graph.values().size()) {
    for (const Node& node : graph.nodes()) place_required_bundles(node);
    for (const auto& [id, tensor] : inputs) {
      if (views_[id].data == nullptr) allocate(id);
      fill(views_[id], tensor.values);
    }
    omp_set_num_threads(options.num_threads);
    const KernelTable& kernels = test_device().kernels;
    if (options.simd_target != 0) hwy::GetChosenTarget().Update(options.simd_target);
    for (const Node& node : graph.nodes()) run(node, kernels);
    hwy::GetChosenTarget().DeInit();
    for (const auto& buffer : buffers_) {
      EXPECT_TRUE(buffer->intact()) << "a kernel wrote outside of its operands or scratch";
    }
  }

  std::vector<double> read(ValueId id) const { return values_of(views_.at(id)); }

  static std::vector<double> values_of(const View& view) {
    std::vector<double> values;
    for (int64_t row = 0; row < view.rows(); ++row) {
      for (int64_t i = row * view.row_stride; i < row * view.row_stride + view.cols(); ++i) {
        values.push_back(load(view, i));
      }
    }
    return values;
  }

  static void fill(const View& view, const std::vector<double>& values) {
    int64_t next = 0;
    for (int64_t row = 0; row < view.rows(); ++row) {
      for (int64_t col = 0; col < view.cols(); ++col) {
        store(view, row * view.row_stride + col, values.at(next++));
      }
    }
  }

 private:
  static double load(const View& view, int64_t i) {
    if (view.dtype == DType::kF32) return view.as<float>()[i];
    if (view.dtype == DType::kBF16) return static_cast<float>(view.as<bfloat16>()[i]);
    return view.dtype == DType::kI32 ? view.as<int32_t>()[i] : view.as<double>()[i];
  }
  static void store(const View& view, int64_t i, double value) {
    if (view.dtype == DType::kF32) view.as<float>()[i] = static_cast<float>(value);
    if (view.dtype == DType::kBF16) view.as<bfloat16>()[i] = bfloat16(static_cast<float>(value));
    if (view.dtype == DType::kI32) view.as<int32_t>()[i] = static_cast<int32_t>(value);
    if (view.dtype == DType::kF64) view.as<double>()[i] = value;
  }
  void place(Buffer& buffer, ValueId id, int64_t offset, int64_t row_stride) {
    const DType dtype = graph_.type(id).dtype;
    views_[id] = {buffer.data() + offset * size_of(dtype), dtype, shape(id), row_stride};
    buffer.own(views_[id]);
  }
  Shape shape(ValueId id) const { return graph_.type(id).local_shape(graph_.mesh()); }
  Buffer& new_buffer(int64_t num_bytes) {
    buffers_.push_back(std::make_unique<Buffer>(num_bytes));
    return *buffers_.back();
  }
  void allocate(ValueId id) {
    const Value& value = graph_.value(id);
    // What outlives a step is stored without gaps; so are vectors, and all values of updates.
    const bool packed = value.role == Role::kParameter || value.role == Role::kOptimizer ||
                        value.name.starts_with("sum.") || shape(id).rank() < 2 ||
                        graph_.nodes().front().phase == Phase::kUpdate;
    const int64_t stride = shape(id).cols() + (packed ? 0 : options_.row_padding);
    place(new_buffer(shape(id).rows() * stride * size_of(value.type.dtype)), id, 0, stride);
  }
  void place_required_bundles(const Node& node) {
    if (node.op->layout == nullptr) return;
    for (const Bundle& bundle : node.op->layout(graph_.call(node)).bundles) {
      if (!bundle.required || bundle.outputs) continue;
      const ValueId first = node.inputs.at(bundle.operands.at(0));
      const bool stacked = bundle.dim == 0 && shape(first).rank() >= 2;
      int64_t stride = stacked ? shape(first).cols() + options_.row_padding : 0, total = 0;
      for (const int operand : bundle.operands) {
        const Shape part = shape(node.inputs.at(operand));
        if (!stacked) stride += part.cols();
        total += part.rows() * (stacked ? stride : part.cols());
      }
      Buffer& buffer = new_buffer(total * size_of(graph_.type(first).dtype));
      int64_t offset = 0;
      for (const int operand : bundle.operands) {
        const Shape part = shape(node.inputs.at(operand));
        place(buffer, node.inputs[operand], offset, stride);
        offset += stacked ? part.rows() * stride : part.cols();
      }
    }
  }
  void place_outputs(const Node& node) {
    if (node.op->layout != nullptr) {
      for (const Alias& alias : node.op->layout(graph_.call(node)).aliases) {
        const ValueId input = node.inputs.at(alias.input), output = node.outputs.at(alias.output);
        if (input == kNoValue) continue;
        const DType dtype = graph_.type(output).dtype;
        const bool vector = shape(output).rank() < 2;
        const View& whole = views_[input];
        const int64_t offset = alias.row_offset * (vector ? 1 : whole.row_stride);
        views_[output] = {static_cast<uint8_t*>(whole.data) + offset * size_of(dtype), dtype,
                          shape(output), vector ? shape(output).cols() : whole.row_stride};
      }
    }
    for (const ValueId output : node.outputs) {
      if (views_[output].data == nullptr) allocate(output);
    }
  }
  void run(const Node& node, const KernelTable& kernels) {
    place_outputs(node);
    const auto found = kernels.find(node.op->name);
    if (found == kernels.end()) fail(ErrorCode::kInternal, "no kernel '{}'", node.op->name);
    const Kernel& kernel = found->second;
    KernelCall call{.attrs = node.attrs, .stream = test_device().stream};
    if (node.op->localize != nullptr) {
      node.op->localize(graph_.call(node), options_.rank, call.attrs);
    }
    for (const ValueId id : node.inputs) call.inputs.push_back(id < 0 ? View{} : views_[id]);
    for (const ValueId id : node.outputs) call.outputs.push_back(views_[id]);
    KernelCall plan = call;  // no memory yet
    for (View& view : plan.inputs) view.data = nullptr;
    for (View& view : plan.outputs) view.data = nullptr;
    if (kernel.prepare != nullptr) call.state = plan.state = kernel.prepare(plan);
    states_.push_back(call.state);
    const int64_t scratch = kernel.scratch_bytes == nullptr ? 0 : kernel.scratch_bytes(plan);
    Buffer& buffer = new_buffer(scratch);
    buffer.own(View::contiguous(buffer.data(), DType::kBF16, Shape{(scratch + 1) / 2}));
    if (scratch > 0) call.scratch = buffer.data();
    kernel.run(call);
    test_device().synchronize();
  }

  const Graph& graph_;
  Options options_;
  std::vector<View> views_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<std::shared_ptr<const void>> states_;  // which nodes may share
};

}  // namespace skein::op_test
