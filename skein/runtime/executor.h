// Runs programs: a loop over bound steps. Everything is allocated and prepared at construction.
//
// Errors  kNoSpace where an arena does not fit; kUnsupported where the device has no kernel for an
// op.
//         An error inside a step names the op, its shapes and the step.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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

class Executor {
 public:
  // Keeps references to both; `programs` must outlive the executor.
  Executor(Device& device, const ProgramSet& programs);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  void run(std::string_view program);

  // A graph input or output by name.
  View view(std::string_view name) const;
  bool has(std::string_view name) const { return programs_.named.contains(name); }
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

  void start_profile() { profiling_ = true; }
  const std::map<std::string, OpTime>& profile() const { return profile_; }

 private:
  struct BoundStep {
    const Kernel* kernel;
    const Step* step;
    KernelCall call;
  };
  void bind(const Program& program);
  void run_profiled(const std::vector<BoundStep>& steps);

  Device& device_;
  const ProgramSet& programs_;
  std::array<void*, kNumArenas> bases_{};
  std::map<std::string, std::vector<BoundStep>, std::less<>> bound_;
  bool profiling_ = false;
  std::map<std::string, OpTime> profile_;
};

}  // namespace skein
