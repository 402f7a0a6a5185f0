#include "skein/launch/node/worker_orders.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"

namespace skein {
namespace {

constexpr std::array kStopSignals = {SIGTERM, SIGUSR1, SIGUSR2, SIGINT, SIGHUP};

std::atomic<int> g_signal = 0;  // a handler has no other place

// Keeps the signals that ask to stop, as long as it lives; the last one then acts as it would have.
class KeptSignals {
 public:
  KeptSignals() {
    forget();
    struct sigaction action {};
    action.sa_handler = [](int signal) { g_signal = signal; };
    action.sa_flags = SA_RESTART;
    for (size_t i = 0; i < kStopSignals.size(); ++i) {
      sigaction(kStopSignals[i], &action, &former_[i]);
    }
  }
  ~KeptSignals() {
    for (size_t i = 0; i < kStopSignals.size(); ++i) {
      sigaction(kStopSignals[i], &former_[i], nullptr);
    }
    if (const int signal = g_signal.exchange(0)) ::raise(signal);
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

  void forget() { g_signal = 0; }

 private:
  std::array<struct sigaction, kStopSignals.size()> former_{};
};

bool send(int socket, std::string_view text) {
  return ::send(socket, text.data(), text.size(), MSG_NOSIGNAL) >= 0;
}

// Empty: the supervisor has closed the socket, or is gone.
std::string receive(int socket) {
  std::string text;
  ssize_t size = 0;
  do {
    size = ::recv(socket, nullptr, 0, MSG_PEEK | MSG_TRUNC);
  } while (size < 0 && errno == EINTR);
  if (size <= 0) return "";
  text.resize(static_cast<size_t>(size));
  if (::recv(socket, text.data(), text.size(), 0) != size) return "";
  return text;
}

std::map<std::string, std::string, std::less<>> variables_of(std::string_view text) {
  std::map<std::string, std::string, std::less<>> variables;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t equals = line.find('=');
    if (equals == line.npos) {
      fail(ErrorCode::kInvalid, "a supervisor announced a generation with \"{}\": expected {}",
           line.substr(0, 100), "NAME=value");
    }
    variables.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return variables;
}

void redirect(int file, int output) {
  if (::dup2(file, output) < 0) {
    fail(ErrorCode::kIo, "cannot redirect output of a rank: {}", errno_text(errno));
  }
}

// Rank 0 has the terminal; the others write to their logs.
void write_where_it_belongs(const RankInfo& info, const fs::path& run_dir) {
  if (info.rank == 0) {
    redirect(info.standard_output, STDOUT_FILENO);
    return redirect(info.standard_error, STDERR_FILENO);
  }
  const std::string path = rank_log(run_dir, info.rank);
  const FileDescriptor log = open_to_append(path);
  redirect(log.get(), STDOUT_FILENO);
  redirect(log.get(), STDERR_FILENO);
}

}  // namespace

std::optional<RankInfo> next_generation(const RankInfo& last, int exit_code,
                                        const fs::path& run_dir) {
  KeptSignals signals;
  std::fflush(nullptr);
  ::malloc_trim(0);  // what the generation had is free for others meanwhile
  if (!send(last.orders, fmt::format("ended {}", exit_code))) return std::nullopt;
  if (receive(last.orders) != "noted") return std::nullopt;
  signals.forget();
  if (!send(last.orders, "ready")) return std::nullopt;
  const std::string text = receive(last.orders);
  if (text.empty()) return std::nullopt;
  const auto variables = variables_of(text);
  RankInfo next = *rank_info_from_environment([&](const char* name) -> const char* {
    const auto found = variables.find(std::string_view(name));
    return found == variables.end() ? nullptr : found->second.c_str();
  });
  next.orders = last.orders;
  next.standard_output = last.standard_output;
  next.standard_error = last.standard_error;
  write_where_it_belongs(next, run_dir);
  return next;
}

}  // namespace skein
