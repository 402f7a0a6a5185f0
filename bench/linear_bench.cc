// The rate of linear and its derivatives at the shapes of training, and its share of the rate that
// oneDNN reaches on a large square product, measured right before and after each one. Operands lie
// in huge pages, as in training.
// SKEIN_CPU limits the kind of kernels, as it does for skein.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "skein/ops/matmul/matmul_ceiling.h"
#include "skein/ops/ops.h"
#include "skein/ops/simd/cpu_kind.h"
#include "skein/runtime/cpu/cpu_device.h"

namespace skein {
namespace {

struct Projection {
  const char* name;
  int64_t out, in;
};
constexpr Projection kProjections[] = {{"512/qkv", 1536, 512},     {"512/o", 512, 512},
                                       {"512/gate_up", 2816, 512}, {"512/down", 512, 1408},
                                       {"512/head", 4096, 512},    {"768/qkv", 2304, 768},
                                       {"768/o", 768, 768},        {"768/gate_up", 4096, 768},
                                       {"768/down", 768, 2048},    {"768/head", 32000, 768}};
constexpr double kCeilingSeconds = 0.1;

class Buffer {
 public:
  Buffer(CpuDevice& device, DType dtype, int64_t rows, int64_t cols)
      : device_(device), bytes_(rows * cols * size_of(dtype)) {
    view = {device.allocate(bytes_, "an operand"), dtype, {rows, cols}, cols};
    for (int64_t i = 0; i < bytes_ / 2; ++i) {
      view.as<uint16_t>()[i] = static_cast<uint16_t>(0x3c00 + i * 37 % 97);
    }
  }
  ~Buffer() { device_.release(view.data, bytes_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  View view;

 private:
  CpuDevice& device_;
  int64_t bytes_;
};

void run(benchmark::State& state, const std::string& op, DType dtype, Projection projection,
         int64_t tokens) {
  const auto& [name, out, in] = projection;
  const bool dw = op == "linear_dw";
  CpuDevice device(0, cpu_kernels());
  Buffer x(device, dtype, tokens, in), y(device, dtype, tokens, out);
  Buffer w(device, dw ? DType::kF32 : dtype, out, in);
  KernelCall call{.attrs = {{"parts", int64_t{1}}, {"bias", false}, {"f32_output", false}}};
  if (op == "linear") call.inputs = {x.view, w.view}, call.outputs = {y.view};
  if (op == "linear_dx") call.inputs = {y.view, w.view}, call.outputs = {x.view};
  if (dw) call.inputs = {y.view, x.view, w.view}, call.outputs = {w.view};
  const Kernel& kernel = device.kernels().at(op);
  Buffer scratch(device, DType::kBF16, 1, kernel.scratch_bytes(call) / 2 + 1);
  call.scratch = scratch.view.data;

  // Of a shared machine the best times tell most.
  double ceiling = measure_onednn_matmul_flops(dtype, kCeilingSeconds), best_seconds = 1e30;
  kernel.run(call);
  for (auto _ : state) {
    const auto before = std::chrono::steady_clock::now();
    kernel.run(call);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - before;
    state.SetIterationTime(elapsed.count());
    best_seconds = std::min(best_seconds, elapsed.count());
  }
  ceiling = std::max(ceiling, measure_onednn_matmul_flops(dtype, kCeilingSeconds));
  const double best = 2.0 * static_cast<double>(tokens * out * in) / best_seconds;
  state.counters["GFLOP/s"] = best * 1e-9;
  state.counters["of_ceiling"] = best / ceiling;
  state.counters["ceiling"] = ceiling * 1e-9;
}

void register_all() {
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    for (const Projection& projection : kProjections) {
      for (const int64_t tokens : {int64_t{1024}, int64_t{8192}}) {
        if (projection.out > 8192 && tokens > 1024) continue;  // the head takes token blocks
        if (dtype == DType::kF32 && tokens > 1024) continue;
        for (const char* op : {"linear", "linear_dx", "linear_dw"}) {
          const std::string name = std::string(op) + "/" + std::string(dtype_name(dtype)) + "/" +
                                   projection.name + "/" + std::to_string(tokens);
          benchmark::RegisterBenchmark(
              name.c_str(),
              [=](benchmark::State& state) { run(state, op, dtype, projection, tokens); })
              ->UseManualTime()
              ->MinTime(0.2)
              ->Unit(benchmark::kMillisecond);
        }
      }
    }
  }
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  skein::limit_cpu_kind("auto");
  skein::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
