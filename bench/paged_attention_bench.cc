// Attention over a cache of pages on the CPU, as generation calls it: one token of each of many
// sequences, which reads their keys and values once (GB/s, beside a copy of as many bytes), and the
// last piece of a prompt, which computes (GFLOP/s, beside oneDNN's product in fp32, the precision
// of these sums). Rivals alternate with the kernel; the fastest run of each counts, so that a busy
// machine slows neither.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "skein/base/numbers/philox.h"
#include "skein/ops/matmul/matmul_ceiling.h"
#include "skein/ops/ops.h"
#include "skein/ops/simd/cpu_kind.h"
#include "skein/runtime/cpu/cpu_device.h"

namespace skein {
namespace {

constexpr double kCeilingSeconds = 0.02;

double seconds_of(const auto& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double fastest(const std::vector<double>& seconds) { return *std::ranges::min_element(seconds); }

struct Case {
  DType dtype;
  int64_t sequences, tokens, context;  // tokens of each sequence, the last ones of its context
  int64_t heads, kv_heads, head_dim, page_size;
};

class PagedAttention {
 public:
  explicit PagedAttention(const Case& c) : kernel_(device_.kernels().at("paged_attention")) {
    const int64_t columns = (c.context + c.page_size - 1) / c.page_size;
    const int64_t rows = c.sequences * c.tokens, num_pages = c.sequences * columns;
    const Shape q{rows, c.heads * c.head_dim}, k{rows, c.kv_heads * c.head_dim};
    const Shape cache{num_pages, c.kv_heads * c.head_dim * c.page_size};
    call_.attrs = {{"heads", c.heads},
                   {"kv_heads", c.kv_heads},
                   {"head_dim", c.head_dim},
                   {"page_size", c.page_size},
                   {"scale", 0.125}};
    call_.inputs = {
        random(c.dtype, q), random(c.dtype, k), random(c.dtype, k), random(c.dtype, cache),
        random(c.dtype, cache), integers({rows}, [&](int64_t i) { return i / c.tokens; }),
        integers({rows}, [&](int64_t i) { return c.context - c.tokens + i % c.tokens; }),
        // Neighbouring pages belong to different sequences.
        integers({c.sequences, columns},
                 [&](int64_t i) { return i % columns * c.sequences + i / columns; })};
    call_.outputs = {random(c.dtype, q), call_.inputs[3], call_.inputs[4]};
    const auto mean_context =
        static_cast<double>(c.context) - static_cast<double>(c.tokens - 1) / 2;
    flops_ = 4 * static_cast<double>(q.num_elements()) * mean_context;
    bytes_ = 2.0 * static_cast<double>(c.sequences * c.context * c.kv_heads * c.head_dim *
                                       size_of(c.dtype));
    call_.state = kernel_.prepare(call_);
    call_.scratch = allocate(kernel_.scratch_bytes(call_));
    copy_ = static_cast<char*>(allocate(static_cast<int64_t>(bytes_)));
    std::memset(copy_, 1, static_cast<size_t>(bytes_));
  }
  ~PagedAttention() {
    for (const auto& [memory, bytes] : memory_) device_.release(memory, bytes);
  }
  PagedAttention(const PagedAttention&) = delete;
  PagedAttention& operator=(const PagedAttention&) = delete;

  double flops() const { return flops_; }
  double bytes() const { return bytes_; }
  void run() const { kernel_.run(call_); }
  // Moves as many bytes as a run reads: half of them are read, half written.
  void copy() const {
    const auto half = static_cast<int64_t>(bytes_) / 2;
#pragma omp parallel
    {
      const int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
      const int64_t begin = half * thread / threads, end = half * (thread + 1) / threads;
      std::memcpy(copy_ + half + begin, copy_ + begin, end - begin);
    }
  }

 private:
  void* allocate(int64_t bytes) {
    memory_.emplace_back(device_.allocate(bytes, "an operand"), bytes);
    return memory_.back().first;
  }
  View random(DType dtype, const Shape& shape) {
    const View view =
        View::contiguous(allocate(shape.num_elements() * size_of(dtype)), dtype, shape);
    const Philox philox(1, RandomPurpose::kInitialize, memory_.size(), 0);
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      const float value = Philox::to_uniform(philox.word(i)) - 0.5f;
      if (dtype == DType::kBF16) view.as<bfloat16>()[i] = bfloat16(value);
      if (dtype == DType::kF32) view.as<float>()[i] = value;
    }
    return view;
  }
  View integers(const Shape& shape, const auto& value) {
    const View view = View::contiguous(allocate(shape.num_elements() * 4), DType::kI32, shape);
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      view.as<int32_t>()[i] = static_cast<int32_t>(value(i));
    }
    return view;
  }

  CpuDevice device_{0, cpu_kernels()};
  Kernel kernel_;
  KernelCall call_;
  double flops_ = 0, bytes_ = 0;
  char* copy_ = nullptr;
  std::vector<std::pair<void*, int64_t>> memory_;
};

void bench(benchmark::State& state, const Case& c) {
  const PagedAttention attention(c);
  attention.run();
  std::vector<double> seconds, copies, products;
  for (auto _ : state) {
    products.push_back(measure_onednn_matmul_flops(DType::kF32, kCeilingSeconds) * 1e-9);
    copies.push_back(seconds_of([&] { attention.copy(); }));
    seconds.push_back(seconds_of([&] { attention.run(); }));
    state.SetIterationTime(seconds.back());
  }
  state.counters["GB/s"] = attention.bytes() * 1e-9 / fastest(seconds);
  state.counters["copy_GB/s"] = attention.bytes() * 1e-9 / fastest(copies);
  state.counters["GFLOP/s"] = attention.flops() * 1e-9 / fastest(seconds);
  state.counters["f32_matmul"] = *std::ranges::max_element(products);
  state.counters["threads"] = omp_get_max_threads();
}

void add_cases() {
  struct Heads {
    int64_t heads, kv_heads, head_dim;
  };
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    for (const auto& [heads, kv_heads, dim] : {Heads{32, 8, 128}, Heads{12, 12, 64}}) {
      for (const int64_t page_size : {16, 64}) {
        const Case decode{dtype, 64, 1, 512, heads, kv_heads, dim, page_size};
        const Case prefill{dtype, 1, 512, 512, heads, kv_heads, dim, page_size};
        const Case single{dtype, 1, 1, 16384, heads, kv_heads, dim, page_size};
        for (const auto& [name, c] :
             {std::pair{"decode", decode}, {"prefill", prefill}, {"single", single}}) {
          const std::string full =
              fmt::format("{}/{}/{}x{}of{}/heads:{}:{}/dim:{}/page:{}", name, dtype_name(dtype),
                          c.sequences, c.tokens, c.context, heads, kv_heads, dim, page_size);
          benchmark::RegisterBenchmark(full.c_str(), [c](benchmark::State& s) { bench(s, c); })
              ->UseManualTime()
              ->Unit(benchmark::kMillisecond)
              ->MinTime(0.3);
        }
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
