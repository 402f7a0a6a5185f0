#include "skein/base/error.h"

#include <cerrno>
#include <cstring>

namespace skein {

std::string errno_text(int error_number) {
  return fmt::format("{} ({})", std::strerror(error_number), error_number);
}

ErrorCode errno_code(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return ErrorCode::kNoSpace;
    case ENOENT:
      return ErrorCode::kNotFound;
    default:
      return ErrorCode::kIo;
  }
}

}  // namespace skein
