// One op bound to memory of a device, with made-up numbers in it: what the benchmarks of kernels
// call. Operands lie as the op's layout wants them, side by side where it says so, and as a step
// has them where the case adds to that.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "skein/base/numbers/philox.h"
#include "skein/base/text/units.h"
#include "skein/ir/graph.h"
#include "skein/ops/ops.h"
#include "skein/runtime/device.h"

namespace skein {

struct OpInput {
  DType dtype;
  Shape shape;               // rank 0: absent
  int64_t id_limit = 1;      // of i32: numbers below it
  bool is_positive = false;  // of bf16, as squares are; those of f32 always are
};

struct OpCase {
  std::string name;
  std::string op;
  Attrs attrs;
  std::vector<OpInput> inputs;
  int num_outputs = 1;
  std::vector<Bundle> bundles = {};  // beside those of the op's layout
};

class BoundOp {
 public:
  BoundOp(Device& device, const OpCase& op_case)
      : device_(device), kernel_(kernel_of(device, op_case.op)) {
    try {
      bind(op_case);
    } catch (...) {
      release();
      throw;
    }
  }
  ~BoundOp() { release(); }
  BoundOp(const BoundOp&) = delete;
  BoundOp& operator=(const BoundOp&) = delete;

  const Cost& cost() const { return cost_; }
  int64_t num_bytes() const { return cost_.bytes_read + cost_.bytes_written; }
  const KernelCall& call() const { return call_; }
  void run() const { kernel_.run(call_); }

 private:
  static const Kernel& kernel_of(const Device& device, const std::string& op) {
    const auto found = device.kernels().find(op);
    if (found == device.kernels().end()) {
      fail(ErrorCode::kUnsupported, "[{}]: device {} has no kernel for it", op, device.kind());
    }
    return found->second;
  }

  void bind(const OpCase& op_case) {
    Graph graph(Mesh::standard(1, 1, 1, 1));
    std::vector<ValueId> ids;
    for (const OpInput& input : op_case.inputs) {
      ids.push_back(kNoValue);
      if (input.shape.rank() == 0) continue;
      ids.back() = graph.add_input(Role::kInput, "in" + std::to_string(ids.size()),
                                   TensorType::replicated(input.dtype, input.shape, graph.mesh()));
    }
    std::vector<std::string> names;
    for (int i = 0; i < op_case.num_outputs; ++i) names.push_back("out" + std::to_string(i));
    const OpDef* op = find_op(all_ops(), op_case.op);
    graph.add(*op, ids, op_case.attrs, names);
    const OpCall rules = graph.call(graph.nodes()[0]);
    cost_ = op->cost(rules);
    Layout layout = op->layout == nullptr ? Layout{} : op->layout(rules);
    layout.bundles.insert(layout.bundles.end(), op_case.bundles.begin(), op_case.bundles.end());

    call_.attrs = op_case.attrs;
    if (op->localize != nullptr) op->localize(rules, 0, call_.attrs);
    call_.stream = device_.stream();
    for (const TensorType* type : rules.inputs) call_.inputs.push_back(without_memory(type));
    for (const TensorType* type : rules.outputs) call_.outputs.push_back(without_memory(type));
    place(call_.inputs, layout, &op_case.inputs);
    for (const Alias& alias : layout.aliases) {
      call_.outputs[alias.output] = call_.inputs[alias.input];
    }
    place(call_.outputs, layout, nullptr);
    if (kernel_.scratch_bytes != nullptr) call_.scratch = allocate(kernel_.scratch_bytes(call_));
    if (kernel_.prepare != nullptr) call_.state = kernel_.prepare(call_);
  }

  void* allocate(int64_t num_bytes) {
    const int64_t padded = round_up(num_bytes, 64) + 64;
    memory_.emplace_back(device_.allocate(padded, "an operand"), padded);
    return memory_.back().first;
  }
  void release() {
    for (const auto& [memory, bytes] : memory_) device_.release(memory, bytes);
  }

  static View without_memory(const TensorType* type) {
    return type == nullptr ? View{} : View::contiguous(nullptr, type->dtype, type->shape);
  }

