// What other libraries throw, as errors for people: the one conversion at the edge of the program.
#pragma once

#include <exception>

#include "skein/base/error.h"

namespace skein {

// An Error as it is; of std::filesystem what it could not do to which path, with the code of its
// errno; kNoSpace for memory; kInternal, beginning with "internal error", for what nobody foresaw.
Error to_error(const std::exception& exception);

}  // namespace skein
