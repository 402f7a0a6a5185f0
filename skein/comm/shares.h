// Which bytes of a collective belong to which rank: what every transport has to agree on.
#pragma once

#include <algorithm>

#include "skein/comm/communicator.h"

namespace skein {

struct ByteSpan {
  int64_t begin = 0;
  int64_t bytes = 0;
};

// Elements of a full share: `part.share`, or ceil(elements / size) for an all-reduce.
int64_t share_elements(const Collective& collective, const CollectivePart& part, int size);

// Where in the whole the share of `rank` lies; shorter, or empty, at the ragged end.
ByteSpan share_of(const Collective& collective, const CollectivePart& part, int size, int rank);

// The scratch that one other rank's term of this part takes: a full share, rounded up to 64 bytes.
int64_t scratch_slot_bytes(const Collective& collective, const CollectivePart& part, int size);

// Others' terms of a sum lie in scratch: part after part, rank after rank without this one, `rank`.
int64_t scratch_offset(const Collective& collective, size_t part, int size, int rank, int peer);

// Throws Error{kInternal} where peer, shares or scratch cannot be right.
void check_collective(const Collective& collective, int rank, int size);

// Throws Error{kInternal} where these cannot be the members of a group `name` of `whole`.
void check_members(const std::vector<int>& members, const Communicator& whole,
                   const std::string& name);

}  // namespace skein
