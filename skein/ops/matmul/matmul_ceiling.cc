#include "skein/ops/matmul/matmul_ceiling.h"

#include <omp.h>

#include <dnnl.hpp>
#include <exception>
#include <functional>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/machine/clock.h"
#include "skein/base/threads/processor_time.h"
#include "skein/ops/matmul/matmul_cpu.h"
#include "skein/ops/matmul/onednn.h"

namespace skein {
namespace {

constexpr int64_t kRows = 256;  // of a thread's product
constexpr int64_t kSize = 1024;
constexpr double kMostOverSeconds = 8;  // by the clock, on a machine that is busy

// A matrix that begins with a cache line, as those of training do. Normal numbers of moderate size:
// some CPUs are slower on subnormals, or faster on zeros.
class Operand {
 public:
  Operand(DType dtype, int64_t elements)
      : halves_(static_cast<size_t>(elements * size_of(dtype) / 2) + kLine) {
    for (size_t i = 0; i < halves_.size(); ++i) halves_[i] = 0x3f80 + (i * 37) % 97;
  }
  void* data() {
    const auto at = reinterpret_cast<uintptr_t>(halves_.data());
    return reinterpret_cast<void*>((at + 2 * kLine - 1) / (2 * kLine) * (2 * kLine));
  }

 private:
  static constexpr size_t kLine = 32;  // halves
  std::vector<uint16_t> halves_;
};

// The best rate of one thread over its own processor time.
double best_flops(double seconds, const std::function<void()>& product) {
  product();  // faults pages in and warms caches
  double best_seconds = 1e30;
  const Clock::time_point start = Clock::now();
  const double begin = thread_seconds();
  for (double now = begin;
       now - begin < seconds && seconds_since(start) < kMostOverSeconds * seconds;) {
    product();
    const double end = thread_seconds();
    best_seconds = std::min(best_seconds, end - now);
    now = end;
  }
  return 2.0 * static_cast<double>(kRows * kSize * kSize) / best_seconds;
}

using Product = std::function<void()>;

// `prepare` makes a thread's product, which that thread runs. Inside, OpenMP has one thread.
double sum_over_threads(double seconds, const std::function<Product()>& prepare) {
  double sum = 0;
  std::exception_ptr failure;
#pragma omp parallel reduction(+ : sum)
  {
    omp_set_num_threads(1);  // of this thread's own regions
    Product product;
    try {
      product = prepare();
    } catch (...) {
#pragma omp critical
      failure = std::current_exception();
    }
#pragma omp barrier
    if (!failure) sum += best_flops(seconds, product);
  }
  if (failure) std::rethrow_exception(failure);
  return sum;
}

double onednn_flops(DType dtype, double seconds) {
  using dnnl::memory;
  const auto type = dtype == DType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32;
  const auto desc = [&](int64_t rows) {
    return memory::desc({rows, kSize}, type, memory::format_tag::ab);
  };
  Operand b(dtype, kSize * kSize);
  return sum_over_threads(seconds, [&]() -> Product {
    struct State {
      dnnl::engine engine{dnnl::engine::kind::cpu, 0};
      dnnl::stream stream{engine};
      Operand a, c;
      dnnl::matmul product;
    };
    auto state = std::make_shared<State>(
        State{.a = Operand(dtype, kRows * kSize), .c = Operand(dtype, kRows * kSize)});
    state->product =
        dnnl::matmul(onednn_matmul(state->engine, desc(kRows), desc(kSize), desc(kRows)));
    const std::unordered_map<int, memory> arguments = {
        {DNNL_ARG_SRC, memory(desc(kRows), state->engine, state->a.data())},
        {DNNL_ARG_WEIGHTS, memory(desc(kSize), state->engine, b.data())},
        {DNNL_ARG_DST, memory(desc(kRows), state->engine, state->c.data())}};
    return [state, arguments] {
      state->product.execute(state->stream, arguments);
      state->stream.wait();
    };
  });
}

}  // namespace

double measure_own_matmul_flops(DType dtype, double seconds) {
  Operand b(dtype, kSize * kSize);
  return sum_over_threads(seconds, [&]() -> Product {
    struct State {
      Operand a, c;
      Matmul matmul;
      std::vector<char> scratch;
      void* aligned = nullptr;
    };
    auto state = std::make_shared<State>(
        State{.a = Operand(dtype, kRows * kSize), .c = Operand(dtype, kRows * kSize)});
    state->matmul = {dtype, kRows, kSize, 1, {}, {state->c.data(), dtype, kSize}};
    state->matmul.terms[0] = {kSize, {state->a.data(), kSize, false}, {b.data(), kSize, true}};
    state->scratch.resize(static_cast<size_t>(matmul_scratch_bytes(state->matmul) + 64));
    state->aligned =
        state->scratch.data() + (64 - reinterpret_cast<uintptr_t>(state->scratch.data()) % 64) % 64;
    return [state] { run_matmul(state->matmul, state->aligned); };
  });
}

double measure_onednn_matmul_flops(DType dtype, double seconds) try {
  return onednn_flops(dtype, seconds);
} catch (const dnnl::error& error) {
  if (error.status != dnnl_unimplemented) {
    fail(ErrorCode::kInternal, "oneDNN matrix product of {}: {}", dtype_name(dtype), error.what());
  }
  return dtype == DType::kF32 ? 0 : measure_onednn_matmul_flops(DType::kF32, seconds);
}

MatmulCeiling measure_matmul_ceiling(DType dtype, double seconds) {
  return {measure_own_matmul_flops(dtype, seconds / 2),
          measure_onednn_matmul_flops(dtype, seconds / 2)};
}

double measure_matmul_ceiling_flops(DType dtype, double seconds) {
  return measure_matmul_ceiling(dtype, seconds).flops();
}

}  // namespace skein
