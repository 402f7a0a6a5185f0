// Coefficients of the normal distribution function Phi, for the kernels of all devices.
//
// Formula  Phi(x) = 1/2 + x P(x^2)                          for |x| <= 1, P of near_terms
//          Phi(-u) = e^(-u^2 / 2) r Q((u - 3) r), r = 1 / (u + 3), for u >= 1, Q of far_terms
//          Phi(-u) = e^(-u^2 / 2) r R(r)                    for u >= 0, R of coarse_terms
// Errors   relative to Phi, if nothing is rounded: 7e-10, 1.3e-8, 1.7e-5, up to u = 13
// Source   the polynomials of least relative error (Remez); the form of the quotient is that of
//          Shepherd and Laframboise, Math. Comp. 36 (1981), for e^(x^2) erfc(x)
#pragma once

#include <array>

namespace skein::gelu_terms {

// Functions, since kernels of a GPU do not see constants of the host. The constant term is first.
constexpr std::array<float, 6> near_terms() {
  return {0.398942292f,    -0.0664903596f,  0.00997332297f,
          -0.00118632999f, 0.000113486392f, -7.65420828e-06f};
}
constexpr std::array<float, 8> far_terms() {
  return {0.729083717f,   -0.509331942f,  0.230016753f,   -0.047264915f,
          -0.0104441997f, 0.00698153069f, 0.00090889202f, -0.00101859588f};
}
constexpr std::array<float, 6> coarse_terms() {
  return {0.398150831f, 1.2247802f, 2.87008524f, 8.13113594f, 18.5112247f, -37.6700897f};
}

inline constexpr float kShift = 3;  // of u in r
// Below -kLast Phi and phi are taken for 0: they are subnormal soon, and those are slow.
inline constexpr float kLast = 13;

inline constexpr float kDensityAtZero = 0.398942280f;  // 1 / sqrt(2 pi)

// 2v = x (kLinear + kCubic x^2) of the form with tanh: 2 sqrt(2 / pi), and 0.044715 times that.
inline constexpr float kLinear = 1.59576912f;
inline constexpr float kCubic = 0.0713548163f;
// Beyond it s is 0 or 1, and the derivative's x^2 could overflow.
inline constexpr float kFlat = 16;

}  // namespace skein::gelu_terms
