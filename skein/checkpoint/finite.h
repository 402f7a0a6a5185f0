// Nothing infinite, and no NaN, goes into a checkpoint: a run that goes on from there is lost.
//
// Cost     one pass over the bytes at the memory's speed
// Errors   Error{kNotFinite} naming the tensor, the value and where it stands.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "skein/tensor/dtype.h"

namespace skein {

void check_finite(const std::string& tensor, DType dtype, std::span<const std::byte> values);

}  // namespace skein
