#include "skein/base/exception.h"

#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>

namespace skein {
namespace {

// "create directories" of "filesystem error: cannot create directories: Permission denied [/x]".
std::string failed_action(std::string_view what) {
  constexpr std::string_view kBefore = "cannot ";
  const size_t begin = what.find(kBefore);
  if (begin == std::string_view::npos) return "use";
  what.remove_prefix(begin + kBefore.size());
  return std::string(what.substr(0, what.find(':')));
}

Error from_filesystem(const std::filesystem::filesystem_error& error) {
  std::string paths = error.path1().string();
  if (!error.path2().empty()) paths += " and " + error.path2().string();
  const int number = error.code().value();
  return Error(errno_code(number), fmt::format("cannot {} {}: {}", failed_action(error.what()),
                                               paths, errno_text(number)));
}

}  // namespace

Error to_error(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const Error*>(&exception)) return *error;
  if (dynamic_cast<const std::bad_alloc*>(&exception)) {
    return Error(ErrorCode::kNoSpace, "out of memory");
  }
  if (const auto* error = dynamic_cast<const std::filesystem::filesystem_error*>(&exception)) {
    return from_filesystem(*error);
  }
  if (const auto* error = dynamic_cast<const std::system_error*>(&exception)) {
    return Error(errno_code(error->code().value()), error->what());
  }
  return Error(ErrorCode::kInternal, fmt::format("internal error: {}", exception.what()));
}

}  // namespace skein
