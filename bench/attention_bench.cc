// GFLOP/s of attention on the CPU, and its share of what oneDNN's bf16 (or f32) matrix product
// reaches in the same run. Causal flops are counted as half; each share is the median of rounds in
// which product and attention alternate. Operands lie in huge pages, as in training: in small ones
// every row of a head is on another page. SKEIN_CPU limits the kind of kernels, as it does for
// skein.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "skein/base/numbers/philox.h"
#include "skein/ops/matmul/matmul_ceiling.h"
#include "skein/ops/ops.h"
#include "skein/ops/simd/cpu_kind.h"
#include "skein/runtime/cpu/cpu_device.h"

namespace skein {
namespace {

double seconds_of(const auto& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

constexpr double kCeilingSeconds = 0.02;

struct Case {
  DType dtype;
  bool backward;
  int64_t sequences, sequence_length, heads, kv_heads, head_dim;
};

// q|k|v as one matrix, as the model lays them out.
class Attention {
 public:
  explicit Attention(const Case& c) : kernel_(device_.kernels().at(op_name(c))) {
    const int64_t tokens = c.sequences * c.sequence_length;
    const int64_t q_cols = c.heads * c.head_dim, kv_cols = c.kv_heads * c.head_dim;
    const int64_t stride = q_cols + 2 * kv_cols;
    const auto q = random(c.dtype, tokens, q_cols, stride), k = part(q, q_cols, kv_cols);
    const auto v = part(q, q_cols + kv_cols, kv_cols);
    const View o = random(c.dtype, tokens, q_cols, q_cols);
    const View lse = random(DType::kF32, tokens, c.heads, c.heads);
    const View start = View::contiguous(allocate(tokens * 4), DType::kI32, Shape{tokens});
    call_.attrs = {{"heads", c.heads}, {"kv_heads", c.kv_heads},
                   {"causal", true},   {"head_dim", c.head_dim},
                   {"scale", 0.125},   {"sequence_length", c.sequence_length}};
    if (c.backward) {
      const View grad = random(c.dtype, tokens, q_cols, q_cols);
      const View dq = random(c.dtype, tokens, q_cols, stride);
      call_.inputs = {grad, q, k, v, o, lse, start};
      call_.outputs = {dq, part(dq, q_cols, kv_cols), part(dq, q_cols + kv_cols, kv_cols)};
      KernelCall forward = call_;
      forward.inputs = {q, k, v, start};
      forward.outputs = {o, lse};
      run(cpu_kernels().at("attention"), forward);
    } else {
      call_.inputs = {q, k, v, start};
      call_.outputs = {o, lse};
    }
    flops_ =
        (c.backward ? 10.0 : 4.0) * static_cast<double>(tokens * c.sequence_length * q_cols) / 2;
    call_.state = kernel_.prepare(call_);
    call_.scratch = allocate(kernel_.scratch_bytes(call_));
  }
  ~Attention() {
    for (const auto& [memory, bytes] : memory_) device_.release(memory, bytes);
  }
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;
  double gflops_per_s() {
    return flops_ / seconds_of([&] { kernel_.run(call_); }) * 1e-9;
  }

 private:
  static std::string_view op_name(const Case& c) {
    return c.backward ? "attention_backward" : "attention";
  }
  void run(const Kernel& kernel, KernelCall call) {
    call.state = kernel.prepare(call);
    call.scratch = allocate(kernel.scratch_bytes(call));
    kernel.run(call);
  }
  static View part(const View& whole, int64_t first_col, int64_t cols) {
    View view = whole;
    view.data = whole.as<std::byte>() + first_col * size_of(whole.dtype);
    view.shape = Shape{whole.rows(), cols};
    return view;
  }
  void* allocate(int64_t bytes) {
    memory_.emplace_back(device_.allocate(bytes, "an operand"), bytes);
    return memory_.back().first;
  }
  View random(DType dtype, int64_t rows, int64_t cols, int64_t stride) {
    const View view{allocate(rows * stride * size_of(dtype)), dtype, Shape{rows, cols}, stride};
    const Philox philox(1, RandomPurpose::kInitialize, memory_.size(), 0);
    for (int64_t i = 0; i < rows * stride; ++i) {
      if (dtype == DType::kBF16) view.as<bfloat16>()[i] = bfloat16(philox.normal(i));
      if (dtype == DType::kF32) view.as<float>()[i] = philox.normal(i);
    }
    return view;
  }

  CpuDevice device_{0, cpu_kernels()};
  Kernel kernel_;
  KernelCall call_;
  double flops_ = 0;
  std::vector<std::pair<void*, int64_t>> memory_;
};

void bench(benchmark::State& state, const Case& c) {
  Attention attention(c);
  std::vector<double> rates, shares, products;
  for (auto _ : state) {
    products.push_back(measure_onednn_matmul_flops(c.dtype, kCeilingSeconds) * 1e-9);
    rates.push_back(attention.gflops_per_s());
    shares.push_back(rates.back() / products.back());
  }
  state.counters["GFLOP/s"] = median(rates);
  state.counters["matmul"] = median(products);
  state.counters["share"] = median(shares);
  // Of the best round of each: what a busy machine disturbs least.
  const auto best = [](const std::vector<double>& all) { return *std::ranges::max_element(all); };
  state.counters["best"] = best(rates);
  state.counters["best_share"] = best(rates) / best(products);
  state.counters["threads"] = omp_get_max_threads();
}

void add_cases() {
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    for (const bool backward : {false, true}) {
      for (const auto& [sequences, length, heads, kv_heads, dim] :
           std::vector<std::array<int64_t, 5>>{{1, 1024, 8, 8, 64},
                                               {8, 1024, 8, 8, 64},
                                               {1, 1024, 12, 12, 64},
                                               {1, 4096, 8, 2, 128}}) {
        const Case c{dtype, backward, sequences, length, heads, kv_heads, dim};
        const std::string name =
            fmt::format("{}/{}/{}x{}/heads:{}:{}/dim:{}", dtype_name(dtype),
                        backward ? "backward" : "forward", sequences, length, heads, kv_heads, dim);
        benchmark::RegisterBenchmark(name.c_str(), [c](benchmark::State& s) { bench(s, c); })
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond)
            ->MinTime(0.3);
      }
    }
  }
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  skein::limit_cpu_kind("auto");
  skein::add_cases();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
