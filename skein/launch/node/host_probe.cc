#include "skein/launch/node/host_probe.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "skein/replica/wire.h"

namespace skein {
namespace {

constexpr auto kAgain = std::chrono::seconds(1);

}  // namespace

std::vector<std::string> HostProbe::refused(const std::vector<std::string>& addresses) {
  std::erase_if(attempts_, [&](const auto& attempt) {
    return std::find(addresses.begin(), addresses.end(), attempt.first) == addresses.end();
  });
  std::vector<std::string> refused;
  const Clock::time_point now = Clock::now();
  for (const std::string& address : addresses) {
    Attempt& attempt = attempts_[address];
    int problem = 0;
    if (attempt.next <= now) {
      attempt = {FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
                 now + kAgain};
      const std::optional<sockaddr_in> at = socket_address(address);
      if (!at) continue;
      const bool begins =
          ::connect(attempt.socket.get(), reinterpret_cast<const sockaddr*>(&*at), sizeof *at) == 0;
      problem = begins ? 0 : errno;
    }
    pollfd ready{attempt.socket.get(), POLLOUT, 0};
    if (problem == EINPROGRESS || problem == 0) {
      if (attempt.socket.get() < 0 || ::poll(&ready, 1, 0) <= 0) continue;
      socklen_t size = sizeof problem;
      ::getsockopt(attempt.socket.get(), SOL_SOCKET, SO_ERROR, &problem, &size);
    }
    attempt.socket = FileDescriptor();
    if (problem == ECONNREFUSED) refused.push_back(address);
  }
  return refused;
}

}  // namespace skein
