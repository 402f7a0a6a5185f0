// The newest good checkpoint: of those that the newest timeline follows from (lineage.h), the one
// with the largest step that verifies.
//
// Damaged     what does not verify is reported and passed over
// Unreadable  what the operating system refuses to read (EIO, ESTALE, no permission, too many open
//             files) may be good: it is tried again, and then the search ends with Error{kIo}; an
//             older checkpoint in its place would cost the work since
// Newer       so does a checkpoint of a newer format, with Error{kUnsupported}
// Two runs    in one folder: Error{kUsage}
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "skein/checkpoint/checkpoint_reader.h"
#include "skein/checkpoint/lineage.h"

namespace skein {

using ReportDamaged = std::function<void(const CheckpointInfo&, const Error&)>;

struct SearchOptions {
  std::vector<double> pauses_s = {0.2, 1, 3};  // before what could not be read is tried again
  std::function<Result<VerifyReport>(const fs::path&)> verify = [](const fs::path& path) {
    return verify_checkpoint(path);
  };
};

// Verifies one. Throws where it could not be read, or is of a newer format.
Result<VerifyReport> verify_patiently(const fs::path& checkpoint,
                                      const SearchOptions& options = {});

Lineage lineage_patiently(const fs::path& dir, const SearchOptions& options = {});

// The newest good one; each damaged one that was passed over is reported. Nothing where there is no
// checkpoint, or no good one: callers that must not start again from nothing tell the two apart by
// whether anything was reported.
std::optional<CheckpointInfo> find_newest_good(const Lineage& lineage,
                                               const ReportDamaged& report_damaged,
                                               const SearchOptions& options = {});
// For those who only read, beside a run that may save and remove meanwhile.
std::optional<CheckpointInfo> find_newest_good(const fs::path& dir,
                                               const ReportDamaged& report_damaged,
                                               const SearchOptions& options = {});

// The folder of the checkpoints of a run, or `path` itself where it has no such folder.
fs::path checkpoints_inside(const fs::path& run_or_checkpoints);

}  // namespace skein
