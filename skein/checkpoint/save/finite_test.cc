#include "skein/checkpoint/save/finite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/checkpoint/checkpoint_test_state.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using testing::HasSubstr;

template <typename T>
std::string problem(DType dtype, const std::vector<T>& values) {
  return error_of([&] { check_finite("w", dtype, std::as_bytes(std::span(values))); });
}

template <typename T>
void expect_found_anywhere(DType dtype) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<T> values(2500, T(-3.0e38f));
  EXPECT_EQ(problem(dtype, values), "");
  EXPECT_EQ(problem(dtype, std::vector<T>()), "");
  for (const size_t at : {size_t{0}, size_t{1023}, size_t{1024}, size_t{2499}}) {
    for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
      std::vector<T> changed = values;
      changed[at] = T(bad);
      EXPECT_THAT(problem(dtype, changed),
                  HasSubstr(fmt::format("\"w\" holds {} (value {} of the 2500",
                                        std::isnan(bad) ? "nan" : "infinity", at)));
    }
  }
}

TEST(Finite, FindsInfinityAndNanAnywhere) {
  expect_found_anywhere<float>(DType::kF32);
  expect_found_anywhere<double>(DType::kF64);
  expect_found_anywhere<bfloat16>(DType::kBF16);
}

TEST(Finite, IntegersAreNone) { EXPECT_EQ(problem<int32_t>(DType::kI32, {-1, 0x7f800000}), ""); }

TEST(Finite, IsNeverCommitted) {
  const test::TempFolder folder;
  std::vector<float> weights = {1, 2, 3}, moments = {4, 5, 6};
  const std::vector<TensorSpec> specs = {
      TensorSpec::whole("w", DType::kF32, {3}),
      TensorSpec::whole("exp_avg_sq.w", DType::kF32, {3}, "optimizer")};
  const std::vector<View> views = {View::contiguous(weights.data(), DType::kF32, {3}),
                                   View::contiguous(moments.data(), DType::kF32, {3})};
  CheckpointWriter writer(folder.path(), {}, specs);
  const auto save = [&](int64_t step) {
    writer.begin({.step = step}, views);
    writer.wait();
    return *writer.poll();
  };
  EXPECT_TRUE(save(1).ok());
  moments[1] = std::numeric_limits<float>::infinity();
  const Result<SavedCheckpoint> saved = save(2);
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.error().code(), ErrorCode::kNotFinite);
  EXPECT_THAT(saved.error().what(), HasSubstr("step 2 was not saved"));
  EXPECT_THAT(saved.error().what(), HasSubstr("exp_avg_sq.w"));
  EXPECT_EQ(test::names_in(folder.path()), std::vector<std::string>{"step-00000001"});
}

}  // namespace
}  // namespace skein
