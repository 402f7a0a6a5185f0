#include "skein/prepare/invalid_lines.h"

#include <algorithm>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr int64_t kFewInvalidLines = 100;

}  // namespace

void check_invalid_lines(const PiecesProgress& progress, double most) {
  const bool is_read = progress.num_files_done == progress.num_files;  // all is known soon
  if (is_read || progress.num_invalid_lines <= kFewInvalidLines) return;
  const auto num_invalid = static_cast<double>(progress.num_invalid_lines);
  const double num_lines = num_invalid + static_cast<double>(progress.num_documents);
  const double share_read = static_cast<double>(progress.num_input_bytes_done) /
                            std::max(1.0, static_cast<double>(progress.num_input_bytes));
  const double num_expected = 2 * num_lines / std::clamp(share_read, 1e-9, 1.0);
  if (num_invalid <= most * num_expected) return;
  fail(ErrorCode::kInvalid,
       "{} of the first {} lines are not valid, with {:.1f} % of the input read: expected a share "
       "of {} at most (--max-invalid-lines; 1 reads to the end)",
       progress.num_invalid_lines, num_lines, 100 * share_read, most);
}

void check_invalid_lines(const PieceReport& total, double most) {
  const int64_t num_lines = total.num_documents_read + total.num_invalid_lines;
  const double share =
      static_cast<double>(total.num_invalid_lines) / static_cast<double>(num_lines);
  if (total.num_invalid_lines <= kFewInvalidLines || share <= most) return;
  fail(ErrorCode::kInvalid,
       "{} of {} lines are not valid, a share of {:.4f}: expected {} at most (--max-invalid-lines "
       "allows more); the first one: {}",
       total.num_invalid_lines, num_lines, share, most,
       total.warnings.empty() ? "" : total.warnings.front());
}

}  // namespace skein
