// Timelines group the checkpoints that follow from one another. A run has one timeline until it
// goes back to an earlier checkpoint, or starts from another run's checkpoint: then a new timeline
// begins.
//
// Format   a key of manifest.json (docs/checkpoint_format.md):
//          {"run_id": "20261122t081032-5f3a91c2", "number": 2,
//           "parent": {"run_id": "20261121t170501-0b11d2ee", "step": 10, "path": "step-00000010"}}
// Errors   Error{kInvalid} naming the key, what was found and what was expected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "skein/base/text/json.h"

namespace skein {

struct Timeline {
  // The checkpoint from which the timeline began.
  struct Parent {
    std::string run_id;  // "" if that checkpoint has none
    int64_t step = 0;
    std::string path;  // a folder name beside this checkpoint, otherwise absolute, or s3://…

    bool lies_beside() const { return path.find('/') == std::string::npos; }

    bool operator==(const Parent&) const = default;
  };

  std::string run_id;  // unique to the timeline; "": saved before timelines existed
  int64_t number = 0;  // a later timeline in a folder of checkpoints has a larger number
  std::optional<Parent> parent;

  bool operator==(const Timeline&) const = default;
};

// Returns a different id at each call.
std::string new_run_id();

// For timelines in one folder of checkpoints. Checkpoints saved before timelines existed belong to
// the one with number 0, whatever its run id is.
bool same_timeline(const Timeline& a, const Timeline& b);

Json timeline_json(const Timeline& timeline);
Timeline parse_timeline(const Json& json, const std::string& where);

}  // namespace skein
