// What the CUDA backend gives to the rest of the program; in a build without CUDA, the errors that
// say so.
#pragma once

#include <memory>

#include "skein/runtime/device.h"

namespace skein {

// GPUs that the driver shows to this process; 0 where there is no driver, or no CUDA in this build.
int num_cuda_devices();

void expect_several_cuda_ranks();

// Errors  kUnsupported: no CUDA in this build, no driver, a driver that is too old, no such GPU, an
//         architecture that the build has no kernels for; each with what to do
std::unique_ptr<Device> make_cuda_device(const DeviceOptions& options, KernelTable kernels);

// ---- what benchmarks ask, and no run needs ----

// Starts a copy within the memory of a CUDA device, by the driver: the yardstick of kernels that
// only move memory. A copy reads `bytes` and writes as many.
void start_cuda_copy(Device& device, void* to, const void* from, int64_t bytes);

// Memory of the present GPU that is not free: everything that this process took, the driver's part
// of it too, and what other processes hold.
int64_t used_cuda_bytes();

}  // namespace skein
