#include "skein/record/watch/on_call.h"

namespace skein {

OnCall::OnCall(const Config& config) : watch_(config) {
  if (!config.log.prometheus.empty()) address_ = ListenAddress::find(config.log.prometheus);
  if (!config.launch.on_event.empty()) command_.emplace(config.run.dir, config.launch.on_event);
}

void OnCall::lead(bool leads, const Cluster& cluster) {
  watch_.set_cluster(cluster);
  if (command_) command_->lead(leads);
  if (!leads) server_.reset();
  if (leads && !server_ && address_) server_.emplace(*address_, watch_.shared_text());
}

}  // namespace skein
