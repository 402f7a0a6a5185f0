// How the workers of a machine are divided over processes (launch.workers_per_process).
//
// Several  a process has several workers where their device runs compiled programs (device.kind =
//          "pjrt"): its workers are threads, each with a device, and collectives between them are
//          part of the programs. Elsewhere each has a process of its own
// Not set  with a pipeline the workers of a tensor and context group, else all of the machine
// Errors   Error{kUsage}: a number that does not divide launch.workers, or a device that does not
//          compile
#pragma once

#include "skein/config/config.h"

namespace skein {

int64_t workers_per_process(const Config& config);
int64_t worker_processes(const Config& config);  // of this machine

}  // namespace skein
