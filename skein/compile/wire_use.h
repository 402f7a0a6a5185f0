// The bytes that a rank sends in training steps, by group and kind of collective: planned from its
// programs, and counted by its communicators. Tests check that both are equal to the byte.
//
// Units   of a step or a run, as the caller adds them up: `calls`, and `sent_bytes` that the rank
//         hands to the transport (skein/comm/communicator.h). Received bytes count at the sender.
// Groups  a mesh axis ("dp"); "pp.backward" for gradients between pipeline stages
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "skein/base/text/json.h"
#include "skein/compile/program_runs.h"
#include "skein/ir/program.h"
#include "skein/runtime/executor.h"

namespace skein {

struct WireUse {
  int64_t ranks = 1;  // in the group
  int64_t calls = 0;
  int64_t sent_bytes = 0;
  bool operator==(const WireUse&) const = default;
};
using WireKey = std::pair<std::string, CollectiveKind>;  // group, kind
using Wire = std::map<WireKey, WireUse>;

// The message that an instruction sends; nullopt where it sends nothing. Bytes are those of `rank`,
// any rank of the program's pipeline stage.
struct WireMessage {
  std::string group;
  CollectiveKind kind = CollectiveKind::kBarrier;
  int64_t ranks = 1;
  int64_t whole_bytes = 0;  // of the whole collective, x in
  int64_t sent_bytes = 0;
};
std::optional<WireMessage> message_of(const Instruction& instruction, const Mesh& mesh,
                                      int64_t rank);

// The bytes of one training step of `rank`, which belongs to the programs' stage.
Wire planned_wire(const ProgramSet& programs, const ProgramRuns& runs, int64_t rank);

// The bytes since the communicators were made.
Wire counted_wire(const Communicators& communicators);

// total += later - earlier, of counts of the same communicators.
void add_difference(Wire& total, const Wire& later, const Wire& earlier);

int64_t sent_bytes(const Wire& wire);

// [{"group", "kind", "ranks", "calls", "sent_bytes"}]
OrderedJson wire_to_json(const Wire& wire);

}  // namespace skein
