// A place where programs run: memory, copies, kernels. Devices live in runtime/<kind>/; only the
// row of their kind (backends/backend.h) includes their headers.
//
// Threads  a device is used by one thread at a time, but for copies to the host of memory that no
//          program is writing
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "skein/ir/kernel.h"

namespace skein {

// What a device started once and can start again at once.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;
};

struct DeviceMemory {
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const std::string& kind() const = 0;  // "cpu", "cuda", "null"
  // What the backend knows of what decides how its kernels round: "cuda NVIDIA H100 9.0".
  virtual std::string arithmetic() const { return kind(); }
  virtual const KernelTable& kernels() const = 0;
  // Whether it runs kernels; else it only answers what a plan asks.
  virtual bool computes() const { return true; }

  // Throws Error{kNoSpace} where so much, of the device's own memory and of the host's, is not free
  // now: what will be allocated piece by piece, asked for before the first of them.
  virtual void require_room(int64_t /*device_bytes*/, int64_t /*host_bytes*/) {}
  // Of its own memory; nothing: what it holds lies in the host's.
  virtual std::optional<DeviceMemory> own_memory() const { return std::nullopt; }
  // Zeroed memory, resident at once. Throws Error{kNoSpace} naming the size and what is free.
  virtual void* allocate(int64_t bytes, const std::string& what) = 0;
  virtual void release(void* memory, int64_t bytes) = 0;
  // The same in memory of the host, which kernels read and write in place, more slowly, and which
  // copies from the device reach while others run.
  virtual void* allocate_on_host(int64_t bytes, const std::string& what) {
    return allocate(bytes, what);
  }
  virtual void release_on_host(void* memory, int64_t bytes) { release(memory, bytes); }

  // In the order of what is started around them; `host` is free again when the call returns.
  virtual void upload(void* device, const void* host, int64_t bytes) = 0;
  virtual void download(void* host, const void* device, int64_t bytes) = 0;
  virtual void fill_zero(void* device, int64_t bytes) = 0;
  // Within its own memory, by the driver: the yardstick of kernels that only move memory. Reads
  // `bytes` and writes as many.
  virtual void start_copy(void* to, const void* from, int64_t bytes) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  // Waits until everything that was started has finished. An error of what ran meanwhile comes
  // here.
  virtual void synchronize() = 0;

  // ---- what a device has that runs behind the host; the defaults are of one that does not ----

  // The queue that kernels are started on, KernelCall::stream.
  virtual void* stream() const { return nullptr; }
  // Steps that may be under way at once: their results are read so many steps late, less one.
  virtual int depth() const { return 1; }
  // FLOP/s of dense products as its maker advertises them; nothing where that is not known.
  virtual std::optional<double> peak_flops(DType) const { return std::nullopt; }
  // Rows and columns of a product that is large for it.
  virtual int64_t ceiling_size() const { return 1024; }
  // Whether to wait after each op, so that an error names the op that made it.
  virtual bool checks_ops() const { return false; }

  // To memory of allocate_on_host; done once a later record_event() has been waited for.
  virtual void download_later(void* host, const void* device, int64_t bytes) {
    std::memcpy(host, device, static_cast<size_t>(bytes));
  }
  // Of all that was started so far.
  virtual int64_t record_event() { return 0; }
  virtual void wait(int64_t) {}

  // Points of the queue, for timing: seconds from an origin of the device's own, known after
  // synchronize().
  virtual int64_t record_time() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }
  virtual double seconds_at(int64_t time) { return static_cast<double>(time) * 1e-9; }
  virtual void forget_times() {}
  // Names what is started in between, for a profiler that is attached.
  virtual void begin_range(const std::string&) {}
  virtual void end_range() {}

  // Where the device is, for the message of an error that comes behind the host: a place is passed
  // when everything that was started before it has finished.
  virtual int64_t name_breadcrumb(const std::string&) { return 0; }
  virtual void pass_breadcrumb(int64_t) {}
  virtual void pass_step(int64_t) {}
  // An error behind the host, and where it was; empty: there is none.
  virtual std::string failure() const { return {}; }

  // What `steps` starts, kept instead of run: no copies from or to memory of the host
  // that the device did not allocate, no waiting. Null: this
  // device does not record, and `steps` was not called.
  virtual std::unique_ptr<Recording> record(const std::function<void()>&) { return nullptr; }
};

struct DeviceOptions {
  std::string kind = "cpu";  // cpu | cuda | null
  int threads = 0;           // 0: all cores
  int index = 0;             // of the GPU
  bool check_ops = false;    // see Device::checks_ops
};

}  // namespace skein
