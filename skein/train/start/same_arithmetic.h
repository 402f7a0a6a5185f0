// Checks that all ranks round alike. Replicated values (weights, the masters of ZeRO 0) are
// computed on each rank; on mixed kinds of devices the copies would drift apart, and losses would
// depend on which rank had which device.
//
// Errors   Error{kUsage}, the same on every rank: each kind with its ranks and hosts, and what to
//          do
#pragma once

#include <string>

#include "skein/comm/communicator.h"
#include "skein/runtime/device.h"

namespace skein {

// `arithmetic`: Device::arithmetic(). On a CPU it is cpu_kind(), so that the error can suggest a
// kind that every host supports.
void check_same_arithmetic(Communicator& world, const std::string& arithmetic,
                           const std::string& host);
void check_same_arithmetic(Communicator& world, const Device& device);  // names this host

}  // namespace skein
