#include "skein/passes/overlap/pair_programs.h"

#include <algorithm>
#include <array>

#include "skein/base/error.h"

namespace skein {
namespace {

// A nominal device: its arithmetic, and a wire, in the time that its memory takes for a byte. Such
// is an accelerator on a network; on a faster link a collective is given more time than it needs,
// which costs nothing.
constexpr double kFlopsPerByte = 128;
constexpr double kBytesPerWireByte = 64;

double work_of(const Instruction& instruction) {
  const Cost& cost = instruction.cost;
  return std::max(cost.flops / kFlopsPerByte,
                  static_cast<double>(cost.bytes_read + cost.bytes_written));
}

double wire_time(const Instruction& instruction) {
  const Cost& cost = instruction.cost;
  return kBytesPerWireByte * static_cast<double>(std::max(cost.bytes_read, cost.bytes_written));
}

class Merger {
 public:
  Merger(const std::vector<Instruction>& backward, const std::vector<Instruction>& forward)
      : halves_{PairSide{&backward}, PairSide{&forward}} {
    for (PairSide& half : halves_) {
      for (const Instruction& instruction : *half.program) {
        if (!communicates(instruction)) half.work += work_of(instruction);
      }
    }
  }

  std::vector<Instruction> run() {
    while (!is_done(kBackward) || !is_done(kForward)) emit(next());
    return std::move(merged_);
  }

 private:
  enum Which : uint8_t { kBackward, kForward };

  struct PairSide {
    const std::vector<Instruction>* program;
    size_t position = 0;
    double work = 0, done = 0;
    std::map<int64_t, double> ends = {};  // of the collectives under way, by channel
  };

  static bool communicates(const Instruction& instruction) {
    return instruction.op->collective != nullptr || instruction.op->only_waits;
  }

  bool is_done(Which which) const {
    return halves_[which].position == halves_[which].program->size();
  }
  const Instruction& head(Which which) const {
    return (*halves_[which].program)[halves_[which].position];
  }

  // When the half may go on.
  double may_go_on(Which which) const {
    if (!head(which).op->only_waits) return now_;
    const auto end = halves_[which].ends.find(head(which).attrs.integer("channel"));
    return end == halves_[which].ends.end() ? now_ : std::max(now_, end->second);
  }

  Which next() const {
    if (is_done(kForward)) return kBackward;
    if (is_done(kBackward)) return kForward;
    const PairSide &backward = halves_[kBackward], &forward = halves_[kForward];
    const double backward_at = may_go_on(kBackward), forward_at = may_go_on(kForward);
    if (backward_at != forward_at) return forward_at < backward_at ? kForward : kBackward;
    return forward.done * backward.work < backward.done * forward.work ? kForward : kBackward;
  }

  void emit(Which which) {
    PairSide& half = halves_[which];
    const Instruction& instruction = head(which);
    now_ = may_go_on(which);
    if (!communicates(instruction)) {
      half.done += work_of(instruction);
      now_ += work_of(instruction);
    } else if (instruction.op->collective != nullptr) {
      wire_is_free_ = std::max(wire_is_free_, now_) + wire_time(instruction);
      if (instruction.op->ended_by.empty()) {
        now_ = wire_is_free_;
      } else {
        half.ends[instruction.attrs.integer("channel")] = wire_is_free_;
      }
    }
    merged_.push_back(instruction);
    merged_.back().ahead = which == kForward ? 1 : 0;
    ++half.position;
  }

  std::array<PairSide, 2> halves_;
  double now_ = 0, wire_is_free_ = 0;
  std::vector<Instruction> merged_;
};

}  // namespace

void pair_programs(ProgramSet& programs) {
  const Program& forward = programs.program("forward");
  if (forward.num_slots != kPairSlots) {
    fail(ErrorCode::kInternal, "pairs of micro-batches in {} slots", forward.num_slots);
  }
  std::vector<Program> pairs;
  for (const Program& program : programs.programs) {
    const bool is_first = program.name == "backward.first";
    if (program.name != "backward" && !is_first) continue;
    pairs.push_back({is_first ? "pair.first" : "pair",
                     Merger(program.instructions, forward.instructions).run(), kPairSlots,
                     program.graph});
  }
  programs.programs.insert(programs.programs.end(), pairs.begin(), pairs.end());
}

}  // namespace skein
