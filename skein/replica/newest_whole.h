// Which saves in memory are whole, over all machines of a generation, and reading one as a
// checkpoint: this rank's machine has some parts of it, others come over the network.
//
// Trust    a part counts only once its machine has compared all of it with its checksums; one that
//          does not match loses its label
// Errors   reading: Error{kPeerLost} where a machine is not there any more; kCorrupt for bytes that
//          do not match
// Threads  several threads may read
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/checkpoint/find/reader.h"
#include "skein/replica/worker_place.h"

namespace skein {

// What one worker found in its share of its machine's memory.
struct ReplicaFindings {
  ReplicaEndpoint endpoint;
  std::vector<ReplicaLabel> good;
  std::vector<std::string> bad;  // why they are passed over, for people

  std::string text() const;
  static ReplicaFindings parse(const std::string& text);  // Errors kInvalid
};
ReplicaFindings look_at_replicas(const ReplicaPlace& place);

// One save, and where each of its parts is.
struct ReplicaSave {
  std::string save;
  int64_t timeline = 0;
  int64_t step = 0;
  std::vector<ReplicaLabel> parts;         // by rank
  std::vector<ReplicaEndpoint> endpoints;  // by rank; of several the first that was found

  std::string name() const;  // "the copy of step 41 in memory"
};
// The newest that is whole; `findings` of all workers, so that all of them choose alike.
std::optional<ReplicaSave> newest_whole(std::span<const ReplicaFindings> findings);
// Of the next save: more than that of any that was found, and in the other slot than `used`.
int64_t next_number(std::span<const ReplicaFindings> findings,
                    const std::optional<ReplicaSave>& used);

// What all ranks need to read it; made by one of them, which asks for the records of all parts.
std::string describe_save(const ReplicaSave& save, const ReplicaPlace& place);
std::unique_ptr<CheckpointReader> open_save(const ReplicaSave& save, const ReplicaPlace& place,
                                            const std::string& description);

}  // namespace skein
