#include "skein/plan/stage.h"

#include <algorithm>
#include <numeric>

#include "skein/base/error.h"
#include "skein/checkpoint/save/checkpoint_writer.h"
#include "skein/data/lanes/batch.h"
#include "skein/data/lanes/loader.h"
#include "skein/ops/pipeline/pipeline.h"
#include "skein/weights/state_tensors.h"

namespace skein {
namespace {

void add(ProgramSeconds& sum, const ProgramSeconds& more, double times) {
  sum.compute += times * more.compute;
  sum.blocking += times * more.blocking;
  sum.hideable += times * more.hideable;
  sum.last_hideable = std::max(sum.last_hideable, more.last_hideable);
  sum.transfer += times * more.transfer;
}

std::set<std::string> stored_elsewhere(const StepSpec& spec) {
  return spec.layout.stage() == 0 ? std::set<std::string>{} : shared_parameters(spec);
}

int64_t snapshot_bytes(const Graph& training, const StepSpec& spec, int64_t rank) {
  std::vector<TensorSpec> specs;
  for (const StateTensor& tensor :
       state_tensors(training, spec.model, rank, stored_elsewhere(spec))) {
    specs.push_back(tensor.spec);
  }
  return CheckpointWriter::snapshot_bytes(specs);
}

int64_t checkpoint_bytes(const Graph& training, const StepSpec& spec) {
  int64_t bytes = 0;
  for (const StateTensor& tensor : state_tensors(training, spec.model, spec.layout.rank)) {
    if (stored_elsewhere(spec).contains(tensor.parameter())) continue;
    bytes += tensor.spec.shape.num_elements() * size_of(tensor.spec.dtype);
  }
  return bytes;
}

// The name of the program that other micro-batches run in place of one for the first; "" where it
// is none for the first.
std::string of_other_micro_batches(std::string_view program) {
  constexpr std::string_view kFirst = ".first";
  const size_t at = program.find(kFirst);
  if (at == std::string_view::npos) return "";
  return std::string(program.substr(0, at)) + std::string(program.substr(at + kFirst.size()));
}

// The entry of a chunk's forward or backward program; null for the update and what belongs to it.
ProgramSeconds* find_program(std::vector<ChunkPlan>& chunks, std::string_view name, bool several) {
  for (ChunkPlan& chunk : chunks) {
    const auto is = [&](const char* kind) {
      return chunk_program(kind, chunk.chunk, several) == name;
    };
    if (is("forward") || is("forward.first") || is("forward.last")) return &chunk.forward;
    if (is("backward") || is("backward.first")) return &chunk.backward;
    if (is("backward.last")) return &chunk.last_backward;
    if (is("pair") || is("pair.first")) return &chunk.pair;
  }
  return nullptr;
}

// The channels of collectives that end in the program. Early sums hide behind all of the last
// backward.
std::set<int64_t> channels_waited_for(const Program& program) {
  std::set<int64_t> channels;
  for (const Instruction& instruction : program.instructions) {
    const Attrs& attrs = instruction.attrs;
    if (instruction.op->only_waits && attrs.has("channel") && !attrs.has("early")) {
      channels.insert(instruction.attrs.integer("channel"));
    }
  }
  return channels;
}

// Collectives that a program starts and waits for. They share the wire, one behind the other. The
// share of each that cannot go on beside computation is paid while the program waits, for it or for
// another one behind it.
class CollectivesUnderWay {
 public:
  CollectivesUnderWay(std::set<int64_t> channels, double overlap)
      : channels_(std::move(channels)), overlap_(overlap) {}

  // False where the program does not wait for it.
  bool start(const Instruction& instruction, double seconds, double now) {
    if (instruction.op->ended_by.empty()) return false;
    const int64_t channel = instruction.attrs.integer("channel");
    if (!channels_.contains(channel)) return false;
    wire_is_free_ = std::max(wire_is_free_, now) + seconds;
    under_way_.push_back({channel, wire_is_free_, (1 - overlap_) * seconds});
    return true;
  }

  // The seconds that the program waits.
  double wait(const Instruction& instruction, double now) {
    if (!instruction.attrs.has("channel")) return 0;  // another stage's, which the schedule times
    const int64_t channel = instruction.attrs.integer("channel");
    const auto waited = std::find_if(under_way_.begin(), under_way_.end(),
                                     [&](const Travel& one) { return one.channel == channel; });
    if (waited == under_way_.end()) return 0;
    double alone = 0;  // of this one and of those before it
    for (auto one = under_way_.begin(); one <= waited; ++one) alone += one->alone;
    const double seconds = std::max(waited->end - now, alone);
    double left = seconds;
    for (Travel& one : under_way_) {
      const double paid = std::min(left, one.alone);
      one.alone -= paid;
      left -= paid;
    }
    under_way_.erase(waited);
    return seconds;
  }

 private:
  struct Travel {
    int64_t channel;
    double end;
    double alone;  // seconds that it still takes while nothing is computed
  };

