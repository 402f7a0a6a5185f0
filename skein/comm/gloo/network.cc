#include "skein/comm/gloo/network.h"

#include <arpa/inet.h>
#include <gloo/transport/tcp/device.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstdlib>
#include <cstring>

#include "skein/base/batch_scheduling.h"
#include "skein/base/error.h"

namespace skein {
namespace {

namespace tcp = gloo::transport::tcp;

constexpr const char* kVariable = "SKEIN_NETWORK_INTERFACE";

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &address, sizeof in);
    return (ntohl(in.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
  }
  sockaddr_in6 in6;
  std::memcpy(&in6, &address, sizeof in6);
  return address.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

// The first interface that is up, carries IPv4 and is not loopback; empty where there is none.
std::string first_interface() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "";
  std::string name;
  for (const ifaddrs* at = list; at != nullptr && name.empty(); at = at->ifa_next) {
    const bool usable = at->ifa_addr != nullptr && at->ifa_addr->sa_family == AF_INET &&
                        (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_LOOPBACK) == 0;
    if (usable) name = at->ifa_name;
  }
  freeifaddrs(list);
  return name;
}

tcp::attr attributes(bool one_host) {
  tcp::attr wanted;
  if (const char* chosen = std::getenv(kVariable); chosen != nullptr && *chosen != '\0') {
    wanted.iface = chosen;
  } else if (one_host) {
    wanted.hostname = "127.0.0.1";
  } else {
    const tcp::attr named = tcp::CreateDeviceAttr(tcp::attr());
    if (!is_loopback(named.ai_addr)) return named;
    wanted.iface = first_interface();
    if (wanted.iface.empty()) {
      fail(ErrorCode::kUsage, "this host has no interface that other hosts can reach: set {}",
           kVariable);
    }
  }
  return tcp::CreateDeviceAttr(wanted);
}

}  // namespace

std::string network_address(bool one_host) {
  const sockaddr_storage found = attributes(one_host).ai_addr;
  if (found.ss_family != AF_INET) return "";
  sockaddr_in address;
  std::memcpy(&address, &found, sizeof address);
  std::string text(INET_ADDRSTRLEN, '\0');
  if (::inet_ntop(AF_INET, &address.sin_addr, text.data(), INET_ADDRSTRLEN) == nullptr) return "";
  return text.c_str();
}

std::shared_ptr<gloo::transport::Device> open_network(bool one_host) {
  const BatchScheduling of_its_thread(BatchScheduling::kMovesBytes);
  try {
    return tcp::CreateDevice(attributes(one_host));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const char* chosen = std::getenv(kVariable);
    fail(ErrorCode::kUsage, "cannot open the network ({}={}): {}", kVariable,
         chosen == nullptr ? "" : chosen, error.what());
  }
}

}  // namespace skein
