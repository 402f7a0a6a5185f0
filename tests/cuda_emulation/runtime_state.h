// What the files of the emulated runtime share.
#pragma once

#include <mutex>

#include "cuda_emulation.h"

namespace cuda_emulation {

// One caller at a time, whatever its device: kernels share the variables of cuda_runtime.h. A
// thread that waits for another one's streams holds it once.
using Lock = std::lock_guard<std::recursive_mutex>;

extern thread_local int current_device;
// What ended the device: nothing runs after it, as on a GPU, and every call that looks says so.
extern cudaError_t broken;

// Notes an error for cudaGetLastError, and returns it.
cudaError_t result(cudaError_t error);

// Whether this thread captures, and the error of a call that it may not make meanwhile.
bool is_capturing();
cudaError_t forbidden();

// Runs all that was enqueued on a stream; null: on the current device's default stream.
void run_all(cudaStream_t stream);

// The size of each device's memory.
size_t device_bytes();

}  // namespace cuda_emulation
