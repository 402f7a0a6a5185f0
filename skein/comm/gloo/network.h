// Which network interface the ranks of a world meet on.
#pragma once

#include <gloo/transport/device.h>

#include <memory>
#include <string>

namespace skein {

// Uses SKEIN_NETWORK_INTERFACE if it is set, loopback on one host, and otherwise the interface of
// the host name. Where the name resolves to loopback, as in Debian's /etc/hosts, or to no address
// of this machine, uses the first interface that is up.
// Errors  Error{kUsage} that lists the interfaces of this machine and says what to set: the chosen
//         one does not exist, loopback is down, or other machines can reach none
std::shared_ptr<gloo::transport::Device> open_network(bool one_host);
// The numeric IPv4 address of that interface; empty where it has none.
std::string network_address(bool one_host);

}  // namespace skein
