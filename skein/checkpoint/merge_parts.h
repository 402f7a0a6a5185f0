// One manifest from what each rank says that it wrote.
#pragma once

#include <vector>

#include "skein/checkpoint/manifest.h"

namespace skein {

// `parts` is of ranks 0, 1, 2, …; the state is rank 0's. The lanes are those of the parts that
// bring some, in order of first_lane: objects that are equal but for their arrays "lanes", which
// are joined. That is what one rank that had all lanes would have written.
// Throws Error{kInvalid} naming the rank that saved another state, another tensor of a name, or
// lanes that do not follow on; what parse_manifest throws where a tensor is not covered once.
Manifest merge_parts(std::vector<Manifest> parts);

// The state and the lanes alone.
TrainingState merge_states(std::vector<TrainingState> states);

// Throws Error{kInvalid} where `rank` saved another dtype or shape than ranks before it.
void check_same_tensor(size_t rank, const ManifestTensor& tensor, DType dtype, const Shape& shape);

}  // namespace skein
