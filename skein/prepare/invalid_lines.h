// When lines that were passed over are too many to go on.
#pragma once

#include "skein/prepare/piece.h"

namespace skein {

// The share of lines that may be passed over unless a caller says otherwise.
constexpr double kMaxInvalidLines = 0.01;

// Error{kInvalid} where more than 100 lines, and more than the share `most` of all, are not valid.
void check_invalid_lines(const PieceReport& total, double most);

}  // namespace skein
