// Whether all ranks mean the same run: before anything is allocated, each says what it was started
// with, and a rank with another configuration, program or mesh is refused on every rank.
//
// Cost     one all-gather of 32 bytes a rank; where they differ, one of the longest text
// Errors   Error{kUsage}, the same on every rank: which rank differs from the others in what, and
//          the first line that differs. Where two groups are as large, those that agree with the
//          lower rank are "the others".
//          Error{kPeerLost} of the transport
// Threads  as the communicator, whose memory must be the host's (gloo, local)
#pragma once

#include <map>
#include <string>

#include "skein/comm/communicator.h"

namespace skein {

// By name: {"configuration", config_text}, {"program", program_id()}, {"mesh", "pp=1 dp=4 …"}.
using Facts = std::map<std::string, std::string>;

void check_agreement(Communicator& world, const Facts& facts);

// The version, and a checksum of the program's file. Cost: reads that file.
std::string program_id();

}  // namespace skein
