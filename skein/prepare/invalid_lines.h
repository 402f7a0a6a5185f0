// When lines that were passed over are too many to go on.
#pragma once

#include "skein/prepare/piece.h"
#include "skein/prepare/pieces.h"

namespace skein {

// The share of lines that may be passed over unless a caller says otherwise.
constexpr double kMaxInvalidLines = 0.01;

// The same while files are read: Error{kInvalid} where so many lines are not valid that the whole
// input cannot have enough that are, at lines as long as those so far and with as many again to be
// on the safe side. Then nobody waits for the end.
void check_invalid_lines(const PiecesProgress& progress, double most);

// Error{kInvalid} where more than 100 lines, and more than the share `most` of all, are not valid.
void check_invalid_lines(const PieceReport& total, double most);

}  // namespace skein
