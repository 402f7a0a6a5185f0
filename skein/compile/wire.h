// What a rank sends in training steps, by group and kind of collective: planned from its programs,
// and counted by its communicators. The two are equal, to the byte.
//
// Units   a step's or a run's, as the caller adds them up: `calls`, and `sent_bytes` that the rank
//         hands to the transport (skein/comm/communicator.h). Receives are their senders'.
// Groups  a mesh axis ("dp"); "pp.backward" for gradients between pipeline stages
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "skein/base/json.h"
#include "skein/compile/program_runs.h"
#include "skein/ir/program.h"
#include "skein/runtime/executor.h"

namespace skein {

struct WireUse {
  int64_t ranks = 1;  // of the group
  int64_t calls = 0;
  int64_t sent_bytes = 0;
  bool operator==(const WireUse&) const = default;
};
using WireKey = std::pair<std::string, CollectiveKind>;  // group, kind
using Wire = std::map<WireKey, WireUse>;

// What a step of a program says to others; nothing where it says nothing. Bytes are those of
// `rank`, which may be any rank of the pipeline stage that the program is of.
struct Message {
  std::string group;
  CollectiveKind kind = CollectiveKind::kBarrier;
  int64_t ranks = 1;
  int64_t whole_bytes = 0;  // of the collective: x in skein/comm/communicator.h
  int64_t sent_bytes = 0;
};
std::optional<Message> message_of(const Instruction& instruction, const Mesh& mesh, int64_t rank);

// Of one training step of `rank`, which is on the programs' stage.
Wire planned_wire(const ProgramSet& programs, const ProgramRuns& runs, int64_t rank);

// Since the communicators were made.
Wire counted_wire(const Communicators& communicators);

// total += later - earlier, of counts of the same communicators.
void add_difference(Wire& total, const Wire& later, const Wire& earlier);

int64_t sent_bytes(const Wire& wire);

// [{"group", "kind", "ranks", "calls", "sent_bytes"}]
OrderedJson wire_to_json(const Wire& wire);

}  // namespace skein
