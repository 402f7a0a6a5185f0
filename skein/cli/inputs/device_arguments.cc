#include "skein/cli/inputs/device_arguments.h"

#include <algorithm>

#include "skein/backends/backend.h"
#include "skein/base/error.h"
#include "skein/base/machine/cores.h"

namespace skein {

void DeviceArguments::prepare() const {
  const int64_t devices = tensor * replicas;
  for (const Backend* backend : all_backends()) {
    const bool is_chosen = kind == "auto" || kind == backend->kind;
    if (devices > 1 && is_chosen && backend->expect_several_ranks != nullptr) {
      backend->expect_several_ranks();
    }
  }
  const Backend& backend = find_backend_to_plan(options().kind);
  if (!backend.only_plans.empty()) {
    fail(ErrorCode::kUsage,
         "--device {}: this build has no kernels for it: install the CUDA 13 toolkit and run "
         "`SKEIN_CUDA=ON scripts/build.sh`; --device cpu takes the CPU",
         kind);
  }
  const int there = backend.num_devices();
  if (!backend.has_own_memory || there >= devices) return;
  fail(ErrorCode::kUsage, "--tensor {} and --replicas {} take {} devices, and there {} {}: {}",
       tensor, replicas, devices, there == 1 ? "is" : "are", there,
       "expected at most as many (CUDA_VISIBLE_DEVICES hides some)");
}

// Several on CPUs share the cores.
DeviceOptions DeviceArguments::options(int64_t index) const {
  const int64_t devices = tensor * replicas;
  const int all = threads > 0 ? threads : num_cores();
  return {.kind = kind == "auto" ? std::string(best_backend().kind) : kind,
          .threads = devices > 1 ? std::max(1, all / static_cast<int>(devices)) : threads,
          .index = static_cast<int>(index)};
}

std::unique_ptr<Device> DeviceArguments::make(int64_t index) const {
  return make_device(options(index));
}

void DeviceArguments::set_devices(EngineOptions& options) const {
  options.tensor = tensor;
  options.make_device = [this](int64_t index) { return make(index); };
}

void add_device_options(CLI::App& command, DeviceArguments& arguments) {
  command
      .add_option("--device", arguments.kind,
                  "cpu, cuda or auto: a GPU where there is one, else the CPU; auto")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}).description(""));
  command.add_option("--threads", arguments.threads, "of the CPU; 0: all cores")
      ->check(whole_number_from(0));
}

void add_precision_option(CLI::App& command, std::string& precision) {
  command.add_option("--precision", precision, "of the computation: f32 or bf16; f32")
      ->transform(CLI::Validator(
          [](std::string& text) {
            if (text == "fp32") text = "f32";
            return std::string();
          },
          ""))
      ->check(CLI::IsMember({"f32", "bf16"}).description(""));
}

void add_rank_options(CLI::App& command, DeviceArguments& arguments) {
  command
      .add_option("--tensor,--tensor-parallel-size", arguments.tensor,
                  "devices that split the model, each with some of its heads, 1")
      ->check(whole_number_from(1, 64));
  command
      .add_option("--replicas,--data-parallel-size", arguments.replicas,
                  "of the model, which share the requests; each takes --tensor devices, 1")
      ->check(whole_number_from(1, 64));
}

}  // namespace skein
