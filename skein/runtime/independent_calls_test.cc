#include "skein/runtime/independent_calls.h"

#include <gtest/gtest.h>

#include <array>

namespace skein {
namespace {

std::array<float, 64> memory;

View view(int begin, int count) {
  return View::contiguous(&memory[begin], DType::kF32, Shape{count});
}
KernelCall update(const View& x, const View& scale) {
  return {.inputs = {x, scale, {}}, .outputs = {x}};
}
size_t of(const std::vector<KernelCall>& calls) {
  std::vector<const KernelCall*> pointers;
  for (const KernelCall& call : calls) pointers.push_back(&call);
  return num_independent(pointers);
}

TEST(IndependentCalls, ShareWhatTheyRead) {
  const View scale = view(60, 1);
  EXPECT_EQ(of({update(view(0, 8), scale), update(view(8, 8), scale), update(view(16, 1), scale)}),
            3);
}

TEST(IndependentCalls, EndWhereOneUsesWhatAnotherWrites) {
  const View scale = view(60, 1);
  EXPECT_EQ(of({update(view(0, 8), scale), update(view(8, 8), scale), update(view(7, 2), scale)}),
            2);
  EXPECT_EQ(of({update(view(0, 8), scale), update(view(8, 8), view(3, 1))}), 1);
  EXPECT_EQ(of({update(view(0, 8), view(8, 1)), update(view(8, 8), scale)}), 1);
  EXPECT_EQ(of({update(scale, scale)}), 1);
  EXPECT_EQ(of({}), 0);
}

TEST(IndependentCalls, EndAtGapsBetweenRows) {
  const View wide = {&memory[0], DType::kF32, Shape{2, 2}, 4};
  EXPECT_EQ(of({update(view(32, 8), {}), update(wide, {})}), 1);
}

}  // namespace
}  // namespace skein
