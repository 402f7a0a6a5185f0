#include "skein/train/device_ceiling.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "skein/backends/backend.h"

namespace skein {
namespace {

constexpr double kSeconds = 0.15;

// Device memory that is freed when the measurement ends, also by an exception.
class DeviceMemory {
 public:
  DeviceMemory(Device& device, int64_t bytes)
      : device_(device), bytes_(bytes), data_(device.allocate(bytes, "measuring the ceiling")) {}
  ~DeviceMemory() { device_.release(data_, bytes_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  void* data() const { return data_; }

 private:
  Device& device_;
  int64_t bytes_;
  void* data_;
};

// Measures the forward kernel of linear, y = x w^T, as a step would run it.
double linear_flops(Device& device, DType dtype, int64_t size) {
  const Kernel& kernel = device.kernels().at("linear");
  const int64_t bytes = size * size * size_of(dtype);
  const DeviceMemory x(device, bytes), w(device, bytes), y(device, bytes);
  // Operands are not zero: a product of zeros draws less power, and would run at a higher clock
  // than any step does.
  std::vector<uint16_t> numbers(static_cast<size_t>(bytes / 2));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0x3f80 + (i * 37) % 97;
  for (const DeviceMemory* memory : {&x, &w}) device.upload(memory->data(), numbers.data(), bytes);
  const auto matrix = [&](const DeviceMemory& memory) {
    return View::contiguous(memory.data(), dtype, {size, size});
  };
  KernelCall call{.inputs = {matrix(x), matrix(w)},
                  .outputs = {matrix(y)},
                  .attrs = {{"parts", 1}, {"bias", false}, {"f32_output", false}},
                  .stream = device.stream()};
  if (kernel.prepare != nullptr) call.state = kernel.prepare(call);
  const DeviceMemory scratch(device,
                             kernel.scratch_bytes == nullptr ? 0 : kernel.scratch_bytes(call));
  call.scratch = scratch.data();
  const auto seconds_of = [&](int count) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) kernel.run(call);
    device.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  seconds_of(1);  // warm-up; a GPU's kernel chooses its algorithm here
  const int count = std::clamp(static_cast<int>(kSeconds / 5 / seconds_of(1)), 1, 50);
  double best = 0;
  for (double spent = 0; spent < kSeconds;) {
    const double seconds = seconds_of(count);
    best = std::max(best, 2.0 * size * size * size * count / seconds);
    spent += seconds;
  }
  return best;
}

}  // namespace

double measure_device_ceiling_flops(Device& device, DType dtype) {
  const Backend& backend = find_backend(device.kind());
  if (backend.measure_ceiling != nullptr) return backend.measure_ceiling(dtype, kSeconds);
  return linear_flops(device, dtype, device.ceiling_size());
}

}  // namespace skein
