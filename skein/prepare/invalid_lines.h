// When lines that were passed over are too many to go on.
#pragma once

#include "skein/prepare/piece.h"
#include "skein/prepare/pieces.h"

namespace skein {

// The share of lines that may be passed over unless a caller says otherwise.
constexpr double kMaxInvalidLines = 0.01;

// The same while files are read, so that nobody waits for the end: Error{kInvalid} where the share
// of the whole input would be too large even if twice as many lines came as it has at the length of
// those so far. An estimate: bad lines that are far longer than all others, and come first, end an
// input that would pass; the error says how to go on.
void check_invalid_lines(const PiecesProgress& progress, double most);

// Error{kInvalid} where more than 100 lines, and more than the share `most` of all, are not valid.
void check_invalid_lines(const PieceReport& total, double most);

}  // namespace skein
