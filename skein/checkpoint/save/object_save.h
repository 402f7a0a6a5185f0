// One checkpoint saved into a bucket, by one rank or by several that share nothing but the bucket.
//
//   step-00000040/weights-00002-00000.<save>.safetensors   every rank writes its objects
//   step-00000040/saving.<save>/part-00002.bin             rank 2 is done: an index of them
//   step-00000040/saving.<save>/failed-00002               rank 2 gives up, and why
//   step-00000040/saving.<save>/outcome                    rank 0: {"committed": true}, or why not
//   step-00000040/manifest.json                            the checkpoint: written last, by rank 0
//
// <save> is different for each save, so that a rank never takes what an earlier one left, or still
// writes, for a part of this one.
//
// Decision  Rank 0 alone: the checkpoint exists once its manifest does. A bucket has no rename that
//           only one can win, so a rank that has published and then waits in vain (twice the
//           deadline, or because a peer was lost) reports a failure, while rank 0 may still commit
// Errors    as shared_save.h
// Threads   one at a time
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "skein/checkpoint/find/objects.h"
#include "skein/checkpoint/save/failure.h"
#include "skein/checkpoint/save/part.h"
#include "skein/checkpoint/save/snapshot_save.h"

namespace skein {

class ObjectSave {
 public:
  // `job` must outlive it.
  ObjectSave(const SaveJob& job, int64_t step);

  const fs::path& folder() const { return folder_; }
  // "weights-00002-00000.safetensors" as this save writes it.
  std::string object_name(const std::string& file) const;

  // Rank r > 0: announces that its objects are there.
  void publish(const Manifest& own);
  // Rank 0: waits for the parts of ranks 1, 2, ..., in this order, and checks that the objects of
  // all, with those of `own`, are there with their sizes. Returns the parts, rank 0's first.
  std::vector<SavePart> collect(const Manifest& own);
  // Rank 0, once the manifest is there: tells the others, and removes what is of no checkpoint.
  void end();
  // Rank r > 0, after publish(): the error where the checkpoint was not committed.
  std::optional<Error> wait_for_commit();
  // Tells the others, and returns the error to report. Never throws.
  Error give_up(const Error& error);

 private:
  fs::path told(int rank, const char* what) const;
  void read_parts(const std::vector<StoredObject>& objects,
                  std::vector<std::optional<SavePart>>& parts) const;
  void check(const Patience& patience, const std::string& waiting_for) const;

  const SaveJob& job_;
  fs::path folder_;
  std::string save_;
  fs::path saving_;  // "saving.<save>" in the folder
};

}  // namespace skein
