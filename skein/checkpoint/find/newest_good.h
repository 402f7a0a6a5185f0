// Finds the newest good checkpoint: of those that the newest timeline follows from (lineage.h), the
// one with the largest step that verifies.
//
// Damaged     a checkpoint that does not verify is reported and skipped
// Unreadable  what the operating system refuses to read (EIO, ESTALE, no permission, too many open
//             files) may be good: it is tried again, and then the search ends with Error{kIo}.
//             Taking an older checkpoint instead would lose the work since then
// Newer       a checkpoint of a newer format ends the search, too, with Error{kUnsupported}
// Two runs    in one folder: Error{kUsage}
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "skein/checkpoint/find/lineage.h"
#include "skein/checkpoint/find/reader.h"

namespace skein {

using ReportDamaged = std::function<void(const CheckpointInfo&, const Error&)>;

struct SearchOptions {
  std::vector<double> pauses_s = {0.2, 1, 3};  // before each further attempt to read
  std::function<Result<VerifyReport>(const fs::path&)> verify = [](const fs::path& path) {
    return verify_checkpoint(path);
  };
};

// Verifies one checkpoint. Throws if it cannot be read, or has a newer format.
Result<VerifyReport> verify_patiently(const fs::path& checkpoint,
                                      const SearchOptions& options = {});

Lineage lineage_patiently(const fs::path& dir, const SearchOptions& options = {});

// The newest good checkpoint; each damaged one that was skipped is reported. Nothing if there is no
// checkpoint, or no good one: callers that must not start from scratch can tell these cases apart
// by whether anything was reported.
std::optional<CheckpointInfo> find_newest_good(const Lineage& lineage,
                                               const ReportDamaged& report_damaged,
                                               const SearchOptions& options = {});
// For readers beside a run that may save and remove checkpoints meanwhile.
std::optional<CheckpointInfo> find_newest_good(const fs::path& dir,
                                               const ReportDamaged& report_damaged,
                                               const SearchOptions& options = {});

}  // namespace skein
