// Collectives between the ranks of a world: right to the bit, and their rate.
//
// Data      whole numbers below 8, in fp32: their sums over up to 2 million ranks are exact in any
//           order. Every rank computes the answer from the numbers of all
// Rate      bytes that a rank sends in a second (skein/comm/collective.h); the best of some rounds
// Memory    of the device, so that a GPU's transport is what is checked there
// Errors    of the transport (kPeerLost) are what was found
#pragma once

#include "skein/comm/communicator.h"
#include "skein/health/check.h"
#include "skein/runtime/device.h"

namespace skein {

CheckResult check_collective(Device& device, Communicator& world, CollectiveKind kind,
                             int64_t bytes);

}  // namespace skein
