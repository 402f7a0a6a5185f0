// What a part in memory holds: the record beside its data. It is what the rank would report of its
// files in a checkpoint (checkpoint/save/part.h), and where in the data the bytes of each file are.
//
// Errors   Error{kInvalid} for a record that no rank writes; kCorrupt where it does not match its
//          own checksum, which it begins with, or where data do not match it
// Cost     verifying: one pass over the data at the memory's speed
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/checkpoint/format/manifest.h"
#include "skein/checkpoint/save/layout.h"
#include "skein/checkpoint/save/part.h"

namespace skein {

// A run of a file's bytes, and where it is in the data.
struct ReplicaRun {
  int64_t begin = 0, bytes = 0;  // in the file
  int64_t at = 0;                // in the data
};

OrderedJson to_json(const ReplicaRun& run);
ReplicaRun run_of(const Json& json, const std::string& what);  // Errors kInvalid
// A whole number from 0 to `most`. Errors kInvalid
int64_t whole_number(const Json& json, int64_t most, const std::string& what);

// By file, in the order of their bytes.
using ReplicaRuns = std::map<std::string, std::vector<ReplicaRun>>;
// Where in the data those bytes of a file are. Errors kInvalid: nowhere
int64_t place_of(const ReplicaRuns& runs, const std::string& file, int64_t begin, int64_t bytes,
                 const std::string& what);

class ReplicaRecord {
 public:
  // Of a snapshot that is complete; takes its checksums.
  static std::string make(const CheckpointLayout& layout, std::span<const std::byte> snapshot,
                          const TrainingState& state);

  ReplicaRecord(const std::string& bytes, const std::string& what);

  // Consumes it. Its configuration is that of the rank that saved it, if it was rank 0.
  SavePart take_part();
  const ReplicaRuns& runs() const { return runs_; }
  // Compares every shard with its checksum.
  void verify(std::span<const std::byte> data) const;

 private:
  std::string what_;
  std::string part_, configuration_;
  ReplicaRuns runs_;
};

}  // namespace skein
