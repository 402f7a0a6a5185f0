#include "skein/health/product_check.h"

#include <algorithm>
#include <bit>

#include "skein/base/error.h"
#include "skein/base/machine/clock.h"
#include "skein/compile/product_program.h"

namespace skein {
namespace {

constexpr int64_t kTerms = 256;
constexpr int kLargest = 255;

std::vector<int16_t> whole_numbers(int64_t count, uint32_t state) {
  std::vector<int16_t> numbers(static_cast<size_t>(count));
  for (int16_t& number : numbers) {
    state = state * 1664525 + 1013904223;
    number = static_cast<int16_t>(static_cast<int>((state >> 8) % (2 * kLargest + 1)) - kLargest);
  }
  return numbers;
}

// They have at most 8 significant bits: bf16 holds them exactly.
std::vector<char> as_dtype(const std::vector<int16_t>& numbers, DType dtype) {
  std::vector<char> bytes(numbers.size() * static_cast<size_t>(size_of(dtype)));
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(numbers[i]));
    if (dtype == DType::kBF16) {
      reinterpret_cast<uint16_t*>(bytes.data())[i] = static_cast<uint16_t>(bits >> 16);
    } else {
      reinterpret_cast<uint32_t*>(bytes.data())[i] = bits;
    }
  }
  return bytes;
}

std::vector<float> exact_product(const std::vector<int16_t>& x, const std::vector<int16_t>& w,
                                 int64_t size) {
  std::vector<float> y(static_cast<size_t>(size * size));
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < size; ++row) {
    for (int64_t col = 0; col < size; ++col) {
      const int16_t* a = x.data() + row * kTerms;
      const int16_t* b = w.data() + col * kTerms;
      int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 0; i < kTerms; ++i) sum += int32_t{a[i]} * b[i];
      y[static_cast<size_t>(row * size + col)] = static_cast<float>(sum);
    }
  }
  return y;
}

// The first element that is not the answer, or -1. Compares numbers: 0 and -0 are both right.
int64_t first_wrong(const std::vector<float>& y, const std::vector<float>& answer) {
  const auto [at, end] = std::mismatch(y.begin(), y.end(), answer.begin());
  return at == y.end() ? -1 : at - y.begin();
}

}  // namespace

CheckResult check_product(Device& device, DType dtype, int64_t size, double seconds) {
  const std::vector<int16_t> x = whole_numbers(size * kTerms, 1),
                             w = whole_numbers(size * kTerms, 2);
  const std::vector<float> answer = exact_product(x, w, size);
  const std::vector<char> x_bytes = as_dtype(x, dtype), w_bytes = as_dtype(w, dtype);
  const auto bytes = static_cast<int64_t>(x_bytes.size());
  ProductProgram product(device, dtype, size, size, kTerms);
  const View y_on_device = product.y();
  device.upload(product.x().data, x_bytes.data(), bytes);
  device.upload(product.w().data, w_bytes.data(), bytes);

  CheckResult result;
  result.unit = "FLOP/s";
  std::vector<float> y(answer.size());
  int64_t count = 0;
  for (const auto start = Clock::now(); count < 2 || seconds_since(start) < seconds; ++count) {
    device.fill_zero(y_on_device.data, y_on_device.num_bytes());
    device.synchronize();
    const auto began = Clock::now();
    product.run();
    device.synchronize();
    result.rate = std::max(result.rate,
                           2.0 * static_cast<double>(size * size * kTerms) / seconds_since(began));
    device.download(y.data(), y_on_device.data, y_on_device.num_bytes());
    const int64_t wrong = first_wrong(y, answer);
    if (wrong < 0) continue;
    const auto at = static_cast<size_t>(wrong);
    result.health = Health::kSick;
    result.rate = 0;
    result.found = fmt::format("{} at row {}, column {} of product {}", y[at], wrong / size,
                               wrong % size, count + 1);
    result.expected = fmt::format("{}", answer[at]);
    result.advice = "This device computes wrongly: take the machine out of service";
    return result;
  }
  result.found = fmt::format("{} products right to the bit", count);
  return result;
}

}  // namespace skein
