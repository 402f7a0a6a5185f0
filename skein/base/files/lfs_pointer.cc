#include "skein/base/files/lfs_pointer.h"

#include "skein/base/error.h"

namespace skein {

const char* const kLfsAdvice =
    "a Git LFS pointer, not the file: `git lfs pull` in its repository brings it";

bool is_lfs_pointer(std::string_view head) {
  return head.starts_with("version https://git-lfs.github.com/spec/");
}

bool is_lfs_pointer_file(const fs::path& path) {
  constexpr int64_t kMostBytes = 1024;
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error || static_cast<int64_t>(size) > kMostBytes) return false;
  Result<std::string> text = try_run([&] { return read_file(path, kMostBytes); });
  return text.ok() && is_lfs_pointer(text.value());
}

void refuse_lfs_pointer(std::string_view head, const std::string& where) {
  if (is_lfs_pointer(head)) fail(ErrorCode::kInvalid, "{}: {}", where, kLfsAdvice);
}

}  // namespace skein
