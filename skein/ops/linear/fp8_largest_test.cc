#include "skein/ops/linear/fp8_operands.h"
#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;

TEST(Fp8Largest, FindsTheLargestMagnitudeOfAllParts) {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 7}, {70, 264}}) {
    for (const int place : {0, 1, 2}) {
      Tensors in = {random_tensor(DType::kBF16, {rows, cols}, 1),
                    random_tensor(DType::kBF16, {rows + 1, cols}, 2),
                    random_tensor(DType::kBF16, {rows, cols}, 3)};
      in[place].values.back() = -1024;  // larger than all others, in the last place
      if (place > 0) in[place - 1].values[0] = std::nan("");
      check_forward({.op = &kFp8Largest, .inputs = in, .tolerance = 0}, {{1024.0}});
    }
  }
  check_forward({.op = &kFp8Largest,
                 .inputs = {Tensor{DType::kBF16, {2, 2}, {0, -0.0, 0, 0}}},
                 .tolerance = 0},
                {{0.0}});
}

TEST(Fp8Largest, TakesWhatOthersHaveFound) {
  const Tensor x = make_tensor(DType::kBF16, {3, 40}, [](int64_t i) { return i == 119 ? -2 : 1; });
  const auto found = [](double value) { return Tensor{DType::kF32, {1}, {value}}; };
  const auto check = [](const Tensors& in, double want) {
    check_forward({.op = &kFp8Largest, .inputs = in, .tolerance = 0}, {{want}});
  };
  check({found(1.5), x}, 2);
  check({x, found(3)}, 3);
  check({found(4), x, found(5), x}, 5);
  check({found(0.25), found(0)}, 0.25);
}

}  // namespace
}  // namespace skein
