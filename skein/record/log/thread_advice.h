// Whether the threads of a worker can pay in a step.
//
// Rule     A step whose work takes one thread T, in c calls of kernels, is shortened by n threads
//          by at most T (1 - 1/n), and they wait for each other c times. Where other work shares
//          the cores, a thread that has lost its core holds up all others. Measured on two cores
//          beside a compiler: 0.4 to 0.5 ms a call, whatever its work (steps of 3.8 ms with one
//          thread took 49 ms with two). Threads that save less than a fifth of that cannot pay
//          where cores are shared, and hardly elsewhere
#pragma once

#include <cstdint>
#include <string>

namespace skein {

// For the log; "" where threads pay. `step_flops` of all workers; `num_calls` of one;
// `flops_per_s`: what large products reach on all workers, with `threads` threads each.
std::string thread_advice(double step_flops, int64_t num_calls, double flops_per_s, int threads);

}  // namespace skein
