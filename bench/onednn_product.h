// oneDNN's product on the operands of linear, linear_dx or linear_dw where they lie: the rival in
// linear_bench.
//
// Operands     as the op has them, transposes by strides, so that oneDNN reads or repacks them in
//              each run, as it would have to in training, whose weights change
// Accumulation fp32, rounded once; linear_dw adds to its fp32 sums by the post-op `sum`
// Threads      OpenMP's, which are those of our kernels
// Memory       oneDNN's scratch memory comes from the device, as operands do
#pragma once

#include <dnnl.hpp>
#include <memory>
#include <string>
#include <unordered_map>

#include "skein/base/error.h"
#include "skein/ir/kernel.h"
#include "skein/ops/matmul/onednn.h"
#include "skein/runtime/device.h"

namespace skein {

class OneDnnProduct {
 public:
  // Null where oneDNN has no such product for this CPU.
  static std::unique_ptr<OneDnnProduct> make(Device& device, const std::string& op,
                                             const KernelCall& call) try {
    return std::unique_ptr<OneDnnProduct>(new OneDnnProduct(device, op, call));
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_unimplemented) return nullptr;
    fail(ErrorCode::kInternal, "oneDNN's product of {}: {}", op, error.what());
  }
  ~OneDnnProduct() { device_.release(scratch_, scratch_bytes_); }
  OneDnnProduct(const OneDnnProduct&) = delete;
  OneDnnProduct& operator=(const OneDnnProduct&) = delete;

  // oneDNN's name of the kernel that it chose.
  const std::string& kernel() const { return kernel_; }
  void run() {
    product_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  // C (+)= A B.
  OneDnnProduct(Device& device, const std::string& op, const KernelCall& call) : device_(device) {
    const bool dw = op == "linear_dw";
    const dnnl::memory::desc a = describe(call.inputs[0], dw);              // x, dy or dy^T
    const dnnl::memory::desc b = describe(call.inputs[1], op == "linear");  // w^T, w or x
    const dnnl::memory::desc c = describe(call.outputs[0], false);
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (dw) {
      dnnl::post_ops after;
      after.append_sum();
      attributes.set_post_ops(after);
    }
    const dnnl::matmul::primitive_desc chosen = onednn_matmul(engine_, a, b, c, attributes);
    const dnnl::memory::desc scratch = chosen.scratchpad_desc();
    product_ = dnnl::matmul(chosen);
    kernel_ = chosen.impl_info_str();
    scratch_bytes_ = static_cast<int64_t>(scratch.get_size());
    scratch_ = device_.allocate(scratch_bytes_, "oneDNN's scratch memory");
    arguments_ = {{DNNL_ARG_SRC, dnnl::memory(a, engine_, call.inputs[0].data)},
                  {DNNL_ARG_WEIGHTS, dnnl::memory(b, engine_, call.inputs[1].data)},
                  {DNNL_ARG_DST, dnnl::memory(c, engine_, call.outputs[0].data)},
                  {DNNL_ARG_SCRATCHPAD, dnnl::memory(scratch, engine_, scratch_)}};
  }

  static dnnl::memory::desc describe(const View& view, bool transposed) {
    using Type = dnnl::memory::data_type;
    const Type type = view.dtype == DType::kBF16 ? Type::bf16 : Type::f32;
    const int64_t rows = view.rows(), cols = view.cols(), stride = view.row_stride;
    return transposed ? dnnl::memory::desc({cols, rows}, type, dnnl::memory::dims{1, stride})
                      : dnnl::memory::desc({rows, cols}, type, dnnl::memory::dims{stride, 1});
  }

  Device& device_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::matmul product_;
  std::string kernel_;
  std::unordered_map<int, dnnl::memory> arguments_;
  void* scratch_ = nullptr;
  int64_t scratch_bytes_ = 0;
};

}  // namespace skein
