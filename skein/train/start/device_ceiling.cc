#include "skein/train/start/device_ceiling.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "skein/backends/backend.h"
#include "skein/base/numbers/philox.h"
#include "skein/compile/product_program.h"

namespace skein {
namespace {

constexpr double kSeconds = 0.15;
// Of ranks that run their programs together, which all have to run as many.
constexpr int kRoundsTogether = 5, kRunsTogether = 2;

// Standard normals, as PyTorch's ceiling is measured on: the more bits change, the more power a
// product draws, and the lower a GPU's clock is. They repeat after a prime number, so that no two
// rows begin alike.
void fill_with_normals(Device& device, void* memory, int64_t bytes, DType dtype) {
  constexpr int64_t kDrawn = 262'139;
  const Philox random(1, RandomPurpose::kInitialize, 0, 0);
  const int64_t size = size_of(dtype);
  std::vector<char> drawn(static_cast<size_t>(kDrawn * size));
  for (int64_t i = 0; i < kDrawn; ++i) {
    const float value = random.normal(static_cast<uint64_t>(i));
    const bfloat16 rounded(value);
    std::memcpy(drawn.data() + i * size,
                dtype == DType::kBF16 ? static_cast<const void*>(&rounded) : &value,
                static_cast<size_t>(size));
  }
  const auto drawn_bytes = static_cast<int64_t>(drawn.size());
  for (int64_t done = 0; done < bytes; done += drawn_bytes) {
    device.upload(static_cast<char*>(memory) + done, drawn.data(),
                  std::min(drawn_bytes, bytes - done));
  }
}

// The best rate of products of `size` that `run` starts.
double best_flops(Device& device, int64_t size, const std::function<void()>& run) {
  const auto seconds_of = [&](int count) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) run();
    device.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  seconds_of(1);  // warm-up; a GPU's kernel chooses its algorithm here
  const bool is_alone = device.ranks_together() == 1;
  const int count =
      is_alone ? std::clamp(static_cast<int>(kSeconds / 5 / seconds_of(1)), 1, 50) : kRunsTogether;
  double best = 0;
  double spent = 0;
  for (int round = 0; is_alone ? spent < kSeconds : round < kRoundsTogether; ++round) {
    const double seconds = seconds_of(count);
    best = std::max(best, 2.0 * size * size * size * count / seconds);
    spent += seconds;
  }
  return best;
}

// The product of `linear`, as a step would run it.
double linear_flops(Device& device, DType dtype, int64_t size) {
  ProductProgram product(device, dtype, size, size, size);
  for (const View& view : {product.x(), product.w()}) {
    fill_with_normals(device, view.data, view.num_bytes(), dtype);
  }
  return best_flops(device, size, [&] { product.run(); });
}

}  // namespace

double measure_device_ceiling_flops(Device& device, DType dtype) {
  const Backend& backend = find_backend(device.kind());
  if (backend.measure_ceiling != nullptr) return backend.measure_ceiling(dtype, kSeconds);
  return linear_flops(device, dtype, device.ceiling_size());
}

}  // namespace skein
