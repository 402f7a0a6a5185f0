// What a supervisor tells a worker about copies of the state in memory: SKEIN_REPLICAS, as JSON.
#pragma once

#include <string>
#include <vector>

#include "skein/replica/wire.h"

namespace skein {

struct ReplicaPlace {
  std::vector<int> slots;       // files of its own saves, kReplicaSlots of them
  std::vector<int> kept;        // files of all that its machine keeps, its own among them
  int event = -1;               // to be written to when a save is complete
  bool passes_on = false;       // the supervisor passes saves on, and says when it has
  int worker = 0, workers = 1;  // its index among those of the machine
  ReplicaEndpoint endpoint;     // of its machine
  ReplicaKey key = {};          // of the run; not in the text, which others may read

  // Of host memory that copies will take for each worker of this machine, beside what is taken
  // already: its own, and as much of the machine before.
  int64_t more_bytes(int64_t snapshot_bytes) const;

  std::string text() const;
  static ReplicaPlace parse(const std::string& text);  // Errors kInvalid
};

}  // namespace skein
