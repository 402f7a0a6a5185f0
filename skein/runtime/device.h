// A device that runs programs: memory, copies, kernels. Devices live in runtime/<kind>/; only the
// row of their kind (backends/backend.h) includes their headers.
//
// Threads  one thread at a time uses a device; copies to the host of memory that no program is
//          writing may run in another
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "skein/base/machine/clock.h"
#include "skein/ir/program.h"
#include "skein/runtime/compiler_settings.h"
#include "skein/stablehlo/program_pieces.h"

namespace skein {

// A captured sequence of work that can be started again at once (a CUDA graph).
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;
};

// A program, bound to a slot of the arenas, and the pieces of it that a device makes executables of
// (stablehlo/program_pieces.h).
struct ProgramToCompile {
  const ProgramSet& programs;
  const Program& program;
  const std::vector<stablehlo::Piece>& pieces;
  const std::array<void*, kNumArenas>& arenas;  // where they begin
  int64_t slot = 0;
};

struct DeviceMemory {
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const std::string& kind() const = 0;  // "cpu", "cuda", "null"
  // The parts of the backend that decide how its kernels round: "cuda NVIDIA H100 9.0".
  virtual std::string arithmetic() const { return kind(); }
  virtual const KernelTable& kernels() const = 0;
  // Whether it runs programs; otherwise it only answers planning questions.
  virtual bool computes() const { return true; }

  // Throws Error{kNoSpace} unless that much of the device's own memory and of the host's is free
  // now. Called with the total before the first piece of it is allocated.
  virtual void require_room(int64_t /*device_bytes*/, int64_t /*host_bytes*/) {}
  // The device's own memory; nothing where it uses the host's.
  virtual std::optional<DeviceMemory> own_memory() const { return std::nullopt; }
  // Allocates zeroed memory that is resident at once. Throws Error{kNoSpace} naming the size and
  // what is free.
  virtual void* allocate(int64_t bytes, const std::string& what) = 0;
  virtual void release(void* memory, int64_t bytes) = 0;
  // The same in host memory. Kernels read and write it in place, more slowly, and copies from the
  // device to it can overlap with kernels.
  virtual void* allocate_on_host(int64_t bytes, const std::string& what) {
    return allocate(bytes, what);
  }
  virtual void release_on_host(void* memory, int64_t bytes) { release(memory, bytes); }

  // Ordered with the work that is started around them; `host` may be reused when the call returns.
  virtual void upload(void* device, const void* host, int64_t bytes) = 0;
  virtual void download(void* host, const void* device, int64_t bytes) = 0;
  virtual void fill_zero(void* device, int64_t bytes) = 0;
  // Copies within the device's own memory by the driver: the baseline for kernels that only move
  // memory. Reads `bytes` and writes as many.
  virtual void start_copy(void* to, const void* from, int64_t bytes) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  // Waits until everything that was started has finished. Throws if any of it failed.
  virtual void synchronize() = 0;

  // ---- for devices that run asynchronously to the host; the defaults fit a synchronous device
  // ----

  // The queue that kernels are started on, KernelCall::stream.
  virtual void* stream() const { return nullptr; }
  // Training steps that may be in flight at once: results are read depth() - 1 steps late.
  virtual int depth() const { return 1; }
  // Dense FLOP/s as advertised by the vendor; nothing where that is not known.
  virtual std::optional<double> peak_flops(DType) const { return std::nullopt; }
  // Rows and columns of a matrix product that is large enough to reach the device's peak.
  virtual int64_t ceiling_size() const { return 1024; }
  // Whether to wait after each op, so that an error names the op that caused it.
  virtual bool checks_ops() const { return false; }

  // Copies to memory of allocate_on_host; complete once a later record_event() has been waited for.
  virtual void download_later(void* host, const void* device, int64_t bytes) {
    std::memcpy(host, device, static_cast<size_t>(bytes));
  }
  // An event that completes when all work started so far has.
  virtual int64_t record_event() { return 0; }
  // Waits for an event, and for those recorded before it; when it completed, by the host's clock.
  // A device that runs behind the host may have done so long before the call.
  virtual Clock::time_point wait(int64_t) { return Clock::now(); }

  // Marks a point of the queue for timing; seconds_at() gives it in seconds from an origin of the
  // device's own, and is valid after synchronize().
  virtual int64_t record_time() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }
  virtual double seconds_at(int64_t time) { return static_cast<double>(time) * 1e-9; }
  virtual void forget_times() {}
  // Names the work that is started in between, for an attached profiler.
  virtual void begin_range(const std::string&) {}
  virtual void end_range() {}

  // Progress marks, which locate an error that is reported asynchronously: a mark is passed when
  // everything that was started before it has finished.
  virtual int64_t name_breadcrumb(const std::string&) { return 0; }
  virtual void pass_breadcrumb(int64_t) {}
  virtual void pass_step(int64_t) {}
  // The asynchronous error and where it happened; empty: there is none.
  virtual std::string failure() const { return {}; }

  // ---- for devices that compile pieces of programs as a whole; only what communicates with other
  // processes is run by kernels, which the host executes ----

  virtual bool compiles() const { return false; }
  // Devices of this process that run their pieces at the same time, each for a rank: a multiple of
  // this number is the first. Collectives between them are part of the pieces.
  virtual int64_t ranks_together() const { return 1; }
  // What was compiled since the device was opened, in words; "": nothing.
  virtual std::string compiled() const { return {}; }
  // For each piece, what `replay` of the result runs. Its results are seen by every later download.
  virtual std::vector<std::unique_ptr<Recording>> compile(const ProgramToCompile&) { return {}; }
  // Before a kernel reads or writes the view in the arena's host memory, and after it wrote there.
  virtual void begin_host_access(const View&) {}
  virtual void end_host_write(const View&) {}

  // Captures what `steps` starts instead of running it. `steps` must not wait, nor copy from or to
  // host memory that the device did not allocate. Null: this device does not capture, and `steps`
  // was not called.
  virtual std::unique_ptr<Recording> record(const std::function<void()>&) { return nullptr; }
};

struct DeviceOptions {
  std::string kind = "cpu";  // cpu | cuda | pjrt | null
  int threads = 0;           // 0: all cores
  int index = 0;             // of the GPU, or among all devices of this kind that the run uses here
  int num_together = 1;      // devices of this process that run programs at the same time
  bool check_ops = false;    // see Device::checks_ops
  std::string pjrt_plugin;   // the path of the library
  CompilerSettings compiler = {};
};

}  // namespace skein
