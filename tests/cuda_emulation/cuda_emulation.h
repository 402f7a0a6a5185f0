// What other emulated libraries need of the emulated runtime.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "cuda_runtime.h"

namespace cuda_emulation {

// Work that may have to wait: it is called, with the mutex held, until it returns true. It must not
// block, but it may advance the stream that it waits for.
using Step = std::function<bool()>;
cudaError_t enqueue_step(cudaStream_t stream, Step step);

// Runs what comes next on a stream, if it can, and returns whether anything ran. The mutex is held.
bool advance(cudaStream_t stream);
// Wakes threads whose step may be able to go on now. The mutex is held.
void note_change();

// Runs a kernel's function as every thread of one block; blockDim, gridDim and blockIdx are set.
void run_block(const std::function<void()>& thread, unsigned num_threads);

// Ends the program where a GPU would hang or compute nonsense without an error.
[[noreturn]] void die(const char* what);

// Whoever runs or enqueues holds it. A thread that waits for a change holds it only once, so that
// the wait releases it.
std::recursive_mutex& device_mutex();
std::condition_variable_any& something_changed();

}  // namespace cuda_emulation
