#include "skein/base/machine/machine.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <sstream>

#include "skein/base/files/file.h"

namespace skein {

std::string node_name() {
  const char* given = std::getenv("SKEIN_NODE");
  // One machine may be several nodes of a Slurm cluster; its host name would be the same on all.
  const char* of_slurm = std::getenv("SLURMD_NODENAME");
  const auto is_set = [](const char* value) { return value != nullptr && *value != '\0'; };
  std::array<char, 256> host{};
  std::string name = is_set(given)                                      ? given
                     : is_set(of_slurm)                                 ? of_slurm
                     : ::gethostname(host.data(), host.size() - 1) == 0 ? host.data()
                                                                        : "machine";
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  };
  std::replace_if(
      name.begin(), name.end(), [&](char c) { return !is_plain(c); }, '_');
  return name.substr(0, 128);
}

const std::string& boot_name() {
  constexpr size_t kDigits = 8;
  static const std::string name =
      read_file_if_any("/proc/sys/kernel/random/boot_id").substr(0, kDigits);
  return name;
}

double boot_seconds() {
  struct timespec time {};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return static_cast<double>(int64_t{time.tv_sec} * 1'000'000 + time.tv_nsec / 1000) / 1e6;
}

double process_start_seconds() {
  constexpr int kBehindName = 20;  // starttime is field 22 of proc(5); the name is the second one
  const std::string stat = read_file_if_any("/proc/self/stat");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return boot_seconds();
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int i = 0; i < kBehindName && fields >> field; ++i) {
  }
  return static_cast<double>(std::atoll(field.c_str())) /
         static_cast<double>(::sysconf(_SC_CLK_TCK));
}

int64_t peak_resident_bytes() {
  struct rusage usage {};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<int64_t>(usage.ru_maxrss) * 1024 : 0;
}

}  // namespace skein
