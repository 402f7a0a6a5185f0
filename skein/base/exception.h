// Turns exceptions of other libraries into errors for people, at the top level of the program.
#pragma once

#include <exception>

#include "skein/base/error.h"

namespace skein {

// An Error is returned unchanged. From a std::filesystem error: what could not be done to which
// path, with the code of its errno. kNoSpace for std::bad_alloc; kInternal, beginning with
// "internal error", for everything else.
Error to_error(const std::exception& exception);

}  // namespace skein
