// Runs programs: a loop over bound steps. Everything is allocated and prepared at construction. A
// device that records (CUDA graphs) runs a program step by step the first time, and at once from
// then on, unless its steps communicate.
//
// Errors  kNoSpace where an arena does not fit; kUnsupported where the device has no kernel for an
//         op; kPeerLost, as it is, from a step that communicates.
//         An error inside a step names the op and its shapes; one that a device finds behind the
//         host, the ops that it can be of.
#pragma once

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

// An op that ran, in seconds from an origin of the device's own.
struct OpSpan {
  const Instruction* instruction = nullptr;
  std::string_view program;
  int64_t slot = 0;
  double start = 0, end = 0;
};

// Seconds spent by op.
struct OpTime {
  int64_t calls = 0;
  double seconds = 0;
  double flops = 0;
  double bytes = 0;
};

// The groups that a rank communicates in, by mesh axis; axes of size 1 need none.
using Communicators = std::map<std::string, std::unique_ptr<Communicator>, std::less<>>;

// The groups of `rank` along every axis of the mesh that is larger than 1. Collective over `world`.
Communicators split_by_axis(Communicator& world, const Mesh& mesh);

class Executor {
 public:
  // Keeps references to all, which must outlive the executor. A mesh of one rank needs no
  // communicators.
  Executor(Device& device, const ProgramSet& programs,
           const Communicators* communicators = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // `slot`: of the micro-batch among those in flight.
  void run(std::string_view program, int64_t slot = 0);
  // Has kernels that choose algorithms by measuring do so now (ops/algorithms.h); leaves gradient
  // sums zero, as they are between steps, and all else that outlives a step as it was.
  void choose_algorithms();
  bool has_program(std::string_view name) const { return bound_.contains(name); }

  // A graph input or output by name.
  View view(std::string_view name) const;
  bool has(std::string_view name) const { return programs_.named.contains(name); }
  // Which part of the whole it is.
  Box box(std::string_view name) const {
    return programs_.type(name).local_box(programs_.mesh, programs_.rank);
  }
  FlatRange range(std::string_view name) const {
    return programs_.type(name).local_range(programs_.mesh, programs_.rank);
  }
  void upload(std::string_view name, const void* host, int64_t bytes);
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

  // `to` is in memory of Device::allocate_on_host; it holds the value once a later record_event()
  // was waited for.
  template <typename T>
  void download_later(std::string_view name, T& to) const {
    device_.download_later(&to, sized_view(name, sizeof(T)).data, sizeof(T));
  }

  const ArenaBytes& arena_bytes() const { return programs_.arena_bytes; }
  Device& device() { return device_; }

  // Seconds spent in steps that communicate since this was asked last: what they move and wait for.
  double take_communication_seconds() { return std::exchange(communication_seconds_, 0.0); }

  // From here on ops are timed one by one, and programs are not replayed.
  void start_profile() { profiling_ = true; }
  void stop_profile() { profiling_ = false; }
  // What ran since the last call; waits for it.
  std::vector<OpSpan> take_spans();
  // By op, since start_profile.
  const std::map<std::string, OpTime>& profile();

 private:
  struct BoundInstruction {
    const Kernel* kernel;
    const Instruction* instruction;
    KernelCall call;
  };
  // A program in one of its slots.
  struct BoundProgram {
    std::vector<BoundInstruction> instructions;
    const Program* program = nullptr;
    std::vector<int64_t> places;  // every so many steps, for Device::pass_breadcrumb
    bool communicates = false;
    bool ran = false;
    std::unique_ptr<Recording> recording;
  };
  void release_arenas();
  View sized_view(std::string_view name, int64_t bytes) const;
  void bind(const Program& program);
  BoundInstruction bind(const Instruction& instruction, int64_t slot);
  Communicator* communicator_of(const Instruction& instruction) const;  // null: it needs none
  std::vector<int64_t> name_places(const Program& program);
  void start(BoundProgram& program, int64_t slot);
  void run_steps(const BoundProgram& program);
  void run_profiled(const BoundProgram& program, int64_t slot);
  void pass_breadcrumb(const BoundProgram& program, size_t instruction);
  void run_instruction(const BoundInstruction& bound);

  Device& device_;
  const ProgramSet& programs_;
  const Communicators* communicators_;
  std::array<void*, kNumArenas> bases_{};
  std::map<std::string, std::vector<BoundProgram>, std::less<>> bound_;  // [slot]
  std::map<int64_t, std::vector<int64_t>> tickets_;                      // by channel
  double communication_seconds_ = 0;
  struct StampedStep {
    const Instruction* instruction;
    const Program* program;
    int64_t slot;
    int64_t start, end;
  };
  bool profiling_ = false;
  std::vector<StampedStep> timed_;
  std::map<std::string, OpTime> profile_;
};

}  // namespace skein
