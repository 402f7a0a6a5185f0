// Which bytes of a collective belong to which rank: all transports have to agree on it.
#pragma once

#include <algorithm>

#include "skein/comm/communicator.h"

namespace skein {

struct ByteSpan {
  int64_t begin = 0;
  int64_t bytes = 0;
};

// Elements in a full share: `part.share`, or ceil(elements / size) for an all-reduce.
int64_t share_elements(const Collective& collective, const CollectivePart& part, int size);

// Where in the whole the share of `rank` lies; shorter, or empty, if n does not divide the
// elements.
ByteSpan share_of(const Collective& collective, const CollectivePart& part, int size, int rank);

// Scratch for one other rank's term of this part: a full share, rounded up to 64 bytes.
int64_t scratch_slot_bytes(const Collective& collective, const CollectivePart& part, int size);

// Where the term of `peer` lies in scratch: part after part, and rank after rank without `rank`.
int64_t scratch_offset(const Collective& collective, size_t part, int size, int rank, int peer);

// Throws Error{kInternal} for an invalid peer, share or scratch.
void check_collective(const Collective& collective, int rank, int size);

// Throws Error{kInternal} if these cannot be the members of a group `name` of `whole`.
void check_members(const std::vector<int>& members, const Communicator& whole,
                   const std::string& name);

}  // namespace skein
