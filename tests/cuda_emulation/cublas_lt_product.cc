#include "cublas_lt_product.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

namespace cuda_emulation {
namespace {

float from_fp8(uint8_t code, cudaDataType_t type) {
  const bool e4m3 = type == CUDA_R_8F_E4M3;
  const int mantissa_bits = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15, size = code & 0x7f;
  const float sign = code & 0x80 ? -1.0f : 1.0f;
  if (size == 0x7c && !e4m3) return sign * INFINITY;
  if (size == 0x7f || (size > 0x7c && !e4m3)) return NAN;
  const int exponent = size >> mantissa_bits, mantissa = size & ((1 << mantissa_bits) - 1);
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  return sign * std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - bias - mantissa_bits);
}

float value_of(uint8_t code, cudaDataType_t type) {
  static const std::vector<float> values = [] {
    std::vector<float> all;
    for (const cudaDataType_t of : {CUDA_R_8F_E4M3, CUDA_R_8F_E5M2}) {
      for (int i = 0; i < 256; ++i) all.push_back(from_fp8(static_cast<uint8_t>(i), of));
    }
    return all;
  }();
  return values[(type == CUDA_R_8F_E4M3 ? 0 : 256) + code];
}

float load(const void* data, cudaDataType_t type, int64_t i) {
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[i];
  if (is_fp8(type)) return value_of(static_cast<const uint8_t*>(data)[i], type);
  return __uint_as_float(static_cast<unsigned>(static_cast<const uint16_t*>(data)[i]) << 16);
}
void store(void* data, cudaDataType_t type, int64_t i, float value) {
  if (type == CUDA_R_32F) {
    static_cast<float*>(data)[i] = value;
    return;
  }
  const unsigned word = __float_as_uint(value);
  static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(
      std::isnan(value) ? (word >> 16) | 0x40 : (word + 0x7fff + ((word >> 16) & 1)) >> 16);
}

int64_t at(const Layout& layout, cublasOperation_t operation, int64_t row, int64_t col) {
  return operation == CUBLAS_OP_N ? row + col * layout.leading : col + row * layout.leading;
}

}  // namespace

float EnqueuedProduct::sum(int64_t row, int64_t col, int64_t begin, int64_t end) const {
  float total = 0;
  for (int64_t k = begin; k < end; ++k) {
    total += load(a, a_layout.type, at(a_layout, product.transpose_a, row, k)) *
             load(b, b_layout.type, at(b_layout, product.transpose_b, k, col));
  }
  return total;
}

// A sum as it is added to the output.
float EnqueuedProduct::scaled(float total) const {
  if (product.a_scale != nullptr) total *= *product.a_scale;
  if (product.b_scale != nullptr) total *= *product.b_scale;
  return alpha * total;
}

void EnqueuedProduct::finish(int64_t row, int64_t col, float total) const {
  float value = scaled(total);
  if (beta != 0) value += beta * load(c, c_layout.type, row + col * c_layout.leading);
  if (product.epilogue == CUBLASLT_EPILOGUE_BIAS) value += load(product.bias, d_layout.type, row);
  store(d, d_layout.type, row + col * d_layout.leading, value);
}

void EnqueuedProduct::run() const {
  const int64_t depth = cols(a_layout, product.transpose_a), half = depth / 2;
  for (int64_t col = 0; col < d_layout.cols; ++col) {
    for (int64_t row = 0; row < d_layout.rows; ++row) {
      float* const part = parts + (row + col * d_layout.rows) * 2;
      if (algorithm == 0) finish(row, col, sum(row, col, 0, depth));
      if (algorithm == 1) {
        part[0] = sum(row, col, 0, half);
        part[1] = sum(row, col, half, depth);
      }
      if (algorithm == 2) {
        const int64_t element = row + col * d_layout.leading;
        finish(row, col, sum(row, col, 0, half));
        const float first = load(d, d_layout.type, element);
        store(d, d_layout.type, element, first + scaled(sum(row, col, half, depth)));
      }
    }
  }
  for (int64_t i = 0; algorithm == 1 && i < d_layout.rows * d_layout.cols; ++i) {
    finish(i % d_layout.rows, i / d_layout.rows, parts[2 * i] + parts[2 * i + 1]);
  }
  std::this_thread::sleep_for(std::chrono::microseconds(cublas_lt().microseconds[algorithm]));
}

}  // namespace cuda_emulation
