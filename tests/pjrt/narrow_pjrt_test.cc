// Functions without 64-bit numbers: f64 at the edge of a module, and the draws of Philox.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "skein/ops/philox_stablehlo.h"
#include "skein/stablehlo/narrow.h"
#include "tests/pjrt/op_kernels.h"

namespace skein::pjrt_test {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

// Runs a module of one function on these arrays; the bytes of its result.
std::vector<char> run(Function& main, const std::vector<const void*>& arguments,
                      const stablehlo::Tensor& result) {
  main.finish({result});
  const std::string text = "module @m {\n" + main.text(/*is_public=*/true) + "}\n";
  const PjrtClient& client = client_under_test();
  std::vector<PjrtBuffer> buffers;
  std::vector<PJRT_Buffer*> handles;
  for (size_t i = 0; i < arguments.size(); ++i) {
    buffers.push_back(client.put(arguments[i], main.arguments()[i].type()));
    handles.push_back(buffers.back().get());
  }
  const auto executable = client.compile(text, 1);
  const auto results = client.execute(*executable, {handles}, 1);
  std::vector<char> bytes(static_cast<size_t>(result.type().num_bytes()));
  client.get(results[0][0], bytes.data(), std::ssize(bytes));
  return bytes;
}

template <typename Number>
std::vector<Number> numbers(const std::vector<char>& bytes) {
  std::vector<Number> values(bytes.size() / sizeof(Number));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Of subnormal results zero, as of XLA on CPUs.
float narrowed(double value) {
  const auto narrow = static_cast<float>(value);
  return std::abs(narrow) < std::numeric_limits<float>::min() ? std::copysign(0.0f, narrow)
                                                              : narrow;
}

TEST(Narrow, RoundsF64ToNearest) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> values = {0.0,
                                -0.0,
                                1.0,
                                -1.5,
                                1.0 / 3,
                                -2.0 / 3,
                                1 + std::ldexp(1, -24),      // a tie: to even, down
                                1 + 3 * std::ldexp(1, -24),  // a tie: to even, up
                                1 + std::ldexp(1, -24) + std::ldexp(1, -50),
                                2 - std::ldexp(1, -30),  // carries into the exponent
                                3.4028235677973366e38,   // the first to be infinite
                                3.4028235e38,
                                -1e300,
                                1e-300,
                                1.5e-38,
                                infinity,
                                -infinity};
  uint64_t state = 1;
  for (int i = 0; i < 200; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values.push_back(
        std::ldexp(static_cast<double>(state) - 9e18, static_cast<int>(i % 180) - 150));
  }
  const auto count = std::ssize(values);
  Function main("main", {outer_type({Element::kF64, {count}})}, /*is_narrow=*/true);
  const auto results =
      numbers<float>(run(main, {values.data()}, from_f64_bits(main.arguments()[0], {count})));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(results[i]), std::bit_cast<uint32_t>(narrowed(values[i])))
        << values[i] << " gives " << results[i];
  }
}

TEST(Narrow, NaNStaysNaN) {
  const std::vector<double> values = {std::nan(""), -std::nan("7")};
  Function main("main", {outer_type({Element::kF64, {2}})}, /*is_narrow=*/true);
  for (const float value :
       numbers<float>(run(main, {values.data()}, from_f64_bits(main.arguments()[0], {2})))) {
    EXPECT_TRUE(std::isnan(value));
  }
}

TEST(Narrow, F32BecomesF64) {
  const std::vector<float> values = {0.0f,    -0.0f, 1.0f,       -1.5f,    1.0f / 3, 3e38f,
                                     -2e-38f, 1e10f, 1.0000001f, INFINITY, -INFINITY};
  const auto count = std::ssize(values);
  Function main("main", {{Element::kF32, {count}}}, /*is_narrow=*/true);
  const auto results =
      numbers<double>(run(main, {values.data()}, to_f64_bits(main.arguments()[0])));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint64_t>(results[i]),
              std::bit_cast<uint64_t>(static_cast<double>(values[i])))
        << values[i];
  }
}

// The words of a parameter's elements in one step.
std::vector<uint32_t> draws(bool is_narrow) {
  constexpr int64_t kElements = 1000;
  Function main("main", {{Element::kI32, {1}}}, is_narrow);
  const Mesh mesh = Mesh::standard(1, 1, 1, 1);
  Attrs attrs;
  attrs.set("seed", int64_t{0x123456789abcdef});
  attrs.set("first_element", int64_t{4'000'000'000});
  attrs.set("range_count", kElements);
  attrs.set("run_elements", kElements);
  attrs.set("run_stride", kElements);
  const std::vector<int64_t> ranks = {0};
  RuleCall call{main, mesh, ranks, {&attrs}, {}, {}};
  call.arguments["stream"] = main.word(Element::kU32, 17);
  const LocalPart part(call, {kElements});
  const int32_t step = 123456;
  return numbers<uint32_t>(
      run(main, {&step}, part.words(RandomPurpose::kStochasticRounding, main.arguments()[0])));
}

TEST(Narrow, DrawsAreThoseOfWideNumbers) {
  const auto wide = draws(/*is_narrow=*/false);
  EXPECT_EQ(draws(/*is_narrow=*/true), wide);
  EXPECT_NE(wide[0], wide[1]);
}

}  // namespace
}  // namespace skein::pjrt_test
