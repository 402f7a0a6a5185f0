// Measures this machine as `workers` workers would train a configuration on it, and describes it as
// hardware (skein/schedule/hardware.h).
//
// Method   forks as many processes as there are workers, each with its threads. Those that find a
//          core for every thread compute at the same time: the ceiling of matrix products, copies,
//          and steps of the configuration's model on one rank, profiled by op. Then all of them
//          exchange messages of 8 bytes and of 1 and 8 MiB.
//          flops_per_s is what the model's products reach, the peak what large ones do; every
//          other op gets the factor between its time and what its work takes at the rates. Latency
//          and rate of the links are those with which the cost model gives the times that were
//          measured.
// Shares   more workers than cores take turns: concurrent_devices. Communication is done by the
//          same cores as computation: overlap is 0.
// Cost     some seconds; memory of the model on one rank for each process (a large model is
//          measured with two of its layers)
// Errors   kInternal where a process fails; call it before anything starts threads
#pragma once

#include "skein/config/config.h"
#include "skein/model/decoder.h"
#include "skein/schedule/hardware.h"

namespace skein {

Hardware calibrate(const Config& config, const DecoderConfig& model, int64_t workers);

}  // namespace skein
