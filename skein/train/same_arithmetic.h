// Whether all ranks round alike. What several ranks compute of the same values (replicated weights,
// the masters of ZeRO 0) would drift apart on mixed kinds of devices, and losses would depend on
// which rank got what.
//
// Errors   Error{kUsage}, the same on every rank: each kind, its ranks and their hosts, and what to
//          do
#pragma once

#include <string>

#include "skein/comm/communicator.h"
#include "skein/runtime/device.h"

namespace skein {

// Of a rank on a CPU: its cpu_kind(), so that the advice can name one that all have.
void check_same_arithmetic(Communicator& world, const std::string& arithmetic,
                           const std::string& host);
void check_same_arithmetic(Communicator& world, const Device& device);  // of this host

}  // namespace skein
