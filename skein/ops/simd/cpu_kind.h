// The instruction sets that the CPU kernels of this process use. They decide how sums round, so all
// ranks of a run must use the same.
//
// Kinds   "amx" (tiles of bf16 products), "avx512-bf16" (AVX-512 with bf16 dot products), "avx512",
//         "avx2", "sse4"; each includes the later ones. On other CPUs Highway's name, such as
//         "neon". A CPU with tiles whose system does not let this process use them has
//         "avx512-bf16"
// Threads to be chosen before any kernel runs; the choice holds for the process
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace skein {

inline constexpr std::array<std::string_view, 5> kCpuKinds = {"amx", "avx512-bf16", "avx512",
                                                              "avx2", "sse4"};

// The kind that kernels use, and the one that they would use without a limit.
std::string cpu_kind();
std::string best_cpu_kind();

// Limits kernels to `kind`, one of kCpuKinds, or "auto": what the variable SKEIN_CPU says, else no
// limit. Throws Error{kUsage} if the CPU has less, or the system denies it.
void limit_cpu_kind(std::string_view kind);

// The tiles of this CPU, and whether the system lets this process use them: it saves them only for
// processes that ask, and is asked once.
// Source  Linux, Documentation/arch/x86/xstate.rst
struct TileAccess {
  bool in_cpu = false;
  int error = 0;  // errno of the system's answer; 0: it lets the process, or was not asked
};
bool cpu_has_tiles();  // asks only the CPU
TileAccess tile_access();

// What kernels without a limit miss, since the system denies it; empty: nothing.
std::string denied_tiles();

// The two above of any host: what denied_tiles() says; and why kernels cannot be limited to `kind`,
// which `key` asks for, where `best` is the best that they can have. Empty: nothing is denied.
std::string denied_tiles_text(TileAccess tiles);
std::string refused_kind_text(std::string_view key, std::string_view kind, std::string_view best,
                              TileAccess tiles);

// The best kind to which CPUs of all these kinds can be limited; empty if there is none.
std::string common_cpu_kind(std::span<const std::string> kinds);

// For tests that choose among Highway's targets themselves: kernels use their choice.
void detect_cpu_kind_again();

bool cpu_uses_avx512();
bool cpu_uses_bf16_dot();
bool cpu_uses_amx();

}  // namespace skein
