// Runs programs: a loop over bound steps. Everything is allocated and prepared at construction.
//
// Errors  kNoSpace where an arena does not fit; kUnsupported where the device has no kernel for an
//         op; kPeerLost, as it is, from a step that communicates.
//         An error inside a step names the op, its shapes and the step.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "skein/comm/communicator.h"
#include "skein/ir/program.h"
#include "skein/runtime/device.h"

namespace skein {

// Seconds spent by op, over all runs since `start_profile`.
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

  const ArenaBytes& arena_bytes() const { return programs_.arena_bytes; }
  Device& device() { return device_; }

  // Seconds spent in steps that communicate since this was asked last: what they move and wait for.
  double take_communication_seconds() { return std::exchange(communication_seconds_, 0.0); }

  void start_profile() { profiling_ = true; }
  const std::map<std::string, OpTime>& profile() const { return profile_; }

 private:
  struct BoundStep {
    const Kernel* kernel;
    const Step* step;
    KernelCall call;
  };
  void bind(const Program& program);
  BoundStep bind(const Step& step, int64_t slot);
  Communicator* communicator_of(const Step& step) const;  // null: it needs none
  void run_profiled(const std::vector<BoundStep>& steps);
  void run_step(const BoundStep& bound);

  Device& device_;
  const ProgramSet& programs_;
  const Communicators* communicators_;
  std::array<void*, kNumArenas> bases_{};
  // By program, then slot.
  std::map<std::string, std::vector<std::vector<BoundStep>>, std::less<>> bound_;
  std::map<int64_t, std::vector<int64_t>> tickets_;  // by channel
  double communication_seconds_ = 0;
  bool profiling_ = false;
  std::map<std::string, OpTime> profile_;
};

}  // namespace skein
