// A PJRT plugin: the library that compiles StableHLO and runs it, for one kind of hardware. Every
// object of the C interface has one owner, which releases it.
//
// Version  The header that Skein was built with says which structs it fills. A plugin of the same
//          major version takes them, whatever its minor version (the structs carry their sizes)
// Threads  PJRT objects may be used by several threads; results of execute() arrive later, and
//          reading them waits
// Errors   kUsage: no such file, not a PJRT plugin, or another major version. kUnsupported: fewer
//          devices than asked for. kInternal, with the plugin's own words: all else
// Source   github.com/openxla/xla, xla/pjrt/c/pjrt_c_api.h
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "skein/runtime/aot_compiler.h"
#include "skein/runtime/compiler_settings.h"
#include "skein/runtime/device.h"
#include "skein/stablehlo/tensor.h"

struct PJRT_Buffer;
struct PJRT_Event;
struct PJRT_LoadedExecutable;

namespace skein {

struct PjrtOptions {
  std::string plugin;        // the path of the library
  int64_t num_devices = 0;   // at least so many; XLA makes them of a CPU. 0: the plugin's default
  int64_t first_device = 0;  // among those of the machine: of Neuron's cores
  CompilerSettings compiler;
};

class PjrtClient;

// An array on a device.
class PjrtBuffer {
 public:
  PjrtBuffer() = default;
  PjrtBuffer(const PjrtClient* client, PJRT_Buffer* buffer) : client_(client), buffer_(buffer) {}
  PjrtBuffer(PjrtBuffer&& other) noexcept
      : client_(other.client_), buffer_(std::exchange(other.buffer_, nullptr)) {}
  PjrtBuffer& operator=(PjrtBuffer&& other) noexcept {
    std::swap(client_, other.client_);
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~PjrtBuffer();

  PJRT_Buffer* get() const { return buffer_; }
  explicit operator bool() const { return buffer_ != nullptr; }

 private:
  const PjrtClient* client_ = nullptr;
  PJRT_Buffer* buffer_ = nullptr;
};

// The moment at which something that was started has ended, or failed.
class PjrtEvent {
 public:
  PjrtEvent(const PjrtClient* client, PJRT_Event* event) : client_(client), event_(event) {}
  PjrtEvent(PjrtEvent&& other) noexcept
      : client_(other.client_), event_(std::exchange(other.event_, nullptr)) {}
  PjrtEvent& operator=(PjrtEvent&& other) noexcept {
    std::swap(client_, other.client_);
    std::swap(event_, other.event_);
    return *this;
  }
  ~PjrtEvent();

  // Throws what went wrong.
  void wait() const;

 private:
  const PjrtClient* client_;
  PJRT_Event* event_;
};

class PjrtExecutable {
 public:
  PjrtExecutable(const PjrtClient* client, PJRT_LoadedExecutable* executable)
      : client_(client), executable_(executable) {}
  PjrtExecutable(const PjrtExecutable&) = delete;
  PjrtExecutable& operator=(const PjrtExecutable&) = delete;
  ~PjrtExecutable();

  PJRT_LoadedExecutable* get() const { return executable_; }
  CompiledMemory memory() const;
  std::string serialized() const;

 private:
  const PjrtClient* client_;
  PJRT_LoadedExecutable* executable_;
};

class PjrtClient {
 public:
  explicit PjrtClient(const PjrtOptions& options);
  ~PjrtClient();
  PjrtClient(const PjrtClient&) = delete;
  PjrtClient& operator=(const PjrtClient&) = delete;

  int64_t num_devices() const;
  // Whether modules for it have no 64-bit numbers (stablehlo::ModuleRequest::is_narrow).
  bool is_narrow() const;
  // "cpu", and what the plugin calls its version; one line.
  std::string platform() const;
  const std::string& platform_name() const;
  const std::string& plugin() const;  // the path of the library
  // All that the plugin says of itself and of its devices; several lines.
  std::string identity() const;

  // Of a device; nothing where the plugin does not say.
  std::optional<DeviceMemory> device_memory(int64_t device = 0) const;

  // `num_replicas` devices run the text at once. `level`: see compile_options.h.
  std::unique_ptr<PjrtExecutable> compile(const std::string& text, int64_t num_replicas,
                                          const std::string& level = "") const;
  std::unique_ptr<PjrtExecutable> load(const std::string& serialized) const;

  // Copies dense host memory to a device; `data` may be reused when the call returns.
  PjrtBuffer put(const void* data, const stablehlo::Type& type, int64_t device = 0) const;
  // Waits for the array, and copies it.
  void get(const PjrtBuffer& from, void* to, int64_t bytes) const;
  // When the array is computed. It may be donated or released meanwhile.
  PjrtEvent when_ready(const PjrtBuffer& buffer) const;
  // Waits for the array; throws what went wrong when it was computed.
  void wait(const PjrtBuffer& buffer) const { when_ready(buffer).wait(); }

  // Starts an executable: `arguments` of each device, results likewise. Arrays that the text
  // donates are gone afterwards.
  std::vector<std::vector<PjrtBuffer>> execute(
      const PjrtExecutable& executable, const std::vector<std::vector<PJRT_Buffer*>>& arguments,
      size_t num_results) const;

  struct Library;  // the plugin's functions, as the C interface has them
  const Library& library() const { return *library_; }

 private:
  void open(int64_t num_devices);
  void close();

  std::unique_ptr<Library> library_;
};

}  // namespace skein
