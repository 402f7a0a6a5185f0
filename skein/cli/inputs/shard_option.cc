#include "skein/cli/inputs/shard_option.h"

#include <charconv>

#include "skein/base/error.h"

namespace skein {

WorkShare parse_shard_index(const std::string& text) {
  WorkShare share;
  const char *begin = text.data(), *end = begin + text.size();
  const auto index = std::from_chars(begin, end, share.index);
  const bool has_slash = index.ec == std::errc() && index.ptr < end && *index.ptr == '/';
  const auto count = std::from_chars(has_slash ? index.ptr + 1 : end, end, share.count);
  if (!has_slash || count.ec != std::errc() || count.ptr != end) {
    fail(ErrorCode::kUsage, "--shard-index {}: expected i/n, such as 0/16", text);
  }
  if (share.index < 0 || share.index >= share.count) {
    fail(ErrorCode::kUsage, "--shard-index {}: expected i/n with i from 0 to n - 1", text);
  }
  return share;
}

}  // namespace skein
