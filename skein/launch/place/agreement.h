// Checks that all ranks were started for the same run. Before anything is allocated, ranks exchange
// what they were started with, and all of them refuse if one has another configuration, program or
// mesh.
//
// Cost     one all-gather of 32 bytes a rank; if they differ, one of the longest text
// Errors   Error{kUsage}, the same on every rank: which rank differs from the others in what, and
//          the first line that differs. "The others" are the largest group of ranks that agree, or
//          of several the one with the lowest rank.
//          Error{kPeerLost} from the transport
// Threads  as the communicator, which must accept host memory (gloo, local)
#pragma once

#include <map>
#include <string>

#include "skein/comm/communicator.h"

namespace skein {

// By name: {"configuration", config_text}, {"program", program_id()}, {"mesh", "pp=1 dp=4 ..."}.
using Facts = std::map<std::string, std::string>;

void check_agreement(Communicator& world, const Facts& facts);

// The version and a checksum of the program's file, which is read for it, once.
std::string program_id();

}  // namespace skein
