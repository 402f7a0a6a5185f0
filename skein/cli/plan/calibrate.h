// Measures this machine as `workers` workers would use it to train a configuration, and returns a
// hardware description (skein/schedule/hardware.h).
//
// Method   forks one process per worker, each with a worker's threads. As many as find a core for
//          every thread measure at the same time: the ceiling of matrix products, copies, and steps
//          of the configuration's model on one rank, profiled by op. Then all of them exchange
//          messages of 8 bytes and of 1 and 8 MiB.
//          flops_per_s is the rate of the model's products, the peak that of large ones; every
//          other op gets the ratio of its time to its predicted time. The links get the latency and
//          rate with which the cost model predicts the measured times.
// Busy     products, copies and ops are measured by the processor time of their threads, waking
//          them and collectives by the best of many; bench/busy.sh prints what four busy processes
//          change all the same. What stays: caches and memory bandwidth that others use; ops that
//          deal work to threads as they come (attention) by up to the number of threads; and
//          collectives, in which a rank that others keep off its core keeps all ranks waiting
// Shares   more workers than cores take turns: concurrent_devices. Communication uses the same
//          cores as computation, so overlap is 0.
// Cost     some seconds; in each process the memory of the model on one rank (a large model is
//          measured with fewer layers, at least two)
// Errors   kInternal where a process fails; must be called before any thread is started, since it
//          forks
#pragma once

#include "skein/config/config.h"
#include "skein/model/decoder.h"
#include "skein/schedule/hardware.h"

namespace skein {

Hardware calibrate(const Config& config, const DecoderConfig& model, int64_t workers);

}  // namespace skein
