// What belongs together among checkpoints: those that follow from one another. A run has one
// timeline until it goes back to an earlier checkpoint, or begins from another run's; what comes
// after that is another one.
//
// Format   a key of manifest.json (docs/checkpoint_format.md):
//          {"run_id": "20261122t081032-5f3a91c2", "number": 2,
//           "parent": {"run_id": "20261121t170501-0b11d2ee", "step": 10, "path": "step-00000010"}}
// Errors   Error{kInvalid} naming the key, what was found and what was expected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "skein/base/json.h"

namespace skein {

struct Timeline {
  // The checkpoint that it began from.
  struct Parent {
    std::string run_id;  // "" where that checkpoint has none
    int64_t step = 0;
    std::string path;  // the folder's name where it is beside this one; else absolute

    bool operator==(const Parent&) const = default;
  };

  std::string run_id;  // no two timelines have the same; "": saved before there were any
  int64_t number = 0;  // within a folder of checkpoints, a later one has a larger number
  std::optional<Parent> parent;

  bool operator==(const Timeline&) const = default;
};

// Another one at each call.
std::string new_run_id();

// Of one folder of checkpoints. Those saved before there were timelines are of the one with number
// 0, whatever it is called later.
bool same_timeline(const Timeline& a, const Timeline& b);

Json timeline_json(const Timeline& timeline);
Timeline parse_timeline(const Json& json, const std::string& where);

}  // namespace skein