  const std::set<int64_t> channels_;
  const double overlap_;
  double wire_is_free_ = 0;
  std::vector<Travel> under_way_;  // in the order of their starts
};

ProgramSeconds without_hideable(ProgramSeconds seconds) {
  seconds.hideable = seconds.last_hideable = 0;
  return seconds;
}

}  // namespace

Pricing::Pricing(const Hardware& hardware, const Mesh& mesh, DType dtype)
    : hardware_(hardware), rates_(rates_of(hardware, dtype)), mesh_(mesh) {
  int64_t stride = 1;
  for (int axis = mesh.num_axes() - 1; axis >= 0; --axis) {
    const auto& [name, size] = mesh.axis(axis);
    const GroupPlace place = place_group(size, stride, mesh.num_ranks(), hardware);
    places_[name] = place;
    if (name == kForwardGroup) places_[std::string(kBackwardGroup)] = place;
    stride *= size;
  }
}

double Pricing::seconds(const WireMessage& message) const {
  return collective_seconds(message.kind, static_cast<double>(message.whole_bytes),
                            places_.at(message.group), hardware_);
}

ProgramSeconds Pricing::program(const Program& program, int64_t rank, int64_t times,
                                std::map<WireKey, double>& collectives) const {
  ProgramSeconds sum;
  const bool is_update = program.name == "update";
  CollectivesUnderWay under_way(is_update ? std::set<int64_t>{} : channels_waited_for(program),
                                hardware_.overlap);
  for (const Instruction& instruction : program.instructions) {
    if (instruction.op->only_waits) {
      sum.blocking += under_way.wait(instruction, sum.compute + sum.blocking);
      continue;
    }
    const std::optional<WireMessage> message = message_of(instruction, mesh_, rank);
    if (!message || message->kind == CollectiveKind::kSend) {
      sum.compute += estimate_seconds(instruction, rates_);
    }
    if (!message) continue;
    const double seconds = this->seconds(*message);
    collectives[{message->group, message->kind}] += static_cast<double>(times) * seconds;
    if (message->kind == CollectiveKind::kSend && !is_update) {
      sum.transfer += seconds;
    } else if (under_way.start(instruction, seconds, sum.compute + sum.blocking)) {
      continue;
    } else if (!instruction.op->ended_by.empty()) {
      sum.hideable += seconds;
      sum.last_hideable = seconds;
    } else {
      sum.blocking += seconds;
    }
  }
  return sum;
}

int64_t StagePlan::device_bytes() const {
  int64_t total = 0;
  for (int i = 0; i < kNumArenas; ++i) total += on_host[i] ? 0 : arena_bytes[i];
  return total;
}

int64_t StagePlan::host_bytes() const {
  return std::accumulate(arena_bytes.begin(), arena_bytes.end(), snapshot_bytes + loader_bytes) -
         device_bytes();
}

StagePlan plan_stage(const StepSpec& spec, const TrainingGraphs& graphs, const KernelTable& kernels,
                     const Pricing& pricing, Checks checks) {
  const ProgramSet programs = plan_training(graphs, spec, kernels, checks);
  const ProgramRuns runs = program_runs(spec, programs);
  const PipelineShape shape = spec.pipeline();
  StagePlan plan;
  plan.stage = spec.layout.stage();
  plan.virtual_ranks = spec.layout.hosted_virtual_ranks();
  plan.arena_bytes = programs.arena_bytes;
  plan.on_host = programs.on_host;
  plan.snapshot_bytes = snapshot_bytes(graphs.training, spec, spec.layout.rank);
  plan.loader_bytes = loader_bytes(spec);
  for (int64_t v = 0; v < shape.virtual_stages; ++v) {
    plan.chunks.push_back({plan.stage + v * shape.num_stages, {}, {}});
  }
  for (const Program& program : programs.programs) {
    const auto times = runs.find(program.name);
    if (times == runs.end()) continue;
    const ProgramSeconds seconds =
        pricing.program(program, spec.layout.rank, times->second, plan.collective_seconds);
    // Takes as long as those of the others, or less.
    if (runs.contains(of_other_micro_batches(program.name))) continue;
    ProgramSeconds* of_chunk = find_program(plan.chunks, program.name, shape.virtual_stages > 1);
    if (of_chunk != nullptr) {
      *of_chunk = seconds;
    } else {
      add(plan.update, seconds, static_cast<double>(times->second));
    }
  }
  for (ChunkPlan& chunk : plan.chunks) {
    if (!runs.contains(chunk_program("backward", chunk.chunk, shape.virtual_stages > 1)))
      chunk.backward = without_hideable(chunk.last_backward);
  }
  if (checks == Checks::kNone) return plan;
  plan.checkpoint_bytes = checkpoint_bytes(graphs.training, spec);
  plan.wire = largest_wire(programs, runs);
  return plan;
}

int64_t loader_bytes(const StepSpec& spec) {
  return LoaderOptions().num_batches *
         Batch::bytes(spec.micro_batches * spec.micro_sequences, spec.sequence_length);
}

std::vector<int64_t> rank_snapshot_bytes(const StepSpec& spec, const TrainingGraphs& graphs,
                                         int64_t first_rank, int64_t num_ranks) {
  std::vector<int64_t> bytes;
  for (int64_t i = 0; i < num_ranks; ++i) {
    bytes.push_back(snapshot_bytes(graphs.training, spec, first_rank + i));
  }
  return bytes;
}

Wire largest_wire(const ProgramSet& programs, const ProgramRuns& runs) {
  // Shards are equal but for the first or last, so on each axis the first or the last rank sends
  // most.
  const Mesh& mesh = programs.mesh;
  const std::vector<int64_t> mine = mesh.coordinates(programs.rank);
  int64_t first = 0, last = 0;
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    const bool is_pipeline = mesh.axis(axis).name == kForwardGroup;
    const int64_t size = mesh.axis(axis).size;
    first = first * size + (is_pipeline ? mine[static_cast<size_t>(axis)] : 0);
    last = last * size + (is_pipeline ? mine[static_cast<size_t>(axis)] : size - 1);
  }
  Wire largest = planned_wire(programs, runs, first);
  const Wire other = planned_wire(programs, runs, last);
  // Bytes that `other` sends more, by group: each group has an axis of its own.
  std::map<std::string, int64_t> gain;
  for (const auto& [key, use] : other) {
    gain[key.first] += use.sent_bytes - largest[key].sent_bytes;
  }
  for (const auto& [key, use] : other) {
    if (gain[key.first] > 0) largest[key] = use;
  }
  return largest;
}

}  // namespace skein
