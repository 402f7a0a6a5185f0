#include "skein/compile/wire_use.h"

#include "skein/comm/communicator.h"
#include "skein/ir/op_def.h"

namespace skein {
namespace {

constexpr CollectiveKind kSending[] = {
    CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
    CollectiveKind::kAllToAll,  CollectiveKind::kBroadcast,     CollectiveKind::kSend,
};

int64_t whole_bytes(const Collective& collective) {
  int64_t elements = 0;
  for (const CollectivePart& part : collective.parts) elements += part.elements;
  return elements * size_of(collective.dtype);
}

}  // namespace

std::optional<WireMessage> message_of(const Instruction& instruction, const Mesh& mesh,
                                      int64_t rank) {
  if (instruction.op->collective == nullptr) return std::nullopt;
  const std::string& group = instruction.attrs.text("axis");
  const std::string axis = group.substr(0, group.find('.'));  // of "pp.backward"
  const int64_t index = mesh.coordinates(rank)[static_cast<size_t>(mesh.find(axis))];
  KernelCall call = bind_views(instruction, made_up_bases());
  call.attrs.set("index", index);
  const Collective collective = instruction.op->collective(call);
  if (collective.kind == CollectiveKind::kBarrier) return std::nullopt;
  const int64_t ranks = mesh.size(axis);
  return WireMessage{
      group, collective.kind, ranks, whole_bytes(collective),
      collective_sent_bytes(collective, static_cast<int>(index), static_cast<int>(ranks))};
}

Wire planned_wire(const ProgramSet& programs, const ProgramRuns& runs, int64_t rank) {
  Wire wire;
  for (const Program& program : programs.programs) {
    const auto times = runs.find(program.name);
    if (times == runs.end()) continue;
    for (const Instruction& instruction : program.instructions) {
      const std::optional<WireMessage> message = message_of(instruction, programs.mesh, rank);
      if (!message) continue;
      WireUse& use = wire[{message->group, message->kind}];
      use.ranks = message->ranks;
      use.calls += times->second;
      use.sent_bytes += times->second * message->sent_bytes;
    }
  }
  return wire;
}

Wire counted_wire(const Communicators& communicators) {
  Wire wire;
  for (const auto& [group, communicator] : communicators) {
    for (const CollectiveKind kind : kSending) {
      const WireCount count = communicator->count(kind);
      if (count.calls == 0) continue;
      wire[{group, kind}] = {communicator->size(), count.calls, count.sent_bytes};
    }
  }
  return wire;
}

void add_difference(Wire& total, const Wire& later, const Wire& earlier) {
  for (const auto& [key, use] : later) {
    const auto found = earlier.find(key);
    const WireUse before = found == earlier.end() ? WireUse{} : found->second;
    if (use.calls == before.calls) continue;
    WireUse& sum = total[key];
    sum.ranks = use.ranks;
    sum.calls += use.calls - before.calls;
    sum.sent_bytes += use.sent_bytes - before.sent_bytes;
  }
}

int64_t sent_bytes(const Wire& wire) {
  int64_t bytes = 0;
  for (const auto& [key, use] : wire) bytes += use.sent_bytes;
  return bytes;
}

OrderedJson wire_to_json(const Wire& wire) {
  OrderedJson lines = OrderedJson::array();
  for (const auto& [key, use] : wire) {
    lines.push_back({{"group", key.first},
                     {"kind", collective_name(key.second)},
                     {"ranks", use.ranks},
                     {"calls", use.calls},
                     {"sent_bytes", use.sent_bytes}});
  }
  return lines;
}

}  // namespace skein
