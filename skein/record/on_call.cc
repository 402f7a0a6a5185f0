#include "skein/record/on_call.h"

namespace skein {

OnCall::OnCall(const Config& config) : address_(config.log.prometheus), watch_(config) {
  if (!config.launch.on_event.empty()) command_.emplace(config.run.dir, config.launch.on_event);
}

void OnCall::lead(bool leads, const Cluster& cluster) {
  watch_.set_cluster(cluster);
  if (command_) command_->lead(leads);
  if (!leads) server_.reset();
  if (leads && !server_ && !address_.empty()) {
    server_.emplace(address_, [this] { return watch_.text(); });
  }
}

}  // namespace skein
