// Keeps infinities and NaNs out of checkpoints: a run could not recover from such a state.
//
// Cost     one pass over the bytes at the memory's speed
// Errors   Error{kNotFinite} naming the tensor, the value and its place.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "skein/tensor/dtype.h"

namespace skein {

bool is_finite(DType dtype, std::span<const std::byte> values);

void check_finite(const std::string& tensor, DType dtype, std::span<const std::byte> values);

}  // namespace skein
