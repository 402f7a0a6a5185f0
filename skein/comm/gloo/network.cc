#include "skein/comm/gloo/network.h"

#include <arpa/inet.h>
#include <gloo/transport/tcp/device.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/threads/batch_scheduling.h"

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

std::string ipv4_text(const sockaddr_storage& found) {
  if (found.ss_family != AF_INET) return "";
  sockaddr_in address;
  std::memcpy(&address, &found, sizeof address);
  std::string text(INET_ADDRSTRLEN, '\0');
  if (::inet_ntop(AF_INET, &address.sin_addr, text.data(), INET_ADDRSTRLEN) == nullptr) return "";
  return text.c_str();
}

struct Interface {
  std::string name;
  bool is_up = false;
  bool is_loopback = false;
  std::string address;  // IPv4
};

std::vector<Interface> interfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  std::vector<Interface> found;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    auto known = std::find_if(found.begin(), found.end(),
                              [&](const Interface& each) { return each.name == at->ifa_name; });
    if (known == found.end()) {
      found.push_back({.name = at->ifa_name,
                       .is_up = (at->ifa_flags & IFF_UP) != 0,
                       .is_loopback = (at->ifa_flags & IFF_LOOPBACK) != 0});
      known = std::prev(found.end());
    }
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_storage address{};
    std::memcpy(&address, at->ifa_addr, sizeof(sockaddr_in));
    if (known->address.empty()) known->address = ipv4_text(address);
  }
  freeifaddrs(list);
  return found;
}

// "lo (up, 127.0.0.1), eth0 (down)"
std::string interfaces_text() {
  std::string text;
  for (const Interface& each : interfaces()) {
    text +=
        fmt::format("{}{} ({}{})", text.empty() ? "" : ", ", each.name, each.is_up ? "up" : "down",
                    each.address.empty() ? ", no IPv4 address" : ", " + each.address);
  }
  return text.empty() ? "none" : text;
}

// The first interface that is up, carries IPv4 and is not loopback; empty where there is none.
std::string first_interface() {
  for (const Interface& each : interfaces()) {
    if (each.is_up && !each.is_loopback && !each.address.empty()) return each.name;
  }
  return "";
}

std::string chosen_interface() {
  const char* chosen = std::getenv(kVariable);
  return chosen == nullptr ? "" : chosen;
}

// What was looked for, what there is, and what helps.
[[noreturn]] void refuse(bool one_host) {
  const std::string chosen = chosen_interface();
  const std::string there = interfaces_text();
  if (!chosen.empty()) {
    fail(ErrorCode::kUsage,
         "cannot open the network ({}={}): expected the name of an interface that is up and has an "
         "address; this machine has {}",
         kVariable, chosen, there);
  }
  if (one_host) {
    fail(ErrorCode::kUsage,
         "the ranks of one machine meet on its loopback interface, at 127.0.0.1, which is not up; "
         "this machine has {}. `ip link set lo up` helps, or {}=NAME of an interface that is up",
         there, kVariable);
  }
  fail(ErrorCode::kUsage,
       "this machine has no interface that other machines can reach: expected an interface, other "
       "than loopback, that is up and has an IPv4 address; it has {}. Bring one up, or set {} to "
       "its name",
       there, kVariable);
}

// The interface of the host name; nothing where the name has no address, or that of no interface
// that is up.
std::optional<tcp::attr> attributes_of_host_name() {
  try {
    const tcp::attr named = tcp::CreateDeviceAttr(tcp::attr());
    if (is_loopback(named.ai_addr)) return std::nullopt;
    tcp::CreateDevice(named);
    return named;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

tcp::attr attributes(bool one_host) {
  tcp::attr wanted;
  if (const std::string chosen = chosen_interface(); !chosen.empty()) {
    wanted.iface = chosen;
  } else if (one_host) {
    wanted.hostname = "127.0.0.1";
  } else {
    if (const auto named = attributes_of_host_name()) return *named;
    wanted.iface = first_interface();
    if (wanted.iface.empty()) refuse(one_host);
  }
  try {
    return tcp::CreateDeviceAttr(wanted);
  } catch (const std::exception&) {
    refuse(one_host);
  }
}

}  // namespace

std::string network_address(bool one_host) { return ipv4_text(attributes(one_host).ai_addr); }

std::shared_ptr<gloo::transport::Device> open_network(bool one_host) {
  const BatchScheduling of_its_thread(BatchScheduling::kMovesBytes);
  const tcp::attr wanted = attributes(one_host);
  try {
    return tcp::CreateDevice(wanted);
  } catch (const std::exception&) {
    refuse(one_host);
  }
}

}  // namespace skein
