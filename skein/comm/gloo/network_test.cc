#include "skein/comm/gloo/network.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "skein/base/error.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;

bool says(const std::string& text, const std::initializer_list<const char*>& words) {
  for (const char* word : words) {
    if (text.find(word) != text.npos) continue;
    fprintf(stderr, "expected: %s\nin: %s\n", word, text.c_str());
    return false;
  }
  return true;
}

TEST(Network, NamesTheInterfacesThatThereAre) {
  ::setenv("SKEIN_NETWORK_INTERFACE", "no_such_card", 1);
  for (const bool one_host : {true, false}) {
    EXPECT_TRUE(says(error_of([&] { open_network(one_host); }),
                     {"SKEIN_NETWORK_INTERFACE=no_such_card", "this machine has lo ("}));
    EXPECT_TRUE(says(error_of([&] { network_address(one_host); }), {"no_such_card"}));
  }
  ::unsetenv("SKEIN_NETWORK_INTERFACE");
}

bool bring_loopback_up() {
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  if (::ioctl(fd, SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  const bool is_up = ::ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  ::close(fd);
  return is_up;
}

// In a child process with a network of its own, which has loopback alone, and that is down. Where
// the system forbids such a network (77) there is nothing to look at.
TEST(Network, SaysWhatIsDownAndWhatHelps) {
  constexpr int kForbidden = 77;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
      ::_exit(kForbidden);
    }
    ::unsetenv("SKEIN_NETWORK_INTERFACE");
    if (!says(error_of([] { open_network(true); }),
              {"loopback interface, at 127.0.0.1, which is not up", "this machine has lo (down",
               "`ip link set lo up`", "SKEIN_NETWORK_INTERFACE=NAME"})) {
      ::_exit(1);
    }
    if (!says(error_of([] { open_network(false); }), {"no interface that other machines can reach",
                                                      "lo (down", "SKEIN_NETWORK_INTERFACE"})) {
      ::_exit(2);
    }
    if (!bring_loopback_up()) ::_exit(kForbidden);
    if (network_address(true) != "127.0.0.1") ::_exit(3);
    if (!says(error_of([] { open_network(false); }), {"lo (up, 127.0.0.1)"})) ::_exit(4);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kForbidden) << WEXITSTATUS(status);
}

}  // namespace
}  // namespace skein
