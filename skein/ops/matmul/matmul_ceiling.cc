#include "skein/ops/matmul/matmul_ceiling.h"

#include <omp.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <dnnl.hpp>
#include <functional>
#include <vector>

#include "skein/base/error.h"
#include "skein/ops/matmul/matmul_cpu.h"
#include "skein/ops/matmul/onednn.h"

namespace skein {
namespace {

// Threads that had less of their cores than this take turns with those of other workers, which did
// not compute while the best product ran.
constexpr double kTakesTurns = 0.9;

// The smallest size that reaches the full rate; a rank of a large run may have a fraction of a
// core.
int64_t product_size() {
  constexpr int kFewThreads = 4;
  return omp_get_max_threads() <= kFewThreads ? 1024 : 2048;
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double best_flops(int64_t size, double seconds, const std::function<void()>& product) {
  using Clock = std::chrono::steady_clock;
  const auto elapsed = [](Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  };
  product();  // faults pages in and warms caches
  double best_seconds = 1e30;
  const Clock::time_point start = Clock::now();
  const double cpu_before = cpu_seconds();
  do {
    const Clock::time_point before = Clock::now();
    product();
    best_seconds = std::min(best_seconds, elapsed(before));
  } while (elapsed(start) < seconds);
  const double best = 2.0 * static_cast<double>(size * size * size) / best_seconds;
  const double of_cores = (cpu_seconds() - cpu_before) / (elapsed(start) * omp_get_max_threads());
  return of_cores < kTakesTurns ? best * of_cores : best;
}

// A square matrix that begins with a cache line, as those of training do. Normal numbers of
// moderate size: some CPUs are slower on subnormals, or faster on zeros.
class Operand {
 public:
  Operand(DType dtype, int64_t size)
      : halves_(static_cast<size_t>(size * size * size_of(dtype) / 2) + kLine) {
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

double onednn_flops(DType dtype, double seconds) {
  const int64_t size = product_size();
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const auto type =
      dtype == DType::kBF16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
  const dnnl::memory::desc desc({size, size}, type, dnnl::memory::format_tag::ab);
  const dnnl::matmul product(onednn_matmul(engine, desc, desc, desc));
  Operand a(dtype, size), b(dtype, size), c(dtype, size);
  const std::unordered_map<int, dnnl::memory> arguments = {
      {DNNL_ARG_SRC, dnnl::memory(desc, engine, a.data())},
      {DNNL_ARG_WEIGHTS, dnnl::memory(desc, engine, b.data())},
      {DNNL_ARG_DST, dnnl::memory(desc, engine, c.data())}};
  return best_flops(size, seconds, [&] {
    product.execute(stream, arguments);
    stream.wait();
  });
}

}  // namespace

double measure_own_matmul_flops(DType dtype, double seconds) {
  const int64_t size = product_size();
  Operand a(dtype, size), b(dtype, size), c(dtype, size);
  Matmul matmul{dtype, size, size, 1, {}, {c.data(), dtype, size}};
  matmul.terms[0] = {size, {a.data(), size, false}, {b.data(), size, true}};
  std::vector<char> scratch(matmul_scratch_bytes(matmul) + 64);
  void* aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  return best_flops(size, seconds, [&] { run_matmul(matmul, aligned); });
}

double measure_onednn_matmul_flops(DType dtype, double seconds) try {
  return onednn_flops(dtype, seconds);
} catch (const dnnl::error& error) {
  if (error.status != dnnl_unimplemented) {
    fail(ErrorCode::kInternal, "oneDNN matrix product of {}: {}", dtype_name(dtype), error.what());
  }
  return dtype == DType::kF32 ? 0 : measure_onednn_matmul_flops(DType::kF32, seconds);
}

double measure_matmul_ceiling_flops(DType dtype, double seconds) {
  return std::max(measure_onednn_matmul_flops(dtype, seconds / 2),
                  measure_own_matmul_flops(dtype, seconds / 2));
}

}  // namespace skein
