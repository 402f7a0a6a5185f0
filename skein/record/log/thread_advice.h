// Whether the threads of a worker pay in a step: before the first step by a rule, later by what
// steps take.
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
#include <vector>

namespace skein {

// The work of one step.
struct StepWork {
  double flops = 0;        // of all workers
  int64_t num_calls = 0;   // of kernels, of one worker
  double flops_per_s = 0;  // what large products reach on all workers with all threads
  int threads = 1;         // of a worker

  double one_thread_seconds() const { return flops / flops_per_s * threads; }
};

// For the log, before the first step; "" where threads pay.
std::string thread_advice(const StepWork& work);

// Watches the first steps of a start, and warns once where they take so much longer than their
// work that threads must be waiting for cores that other work has.
class SlowThreads {
 public:
  // For the log, as soon as enough steps are known; "" where threads do not wait much, and for
  // every step after that. `seconds`: without what it waited for data, ranks and saves.
  std::string after_step(const StepWork& work, double seconds);

 private:
  std::vector<double> seconds_;
  bool is_done_ = false;
};

}  // namespace skein
