// The memory-bound ops, against copying as many bytes: prints GB/s of each kernel (the bytes of its
// cost rule), GB/s of a memcpy that reads and writes as much, run in alternation, and their ratio.
// The fastest run of each counts, so that a busy machine slows neither; threads as OMP_NUM_THREADS
// says.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#include "bench/bound_op.h"
#include "skein/backends/backend.h"

namespace skein {
namespace {

constexpr DType kB = DType::kBF16, kF = DType::kF32, kI = DType::kI32;

// An op, and a copy of as many bytes as it moves.
class Bound {
 public:
  Bound(Device& device, const OpCase& bench)
      : device_(device),
        op_(device, bench),
        copy_(static_cast<char*>(device.allocate(num_bytes() + 1, "the copy"))) {}
  ~Bound() { device_.release(copy_, num_bytes() + 1); }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  int64_t num_bytes() const { return op_.num_bytes(); }
  void run() const { op_.run(); }
  void copy() const {
    const int64_t half = num_bytes() / 2;
#pragma omp parallel
    {
      const int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
      const int64_t begin = half * thread / threads, end = half * (thread + 1) / threads;
      std::memcpy(copy_ + half + begin, copy_ + begin, end - begin);
    }
  }

 private:
  Device& device_;
  BoundOp op_;
  char* copy_;
};

double seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double fastest(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

void run_bench(benchmark::State& state, const OpCase& bench) {
  const auto device = make_device({.kind = "cpu"});
  const Bound bound(*device, bench);
  std::vector<double> kernel_s, copy_s;
  for (auto _ : state) {
    copy_s.push_back(seconds([&] { bound.copy(); }));
    kernel_s.push_back(seconds([&] { bound.run(); }));
    state.SetIterationTime(kernel_s.back());
  }
  const double gigabytes = bound.num_bytes() * 1e-9;
  state.counters["MB"] = gigabytes * 1e3;
  state.counters["GB/s"] = gigabytes / fastest(kernel_s);
  state.counters["copy_GB/s"] = gigabytes / fastest(copy_s);
  state.counters["ratio"] = fastest(copy_s) / fastest(kernel_s);
}

std::vector<OpCase> model_cases(int64_t tokens, int64_t hidden, int64_t mlp, int64_t vocabulary) {
  const Shape x = {tokens, hidden}, wide = {tokens, mlp}, rows = {tokens}, w = {hidden};
  const Shape logits = {1024, vocabulary}, table = {vocabulary, hidden};
  const Attrs epsilon = {{"epsilon", 1e-5}}, bf16 = {{"gradient_dtype", std::string("bf16")}};
  std::vector<OpCase> cases = {
      {"add", "add", {}, {{kB, x}, {kB, x}}, 1},
      {"rms_norm", "rms_norm", epsilon, {{kB, x}, {kB, x}, {kB, w}}, 3},
      {"rms_norm_backward",
       "rms_norm_backward",
       {},
       {{kB, x}, {kB, x}, {kB, x}, {kF, rows}, {kB, w}, {kF, w}},
       2},
      {"layer_norm", "layer_norm", epsilon, {{kB, x}, {kB, x}, {kB, w}, {kB, w}}, 4},
      {"layer_norm_backward",
       "layer_norm_backward",
       {},
       {{kB, x}, {kB, x}, {kB, x}, {kF, rows}, {kF, rows}, {kB, w}, {kF, w}, {kF, w}},
       3},
      {"swiglu", "swiglu", {}, {{kB, wide}, {kB, wide}}, 1},
      {"swiglu_backward", "swiglu_backward", {}, {{kB, wide}, {kB, wide}, {kB, wide}}, 2},
      {"gelu", "gelu", {}, {{kB, wide}}, 1},
      {"gelu_backward", "gelu_backward", {}, {{kB, wide}, {kB, wide}}, 1},
      {"geglu", "geglu", {}, {{kB, wide}, {kB, wide}}, 1},
      {"geglu_backward", "geglu_backward", {}, {{kB, wide}, {kB, wide}, {kB, wide}}, 2},
      {"embedding", "embedding", {}, {{kI, rows, vocabulary}, {kB, table}}, 1},
      {"embedding_dw", "embedding_dw", {}, {{kI, rows, vocabulary}, {kB, x}, {kF, table}}, 1},
      {"softmax_cross_entropy",
       "softmax_cross_entropy",
       bf16,
       {{kB, logits}, {kI, {1024}, vocabulary}},
       2},
      {"sum_squares", "sum_squares", {}, {{kF, table}}, 1},
  };
  for (OpCase& one : cases) {
    one.name += fmt::format("/T{}_D{}_F{}_V{}", tokens, hidden, mlp, vocabulary);
  }
  return cases;
}

std::vector<OpCase> adamw_cases(int64_t count) {
  const auto one = [&](const char* name, bool stochastic, DType w, DType m, bool master) {
    return OpCase{fmt::format("adamw_{}/{}", name, count), "adamw", adamw_attrs(stochastic),
                  adamw_inputs(count, w, m, master), master ? 5 : 4};
  };
  return {one("fp32", false, kF, kF, false), one("bf16", false, kB, kF, false),
          one("bf16_sr", true, kB, kF, false), one("bf16_sr_moments", true, kB, kB, false),
          one("mixed", false, kB, kF, true)};
}

void register_all() {
  std::vector<OpCase> cases = model_cases(8192, 512, 1408, 4096);
  const auto more = [&cases](std::vector<OpCase> others) {
    cases.insert(cases.end(), others.begin(), others.end());
  };
  more(model_cases(1024, 512, 1408, 4096));
  more(model_cases(1024, 768, 2048, 32000));
  more(adamw_cases(512 * 1408));
  more(adamw_cases(32000 * 768));
  for (const OpCase& bench : cases) {
    benchmark::RegisterBenchmark(bench.name.c_str(), run_bench, bench)
        ->UseManualTime()
        ->MinTime(0.1)
        ->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  skein::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
