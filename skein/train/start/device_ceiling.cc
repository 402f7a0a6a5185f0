#include "skein/train/start/device_ceiling.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "skein/backends/backend.h"
#include "skein/base/numbers/philox.h"
#include "skein/ops/linear/linear.h"
#include "skein/passes/memory/plan_memory.h"
#include "skein/runtime/device_buffer.h"
#include "skein/runtime/executor.h"

namespace skein {
namespace {

constexpr double kSeconds = 0.15;

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
  const int count = std::clamp(static_cast<int>(kSeconds / 5 / seconds_of(1)), 1, 50);
  double best = 0;
  for (double spent = 0; spent < kSeconds;) {
    const double seconds = seconds_of(count);
    best = std::max(best, 2.0 * size * size * size * count / seconds);
    spent += seconds;
  }
  return best;
}

// The same product as a program, for a device that compiles it.
double compiled_linear_flops(Device& device, DType dtype, int64_t size) {
  Graph graph(Mesh::standard(1, 1, 1, 1));
  const TensorType matrix = TensorType::replicated(dtype, Shape{size, size}, graph.mesh());
  const ValueId x = graph.add_input(Role::kInput, "x", matrix);
  const ValueId w = graph.add_input(Role::kParameter, "w", matrix);
  graph.mark_output(linear(graph, x, {w}, {}, {"y"}).front());
  const ProgramSet programs = plan_memory({{.graph = &graph}}, device.kernels());
  Executor executor(device, programs);
  for (const char* name : {"x", "w"}) {
    const View view = executor.view(name);
    fill_with_normals(device, view.data, view.num_bytes(), dtype);
  }
  return best_flops(device, size, [&] { executor.run("forward"); });
}

// Measures the forward kernel of linear, y = x w^T, as a step would run it.
double linear_flops(Device& device, DType dtype, int64_t size) {
  const Kernel& kernel = device.kernels().at("linear");
  const int64_t bytes = size * size * size_of(dtype);
  const std::string what = "measuring the ceiling";
  const DeviceBuffer x(device, bytes, what), w(device, bytes, what), y(device, bytes, what);
  for (const DeviceBuffer* memory : {&x, &w}) {
    fill_with_normals(device, memory->data(), bytes, dtype);
  }
  const auto matrix = [&](const DeviceBuffer& memory) {
    return View::contiguous(memory.data(), dtype, {size, size});
  };
  KernelCall call{.inputs = {matrix(x), matrix(w)},
                  .outputs = {matrix(y)},
                  .attrs = {{"parts", 1}, {"bias", false}, {"f32_output", false}},
                  .stream = device.stream()};
  if (kernel.prepare != nullptr) call.state = kernel.prepare(call);
  const DeviceBuffer scratch(
      device, kernel.scratch_bytes == nullptr ? 0 : kernel.scratch_bytes(call), what);
  call.scratch = scratch.data();
  return best_flops(device, size, [&] { kernel.run(call); });
}

}  // namespace

double measure_device_ceiling_flops(Device& device, DType dtype) {
  const Backend& backend = find_backend(device.kind());
  if (backend.measure_ceiling != nullptr) return backend.measure_ceiling(dtype, kSeconds);
  const auto measure = backend.compiles ? compiled_linear_flops : linear_flops;
  return measure(device, dtype, device.ceiling_size());
}

}  // namespace skein
