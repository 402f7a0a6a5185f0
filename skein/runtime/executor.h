// Runs programs: a loop over bound instructions. Everything is allocated and prepared at
// construction. On a device that captures (CUDA graphs), a program runs op by op the first time and
// is replayed from then on, one that communicates in pieces between its collectives; so it is for
// each of the facts of the data.
//
// Errors  kNoSpace where an arena does not fit; kUnsupported where the device has no kernel for an
//         op; kPeerLost, unchanged, from an op that communicates.
//         An error inside an op names the op and its shapes; an error that the device reports
//         asynchronously names the ops that may have caused it.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "skein/comm/communicator.h"
#include "skein/ir/program.h"
#include "skein/runtime/device.h"

namespace skein {

// One run of an op, or of several calls as one, in seconds from an origin of the device's own.
struct OpSpan {
  const Instruction* instruction = nullptr;  // the first
  int64_t calls = 1;                         // in the program one behind the other
  std::string_view program;
  int64_t slot = 0;
  double start = 0, end = 0;

  Cost cost() const;  // of all calls
};

// Totals of an op over its runs.
struct OpTime {
  int64_t calls = 0;
  double seconds = 0;
  double flops = 0;
  double bytes = 0;
};

// The groups that a rank communicates in, by mesh axis; axes of size 1 need none.
using Communicators = std::map<std::string, std::unique_ptr<Communicator>, std::less<>>;

// The groups of `rank` along every axis of the mesh that is larger than 1. Collective over `world`.
// `data_leaves`: of the tree by which the group "dp" adds (Communicator::group).
Communicators split_by_axis(Communicator& world, const Mesh& mesh, int64_t data_leaves = 0);

class Executor {
 public:
  // Keeps references to all arguments, which must outlive the executor. A mesh of one rank needs no
  // communicators.
  Executor(Device& device, const ProgramSet& programs,
           const Communicators* communicators = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // `slot`: of the micro-batch, among those in flight.
  void run(std::string_view program, int64_t slot = 0);
  // Runs the measurements of kernels that choose their algorithm (ops/algorithms.h). Leaves
  // gradient sums zero, as they are between steps, and everything else that outlives a step
  // unchanged.
  void choose_algorithms();
  // From here on `act` is called before the program's first instruction of such an op, each time
  // that it, or what runs together with it, is about to run. Not on devices that record programs.
  void run_before(std::string_view program, const std::function<bool(const OpDef&)>& is_op,
                  std::function<void()> act);
  // Of the data that the next programs run on, of the micro-batch in `slot`.
  void set_facts(const DataFacts& facts, int64_t slot = 0) {
    facts_.at(static_cast<size_t>(slot)) = facts;
  }
  void forget_facts() { std::fill(facts_.begin(), facts_.end(), DataFacts{}); }
  bool has_program(std::string_view name) const { return bound_.contains(name); }

  // A graph input or output by name, of the micro-batch in `slot` where it has slots.
  View view(std::string_view name, int64_t slot = 0) const;
  bool has_slots(std::string_view name) const { return programs_.operand(name).slot_bytes > 0; }
  bool has(std::string_view name) const { return programs_.named.contains(name); }
  // The part of the global tensor that this rank holds.
  Box box(std::string_view name) const {
    return programs_.type(name).local_box(programs_.mesh, programs_.rank);
  }
  FlatRange range(std::string_view name) const {
    return programs_.type(name).local_range(programs_.mesh, programs_.rank);
  }
  void upload(std::string_view name, const void* host, int64_t bytes, int64_t slot = 0);
  void download(std::string_view name, void* host, int64_t bytes) const;
  void fill_zero(std::string_view name);
  template <typename T>
  void upload_scalar(std::string_view name, T value) {
    upload(name, &value, sizeof(T));
  }
  template <typename T>
  T download_scalar(std::string_view name) const {
    T value;
    download(name, &value, sizeof(T));
    return value;
  }

  // `to` must be in memory of Device::allocate_on_host; it holds the value once a later
  // record_event() has been waited for.
  template <typename T>
  void download_later(std::string_view name, T& to) const {
    download_later(name, &to, sizeof(T));
  }
  void download_later(std::string_view name, void* to, int64_t bytes) const {
    device_.download_later(to, sized_view(name, bytes).data, bytes);
  }

  const ArenaBytes& arena_bytes() const { return programs_.arena_bytes; }
  // Where the arenas begin; null for one that is empty.
  const std::array<void*, kNumArenas>& arenas() const { return bases_; }
  Device& device() { return device_; }

  // Host seconds spent in ops that communicate since the last call, transfers and waits included.
  double take_communication_seconds() { return std::exchange(communication_seconds_, 0.0); }

  // The same without beginning anew.
  double communication_seconds() const { return communication_seconds_; }

  // From here on ops are timed one by one, and programs are not replayed. `at_op` is called before
  // each (true) and after it (false), outside its time.
  void start_profile(std::function<void(bool)> at_op = {}) {
    profiling_ = true;
    at_op_ = std::move(at_op);
  }
  void stop_profile() { profiling_ = false; }
  // The ops that ran since the last call; waits for the device.
  std::vector<OpSpan> take_spans();
  // Totals by op over everything that was profiled.
  const std::map<std::string, OpTime>& profile();

 private:
  struct BoundInstruction {
    const Kernel* kernel;
    const Instruction* instruction;
    KernelCall call;
    std::function<void()> before;  // may be empty
    // The calls that run together from here on, this one first; empty: it runs alone. Errors,
    // progress marks and `before` are those of the first.
    std::vector<const KernelCall*> together = {};
  };
  struct Replay {
    bool ran = false;
    std::unique_ptr<Recording> recording;
  };
  // Neighbouring instructions that a device records together, or that are all started one by one.
  // Collectives are: whoever waits for their peers must be able to name them, and to give up.
  struct ProgramPiece {
    size_t begin, end;
    bool is_recorded;
    std::unique_ptr<Recording> compiled = nullptr;  // of a device that compiles
    // By facts.one_document_each of the program's own micro-batch, and of the one ahead.
    std::array<std::array<Replay, 2>, 2> replays;
  };
  // A program bound to one of its slots.
  struct BoundProgram {
    std::vector<BoundInstruction> instructions;
    const Program* program = nullptr;
    const DataFacts* facts = nullptr;        // of its own micro-batch
    const DataFacts* facts_ahead = nullptr;  // of the one ahead; without one, the same
    std::vector<int64_t> places;             // one per kInstructionsBetweenBreadcrumbs
    std::vector<ProgramPiece> pieces;
  };
  void release_arenas();
  View sized_view(std::string_view name, int64_t bytes, int64_t slot = 0) const;
  void bind(const Program& program);
  BoundInstruction bind(const Instruction& instruction, int64_t slot);
  // Whether the device compiles the instruction with its neighbours.
  bool is_compiled(const Instruction& instruction) const;
  void compile(BoundProgram& bound, int64_t slot);
  static void find_together(std::vector<BoundInstruction>& instructions);
  Communicator* communicator_of(const Instruction& instruction) const;  // null: it needs none
  std::vector<int64_t> name_places(const Program& program);
  static std::vector<ProgramPiece> pieces_of(const std::vector<BoundInstruction>& instructions);
  void start(BoundProgram& program, int64_t slot);
  void run_piece(const BoundProgram& program, ProgramPiece& piece);
  void run_steps(const BoundProgram& program, const ProgramPiece& piece);
  // Returns how many instructions ran.
  size_t run_from(const BoundProgram& program, size_t index);
  void run_profiled(const BoundProgram& program, int64_t slot);
  void pass_breadcrumb(const BoundProgram& program, size_t instruction);
  void run_instruction(const BoundInstruction& bound);
  void run_kernel(const BoundInstruction& bound);

  Device& device_;
  const ProgramSet& programs_;
  const Communicators* communicators_;
  std::array<void*, kNumArenas> bases_{};
  std::map<std::string, std::vector<BoundProgram>, std::less<>> bound_;  // [slot]
  std::map<int64_t, std::vector<int64_t>> tickets_;                      // by channel
  std::vector<DataFacts> facts_;                                         // by slot
  double communication_seconds_ = 0;
  struct StampedStep {
    const Instruction* instruction;
    int64_t calls;
    const Program* program;
    int64_t slot;
    int64_t start, end;
  };
  bool profiling_ = false;
  std::function<void(bool)> at_op_;  // may be empty
  std::vector<StampedStep> timed_;
  std::map<std::string, OpTime> profile_;
};

}  // namespace skein
