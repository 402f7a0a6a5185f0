// Which network interface the ranks of a world meet on.
#pragma once

#include <gloo/transport/device.h>

#include <memory>

namespace skein {

// SKEIN_NETWORK_INTERFACE where it is set, loopback on one host, else the interface of the host
// name, or the first that is up where the name leads to loopback, as Debian's /etc/hosts has it.
// Errors  Error{kUsage} for an interface that is not there or has no address
std::shared_ptr<gloo::transport::Device> open_network(bool one_host);

}  // namespace skein
