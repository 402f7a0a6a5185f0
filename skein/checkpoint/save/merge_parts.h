// Merges what each rank says that it wrote into one manifest.
#pragma once

#include <vector>

#include "skein/checkpoint/format/manifest.h"

namespace skein {

// `parts` are those of ranks 0, 1, 2, ...; the state is rank 0's. The lanes of the parts that bring
// some are joined in the order of first_lane: the objects must be equal except for their arrays
// "lanes", which are concatenated, as one rank with all lanes would have written them. Throws
// Error{kInvalid} naming the rank that saved another state, another tensor of the same name, or
// lanes that do not continue the previous ones; and as parse_manifest if a tensor is not covered
// exactly once.
Manifest merge_parts(std::vector<Manifest> parts);

// Merges only the state and the lanes.
TrainingState merge_states(std::vector<TrainingState> states);

// Throws Error{kInvalid} if `rank` saved another dtype or shape than the ranks before it.
void check_same_tensor(size_t rank, const ManifestTensor& tensor, DType dtype, const Shape& shape);

}  // namespace skein
