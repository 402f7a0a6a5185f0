#include "skein/prepare/invalid_lines.h"

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr int64_t kFewInvalidLines = 100;

}  // namespace

void check_invalid_lines(const PieceReport& total, double most) {
  const int64_t num_lines = total.num_documents_read + total.num_invalid_lines;
  const double share =
      static_cast<double>(total.num_invalid_lines) / static_cast<double>(num_lines);
  if (total.num_invalid_lines <= kFewInvalidLines || share <= most) return;
  fail(
      ErrorCode::kInvalid,
      "{} of {} lines are not valid, a share of {:.4f}: expected {} at most (--max-invalid-lines); "
      "the first one: {}",
      total.num_invalid_lines, num_lines, share, most,
      total.warnings.empty() ? "" : total.warnings.front());
}

}  // namespace skein
