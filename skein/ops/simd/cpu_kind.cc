#include "skein/ops/simd/cpu_kind.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "hwy/highway.h"
#include "skein/base/error.h"

namespace skein {
namespace {

std::atomic<bool> bf16_dot_allowed = true, amx_allowed = true;

// Highway's targets, cached: Highway would query the CPU each time, which takes 28 us in a virtual
// machine, and kernels ask before every product. 0: not known.
std::atomic<int64_t> known_targets = 0;

// Updates Highway's dispatch as well: it uses the last choice, and its own detection ignores
// limits.
int64_t detect_targets() {
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  hwy::GetChosenTarget().Update(targets);
  known_targets = targets;
  return targets;
}

// The best target has the lowest bit.
int64_t best_target() {
  const int64_t known = known_targets.load(std::memory_order_relaxed);
  const int64_t targets = known != 0 ? known : detect_targets();
  return targets & -targets;
}

std::string name_of(int64_t target) {
#if HWY_ARCH_X86
  if (target <= HWY_AVX3) {
    return cpu_uses_amx() ? "amx" : cpu_uses_bf16_dot() ? "avx512-bf16" : "avx512";
  }
  if (target == HWY_AVX2) return "avx2";
  if (target == HWY_SSE4) return "sse4";
#endif
  std::string name = hwy::TargetName(target);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  return name;
}

bool has_bf16_dot() {
#if HWY_ARCH_X86
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

bool has_amx() {
  static const TileAccess tiles = tile_access();
  return tiles.in_cpu && tiles.error == 0;
}

// Less is better; kCpuKinds.size(): a kind that is not comparable.
size_t place_of(std::string_view kind) {
  return std::find(kCpuKinds.begin(), kCpuKinds.end(), kind) - kCpuKinds.begin();
}

// "avx2" and "sse4", each in quotes.
std::string kinds_from(size_t best) {
  std::vector<std::string> names;
  for (size_t i = best; i < kCpuKinds.size(); ++i)
    names.push_back(fmt::format("\"{}\"", kCpuKinds[i]));
  const std::string last = names.back();
  names.pop_back();
  return names.empty() ? last : fmt::format("{} and {}", fmt::join(names, ", "), last);
}

// The targets that are better than `kind`.
int64_t targets_above([[maybe_unused]] std::string_view kind) {
#if HWY_ARCH_X86
  if (kind == "amx" || kind == "avx512-bf16" || kind == "avx512") return HWY_AVX3 - 1;
  if (kind == "avx2") return HWY_AVX2 - 1;
  if (kind == "sse4") return HWY_SSE4 - 1;
#endif
  return 0;
}

}  // namespace

std::string cpu_kind() { return name_of(best_target()); }

std::string best_cpu_kind() {
  static const std::string best = [] {
    const bool dot = bf16_dot_allowed.exchange(true), amx = amx_allowed.exchange(true);
    hwy::DisableTargets(0);
    detect_cpu_kind_again();
    std::string kind = cpu_kind();
    bf16_dot_allowed = dot;
    amx_allowed = amx;
    return kind;
  }();
  return best;
}

void limit_cpu_kind(std::string_view kind) {
  const char* forced = kind == "auto" ? std::getenv("SKEIN_CPU") : nullptr;
  if (forced != nullptr && *forced != '\0') kind = forced;
  const std::string refusal = refused_kind_text(forced == nullptr ? "device.cpu" : "SKEIN_CPU",
                                                kind, best_cpu_kind(), tile_access());
  if (!refusal.empty()) fail(ErrorCode::kUsage, "{}", refusal);
  hwy::DisableTargets(targets_above(kind));
  detect_cpu_kind_again();
  amx_allowed = kind == "auto" || kind == "amx";
  bf16_dot_allowed = amx_allowed || kind == "avx512-bf16";
}

bool cpu_has_tiles() {
#if HWY_ARCH_X86 && defined(__linux__)
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kBf16) != 0 && (d & kTile) != 0;
#else
  return false;
#endif
}

TileAccess tile_access() {
  static const TileAccess access = [] {
    TileAccess tiles{.in_cpu = cpu_has_tiles()};
#if HWY_ARCH_X86 && defined(__linux__)
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
    if (tiles.in_cpu && ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0) {
      tiles.error = errno;
    }
#endif
    return tiles;
  }();
  return access;
}

std::string denied_tiles_text(TileAccess tiles) {
  if (!tiles.in_cpu || tiles.error == 0) return "";
  return fmt::format(
      "this host's CPU has tiles (AMX), but the system does not let this process use them: "
      "arch_prctl(ARCH_REQ_XCOMP_PERM) says {}",
      errno_text(tiles.error));
}

std::string denied_tiles() { return amx_allowed ? denied_tiles_text(tile_access()) : ""; }

std::string refused_kind_text(std::string_view key, std::string_view kind, std::string_view best,
                              TileAccess tiles) {
  const size_t has = place_of(best), asked = place_of(kind);
  if (kind == "auto" || (has <= asked && asked < kCpuKinds.size())) return "";
  if (has == kCpuKinds.size()) {
    return fmt::format("{} is \"{}\", and this host's CPU has {}: expected \"auto\"", key, kind,
                       best);
  }
  const std::string denied = kind == "amx" ? denied_tiles_text(tiles) : "";
  return fmt::format(
      "{} is \"{}\", and {}: {}expected \"auto\", or a kind that every host of the run has; this "
      "one has {}",
      key, kind, !denied.empty() ? denied : fmt::format("this host's CPU has {}", best),
      denied.empty() ? ""
                     : "Linux lets it from 5.16 on, unless a container's filter of system calls "
                       "(seccomp) forbids it; ",
      kinds_from(has));
}

void detect_cpu_kind_again() { detect_targets(); }

std::string common_cpu_kind(std::span<const std::string> kinds) {
  size_t least = 0;
  for (const std::string& kind : kinds) least = std::max(least, place_of(kind));
  return kinds.empty() || least == kCpuKinds.size() ? "" : std::string(kCpuKinds[least]);
}

bool cpu_uses_avx512() {
#if HWY_ARCH_X86
  return best_target() <= HWY_AVX3;
#else
  return false;
#endif
}

bool cpu_uses_bf16_dot() { return cpu_uses_avx512() && bf16_dot_allowed && has_bf16_dot(); }

bool cpu_uses_amx() { return cpu_uses_bf16_dot() && amx_allowed && has_amx(); }

}  // namespace skein
