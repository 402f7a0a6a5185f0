// What other emulated libraries need of the emulated runtime.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "cuda_runtime.h"

namespace cuda_emulation {

// Work that may have to wait: called, with the mutex held, until it returns true. It must not wait
// itself; it may advance what it waits for.
using Step = std::function<bool()>;
cudaError_t enqueue_step(cudaStream_t stream, Step step);

// Runs what comes next on a stream, if it can. Whether anything happened. The mutex is held.
bool advance(cudaStream_t stream);
// Tells who waits that a step may get on now. The mutex is held.
void note_change();

// Runs a kernel's function as every thread of one block (thread_block.cc), whose blockDim, gridDim
// and blockIdx are set.
void run_block(const std::function<void()>& thread, unsigned num_threads);

// Ends the program, which would hang, or compute nonsense, without an error of CUDA's.
[[noreturn]] void die(const char* what);

// Held by whoever runs or enqueues; once by who waits for something to change.
std::recursive_mutex& device_mutex();
std::condition_variable_any& something_changed();

}  // namespace cuda_emulation
