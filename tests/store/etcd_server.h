// An etcd of a test's own, on free ports of the loopback interface and in a folder of its own; it
// ends with the test. With TLS where it is given certificates, those of make_certificates.sh.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
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

// All files of make_certificates.sh.
inline const fs::path& certificates() {
  static const TempFolder folder;
  static const fs::path made = [] {
    const std::string script =
        std::filesystem::path(kSourceFolder) / "tests/store/make_certificates.sh";
    if (std::system((script + " " + (folder / "tls").string()).c_str()) != 0) {
      throw std::runtime_error(script + " fails: is openssl installed?");
    }
    return folder / "tls";
  }();
  return made;
}

class EtcdServer {
 public:
  struct Tls {
    std::string certificate;           // "server", "expired", …; "": http
    bool asks_clients = false;         // for certificates of theirs
    std::vector<std::string> options;  // more arguments of etcd
  };

  EtcdServer() { start(); }
  explicit EtcdServer(Tls tls) : tls_(std::move(tls)) { start(); }
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;
  ~EtcdServer() { stop(); }

  std::string endpoint() const { return "127.0.0.1:" + std::to_string(port_); }
  bool is_encrypted() const { return !tls_.certificate.empty(); }
  std::string address(const std::string& prefix) const {
    return (is_encrypted() ? "etcds://" : "etcd://") + endpoint() + "/" + prefix;
  }
  // Everything that this server may ask for, but a user.
  EtcdAccess access() const {
    if (!is_encrypted()) return {};
    const std::string folder = certificates();
    return {.ca_file = folder + "/ca.pem",
            .cert_file = folder + "/client.pem",
            .key_file = folder + "/client.key"};
  }
  // What no EtcdClient can do: users, roles.
  Json administer(const std::string& path, const Json& body, const std::string& token = "") const {
    const EtcdAccess with = access();
    HttpClient http({with.ca_file, with.cert_file, with.key_file});
    const HttpAnswer answer =
        http.post((is_encrypted() ? "https://" : "http://") + endpoint() + path, body.dump(), 30,
                  1 << 20, token);
    if (answer.status != 200) throw std::runtime_error(path + ": " + answer.problem + answer.body);
    return Json::parse(answer.body);
  }
  // Users from now on: root, with the password "root's", and `user`, with "user's", who may read
  // and write what begins with `prefix`/.
  void add_users(const std::string& user, const std::string& prefix) const {
    const std::string begin = prefix + "/", end = prefix + "0";
    administer("/v3/auth/user/add", {{"name", "root"}, {"password", "root's"}});
    administer("/v3/auth/role/add", {{"name", "root"}});
    administer("/v3/auth/user/grant", {{"user", "root"}, {"role", "root"}});
    administer("/v3/auth/user/add", {{"name", user}, {"password", "user's"}});
    administer("/v3/auth/role/add", {{"name", "runs"}});
    administer(
        "/v3/auth/role/grant",
        {{"name", "runs"},
         {"perm",
          {{"permType", "READWRITE"}, {"key", to_base64(begin)}, {"range_end", to_base64(end)}}}});
    administer("/v3/auth/user/grant", {{"user", user}, {"role", "runs"}});
    administer("/v3/auth/enable", Json::object());
  }

  // On the same port and with what it held, as after a crash.
  void start() {
    const std::string client = (is_encrypted() ? "https://" : "http://") + endpoint();
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
    if (is_encrypted()) {
      const std::string own = (certificates() / tls_.certificate).string();
      arguments.insert(arguments.end(), {"--cert-file", own + ".pem", "--key-file", own + ".key"});
    }
    if (tls_.asks_clients) {
      arguments.insert(arguments.end(), {"--client-cert-auth", "--trusted-ca-file",
                                         (certificates() / "ca.pem").string()});
    }
    arguments.insert(arguments.end(), tls_.options.begin(), tls_.options.end());
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

  // With users it does as well where it asks who this is, and with a certificate that is no good
  // where this says so.
  void wait_until_it_answers() {
    EtcdClient client({endpoint()}, is_encrypted(), access());
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (true) {
      try {
        client.get("ready");
        return;
      } catch (const Error& error) {
        if (error.code() == ErrorCode::kUsage) return;
        const bool ended = ::waitpid(pid_, nullptr, WNOHANG) != 0;
        if (ended || std::chrono::steady_clock::now() > deadline) {
          throw std::runtime_error("etcd does not start (scripts/test_tools.sh unpacks it): " +
                                   read_file_if_any(folder_ / "log") + error.what());
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  static std::string to_base64(const std::string& bytes) {
    std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
    text.resize(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                reinterpret_cast<const unsigned char*>(bytes.data()),
                                static_cast<int>(bytes.size())));
    return text;
  }

  const Tls tls_;
  const TempFolder folder_;
  const int port_ = free_port(), peer_port_ = free_port();
  pid_t pid_ = -1;
};

}  // namespace skein::test
