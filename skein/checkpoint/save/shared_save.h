// One checkpoint saved by several ranks that share only a file system.
//
//   step-00000040.<save>-1.partial   every rank writes its files here; every rank but 0 then adds
//                                    part-<rank>.bin, an index of what it wrote (part.h)
//   step-00000040.<save>-1.failed    the same folder, once a rank has given up; failed-<rank> in it
//                                    says why. Kept until all ranks have met in a later save, so
//                                    that a late rank finds out
//
// <save> is the options' save_id, different at each start, and the number counts the saves since
// then. So a rank never takes the leftovers of an earlier start or save, or one that is still
// writing, for this save.
//
// Decision  Rank 0 commits by renaming the partial folder to step-...; any rank gives up by
//           renaming it to ....failed. A folder can be renamed only once, so all ranks agree on the
//           outcome. The others recognize the committed folder by its inode, which a rename keeps.
// Errors    Error{kPeerLost} for ranks that are not heard of within the deadline, or if the save is
//           aborted; otherwise what the rank that gave up reports, "rank 3: ...". A folder that
//           cannot be looked at (EIO, ESTALE, EACCES, EMFILE) is waited for until the deadline,
//           which then says why: only ENOENT and ENOTDIR mean that it is not there. A partial
//           folder that somebody took away ends the save for all ranks at once.
// Threads   one at a time.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "skein/base/error.h"
#include "skein/checkpoint/format/file_ops.h"
#include "skein/checkpoint/format/manifest.h"
#include "skein/checkpoint/save/failure.h"
#include "skein/checkpoint/save/part.h"

namespace skein {

struct SharedSaveOptions {
  fs::path dir;
  int64_t step = 0;
  std::string save;  // save_id and number
  int rank = 0;
  int num_ranks = 1;
  double deadline_s = 600;
  std::function<bool()> should_abort;
};

class SharedSave {
 public:
  // `ops` must outlive it.
  SharedSave(SharedSaveOptions options, const FileOps& ops);

  const fs::path& partial() const { return partial_; }
  const fs::path& path() const { return path_; }

  // Creates the partial folder, or finds it.
  void open();
  // Rank r > 0: announces that its files are durable.
  void publish(const Manifest& own);
  // Rank 0: waits for the parts of ranks 1, 2, ..., in this order.
  std::vector<SavePart> collect();
  // Rank 0, after the parts were read and unmapped: NFS keeps a mapped file under another name.
  void remove_parts();
  // Rank r > 0, after publish(): waits until rank 0 has committed; returns the error if it did not.
  std::optional<Error> wait_for_commit();
  // Ends the save for all ranks, unless it has ended. Returns the error to report; nothing if the
  // save was committed after all. Never throws.
  std::optional<Error> give_up(const Error& error);

 private:
  using FolderId = std::pair<dev_t, ino_t>;
  enum class Outcome { kOpen, kCommitted, kFailed, kVanished };
  static std::optional<FolderId> folder_id(const fs::path& path);

  Outcome outcome_now() const;
  bool committed() const { return id_ && folder_id(path_) == id_; }
  bool failed() const { return folder_id(failed_).has_value(); }
  bool has_vanished() const;
  Error vanished() const;
  Error reason(const Error& unknown) const;
  void rename_to_failed(const Error& error);
  void read_parts(std::vector<std::optional<SavePart>>& parts, int& num_missing) const;
  void check_patience(const Patience& patience, const std::string& waiting_for) const;

  SharedSaveOptions options_;
  const FileOps& ops_;
  fs::path path_, partial_, failed_;
  std::optional<FolderId> id_;  // of the partial folder, which becomes the checkpoint
  bool published_ = false;
};

}  // namespace skein
