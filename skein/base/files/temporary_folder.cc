#include "skein/base/files/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "skein/base/error.h"

namespace skein {

TemporaryFolder::TemporaryFolder(const std::string& purpose) {
  std::error_code problem;
  const auto place = std::filesystem::temp_directory_path(problem);
  if (problem) {
    fail(ErrorCode::kIo,
         "cannot make the folder skein-{}-…: TMPDIR, or /tmp without it, is no folder ({})",
         purpose, problem.message());
  }
  path_ = (place / ("skein-" + purpose + "-XXXXXX")).string();
  if (::mkdtemp(path_.data()) == nullptr) {
    fail(ErrorCode::kIo, "cannot make the folder {}: {}", path_, errno_text(errno));
  }
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace skein