  // Memory for those that have none yet, bundles first. `inputs`: null where these are outputs, and
  // get no numbers.
  void place(std::vector<View>& views, const Layout& layout, const std::vector<OpInput>* inputs) {
    for (const Bundle& bundle : layout.bundles) {
      if (bundle.outputs == (inputs == nullptr)) place_bundle(views, bundle);
    }
    for (size_t i = 0; i < views.size(); ++i) {
      View& view = views[i];
      if (view.shape.rank() == 0 || view.data != nullptr) continue;
      view.data = allocate(view.num_bytes());
      const int64_t count = view.shape.num_elements();
      if (inputs != nullptr) fill(view.data, (*inputs)[i], count);
    }
  }

  void place_bundle(std::vector<View>& views, const Bundle& bundle) {
    int64_t num_bytes = 0, cols = 0;
    for (const int operand : bundle.operands) {
      if (views[operand].shape.rank() != 2 || views[operand].data != nullptr) return;
      num_bytes += views[operand].num_bytes();
      cols += views[operand].cols();
    }
    const DType dtype = views[bundle.operands.front()].dtype;
    char* next = static_cast<char*>(allocate(num_bytes));
    if (!bundle.outputs) fill(next, {dtype}, num_bytes / size_of(dtype));
    for (const int operand : bundle.operands) {
      View& view = views[operand];
      view.data = next;
      if (bundle.dim == 1) view.row_stride = cols;
      next += bundle.dim == 1 ? view.cols() * size_of(dtype) : view.num_bytes();
    }
  }

  void fill(void* memory, const OpInput& input, int64_t count) {
    constexpr int64_t kBlock = int64_t{1} << 18;  // the numbers repeat after so many
    const std::vector<char> numbers = made_up(input, std::min(count, kBlock));
    const int64_t size = size_of(input.dtype);
    for (int64_t done = 0; done < count; done += kBlock) {
      device_.upload(static_cast<char*>(memory) + done * size, numbers.data(),
                     std::min(kBlock, count - done) * size);
    }
  }

  // A single number is a step or a rate: 1, or small.
  static std::vector<char> made_up(const OpInput& input, int64_t count) {
    std::vector<char> bytes(static_cast<size_t>(count * size_of(input.dtype)));
    const Philox random(1, RandomPurpose::kInitialize, 0, 0);
    Philox::Block words{};
    const auto put = [&](int64_t i, auto value) {
      std::memcpy(bytes.data() + i * static_cast<int64_t>(sizeof(value)), &value, sizeof(value));
    };
    for (int64_t i = 0; i < count; ++i) {
      if (i % 4 == 0) words = random.block(static_cast<uint64_t>(i / 4));
      const uint32_t word = words[i % 4];
      const float value = count == 1 ? 0x1p-10f : Philox::to_uniform(word) - 0.5f;
      switch (input.dtype) {
        case DType::kF32:
          put(i, std::fabs(value));
          break;
        case DType::kBF16:
          put(i, bfloat16(input.is_positive ? std::fabs(value) : value));
          break;
        case DType::kF64:
          put(i, static_cast<double>(value));
          break;
        case DType::kI32:
          put(i, static_cast<int32_t>(count == 1 ? 1 : word % input.id_limit));
          break;
      }
    }
    return bytes;
  }

  Device& device_;
  Kernel kernel_;
  KernelCall call_;
  Cost cost_;
  std::vector<std::pair<void*, int64_t>> memory_;
};

// Betas of nearly 1: the first run leaves gradients zero, and with 0.95 the moments would be
// subnormal numbers after some thousand more, which no training divides by.
inline Attrs adamw_attrs(bool stochastic_rounding) {
  return {{"beta1", 1 - 0x1p-20},
          {"beta2", 1 - 0x1p-20},
          {"epsilon", 1e-5},
          {"weight_decay", 0.1},
          {"stochastic_rounding", stochastic_rounding},
          {"seed", int64_t{1}},
          {"stream", int64_t{7}}};
}

// (weight, gradient, two moments, master or none, scale, learning rate, step)
inline std::vector<OpInput> adamw_inputs(int64_t count, DType weight, DType moments,
                                         bool has_master) {
  const Shape p = {count}, one = {1};
  const OpInput master{DType::kF32, has_master ? p : Shape{}};
  const OpInput squares{.dtype = moments, .shape = p, .is_positive = true};
  return {{weight, p}, {DType::kF32, p},   {moments, p},       squares,
          {master},    {DType::kF32, one}, {DType::kF32, one}, {DType::kI32, one}};
}

}  // namespace skein
