// An etcd of a test's own, on free ports of the loopback interface and in a folder of its own; it
// ends with the test.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "skein/base/error.h"
#include "skein/store/etcd_client.h"
#include "tests/places.h"
#include "tests/temp_folder.h"

namespace skein::test {

inline int free_port() {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), at, length) != 0 || ::getsockname(socket.get(), at, &length) != 0) {
    throw std::runtime_error("no free port");
  }
  return ntohs(address.sin_port);
}

class EtcdServer {
 public:
  EtcdServer() { start(); }
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;
  ~EtcdServer() { stop(); }

  std::string endpoint() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string address(const std::string& prefix) const {
    return "etcd://" + endpoint() + "/" + prefix;
  }

  // On the same port and with what it held, as after a crash.
  void start() {
    const std::string client = "http://" + endpoint();
    const std::string peer = "http://127.0.0.1:" + std::to_string(peer_port_);
    std::vector<std::string> arguments = {program(),
                                          "--data-dir",
                                          folder_ / "data",
                                          "--listen-client-urls",
                                          client,
                                          "--advertise-client-urls",
                                          client,
                                          "--listen-peer-urls",
                                          peer,
                                          "--initial-advertise-peer-urls",
                                          peer,
                                          "--initial-cluster",
                                          "default=" + peer};
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const std::string log = folder_ / "log";
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      ::dup2(file, STDOUT_FILENO);
      ::dup2(file, STDERR_FILENO);
      ::execvp(pointers[0], pointers.data());
      ::_exit(127);
    }
    wait_until_it_answers();
  }

  void stop() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  // Where scripts/test_tools.sh unpacked it, or one that is installed.
  static std::string program() {
    const std::filesystem::path unpacked =
        std::filesystem::path(kSourceFolder) / ".deps/services/bin/etcd";
    return std::filesystem::exists(unpacked) ? unpacked.string() : "etcd";
  }

  void wait_until_it_answers() {
    EtcdClient client({endpoint()});
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (true) {
      try {
        client.get("ready");
        return;
      } catch (const Error& error) {
        const bool ended = ::waitpid(pid_, nullptr, WNOHANG) != 0;
        if (ended || std::chrono::steady_clock::now() > deadline) {
          throw std::runtime_error("etcd does not start (scripts/test_tools.sh unpacks it): " +
                                   read_file_if_any(folder_ / "log") + error.what());
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  const TempFolder folder_;
  const int port_ = free_port(), peer_port_ = free_port();
  pid_t pid_ = -1;
};

}  // namespace skein::test
