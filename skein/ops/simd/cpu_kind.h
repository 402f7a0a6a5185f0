// Which instruction sets the CPU kernels of this process use. They decide how sums round, so ranks
// of a run must have the same.
//
// Kinds   "avx512-bf16" (AVX-512 with bf16 dot products), "avx512", "avx2", "sse4"; each can do
//         what the later ones do. Elsewhere the name that Highway has for it, as "neon"
// Threads before any kernel runs; the choice is the process's
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace skein {

inline constexpr std::array<std::string_view, 4> kCpuKinds = {"avx512-bf16", "avx512", "avx2",
                                                              "sse4"};

// What kernels use, and what they would without a limit.
std::string cpu_kind();
std::string best_cpu_kind();

// Kernels use no more than `kind`, one of kCpuKinds, or "auto": what the CPU has. Throws
// Error{kUsage} where it has less.
void limit_cpu_kind(std::string_view kind);

// The kind that CPUs of all of these kinds can be limited to; empty where there is none.
std::string common_cpu_kind(std::span<const std::string> kinds);

// For tests that choose among Highway's targets themselves: kernels use what they chose.
void detect_cpu_kind_again();

bool cpu_uses_avx512();
bool cpu_uses_bf16_dot();

}  // namespace skein
