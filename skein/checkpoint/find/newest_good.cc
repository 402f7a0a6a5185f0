#include "skein/checkpoint/find/newest_good.h"

#include <chrono>
#include <numeric>
#include <thread>

#include "skein/checkpoint/format/stored_file.h"
#include "skein/objects/url.h"

namespace skein {
namespace {

// Calls `body` again after each pause, as long as the checkpoint cannot be read.
template <typename Body>
auto patiently(const SearchOptions& options, const Body& body) {
  for (size_t i = 0;; ++i) {
    try {
      return body();
    } catch (const Error& error) {
      if (!is_read_error(error)) throw;
      if (i == options.pauses_s.size()) {
        const double seconds =
            std::accumulate(options.pauses_s.begin(), options.pauses_s.end(), 0.0);
        fail(ErrorCode::kIo,
             "{}. It was tried {} times within {:g} s. The checkpoint may be good all the same: "
             "mend what keeps it from being read and start again, or move it away to continue from "
             "an older one",
             error.what(), i + 1, seconds);
      }
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(options.pauses_s[i]));
  }
}

bool has_vanished(const fs::path& checkpoint) {
  return !is_stored(is_object_url(checkpoint) ? checkpoint / "manifest.json" : checkpoint);
}

// Nothing if a checkpoint vanished before it was verified, because another process removed it.
std::optional<std::optional<CheckpointInfo>> search_once(const Lineage& lineage,
                                                         const ReportDamaged& report_damaged,
                                                         const SearchOptions& options,
                                                         bool again_if_vanished) {
  if (lineage.conflict) throw *lineage.conflict;
  for (const CheckpointInfo& checkpoint : lineage.checkpoints) {
    const Result<VerifyReport> verified = verify_patiently(checkpoint.path, options);
    if (verified.ok()) return checkpoint;
    if (again_if_vanished && has_vanished(checkpoint.path)) return std::nullopt;
    if (report_damaged) report_damaged(checkpoint, verified.error());
  }
  return std::optional<CheckpointInfo>();
}

}  // namespace

Result<VerifyReport> verify_patiently(const fs::path& checkpoint, const SearchOptions& options) {
  return patiently(options, [&]() -> Result<VerifyReport> {
    Result<VerifyReport> verified = options.verify(checkpoint);
    if (!verified.ok() &&
        (is_read_error(verified.error()) || verified.error().code() == ErrorCode::kUnsupported)) {
      throw verified.error();
    }
    return verified;
  });
}

Lineage lineage_patiently(const fs::path& dir, const SearchOptions& options) {
  return patiently(options, [&] { return lineage_of(dir); });
}

std::optional<CheckpointInfo> find_newest_good(const Lineage& lineage,
                                               const ReportDamaged& report_damaged,
                                               const SearchOptions& options) {
  return *search_once(lineage, report_damaged, options, false);
}

std::optional<CheckpointInfo> find_newest_good(const fs::path& dir,
                                               const ReportDamaged& report_damaged,
                                               const SearchOptions& options) {
  constexpr int kTries = 5;
  for (int i = 1;; ++i) {
    const Lineage lineage = lineage_patiently(dir, options);
    const auto found = search_once(lineage, report_damaged, options, i < kTries);
    if (found) return *found;
  }
}

}  // namespace skein
