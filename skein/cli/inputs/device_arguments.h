// The options --device, --threads, --tensor and --replicas of the commands that compute with a
// trained model.
//
// auto     a GPU where this build and this machine have one, else the CPU
// Errors   those of make_device: kUsage for a kind that this build has not
#pragma once

#include <memory>
#include <string>

#include "skein/cli/shared/command.h"
#include "skein/infer/engine.h"
#include "skein/runtime/device.h"

namespace skein {

struct DeviceArguments {
  std::string kind = "auto";
  int threads = 0;
  int64_t tensor = 1;    // devices that split the model
  int64_t replicas = 1;  // of the model, each on `tensor` devices

  // Before anything else is asked of a device. Throws Error{kUsage} for more devices than there
  // are.
  void prepare() const;
  DeviceOptions options(int64_t index = 0) const;
  std::unique_ptr<Device> make(int64_t index = 0) const;
  // The ranks of an engine get their devices from here: *this must outlive it.
  void set_devices(EngineOptions& options) const;
};

void add_device_options(CLI::App& command, DeviceArguments& arguments);
// --precision: "f32" (also spelt fp32) or "bf16".
void add_precision_option(CLI::App& command, std::string& precision);
void add_rank_options(CLI::App& command, DeviceArguments& arguments);

}  // namespace skein
