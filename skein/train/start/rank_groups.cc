#include "skein/train/start/rank_groups.h"

#include "skein/backends/backend.h"
#include "skein/compile/step_programs.h"

namespace skein {
namespace {

std::unique_ptr<Communicator> make_device_world(const Config& config, Communicator& world,
                                                Device& device) {
  const Backend& backend = training_backend(config);
  if (world.size() == 1 || backend.make_world == nullptr) return nullptr;
  DeviceWorldOptions options;
  options.stream = device.stream();
  options.timeout_s = config.launch.collective_timeout_s;
  options.sums = config.parallel.sums == "fast" ? Sums::kFast : Sums::kCanonical;
  return backend.make_world(world, options);
}

}  // namespace

RankGroups::RankGroups(const Config& config, const ParallelLayout& layout, Communicator& world,
                       Device& device)
    : device_world(make_device_world(config, world, device)),
      by_axis(split_by_axis(device_world ? *device_world : world, layout.mesh,
                            layout.reduction_width)) {}

}  // namespace skein
