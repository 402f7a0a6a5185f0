// Which algorithm a matrix product takes, and how often cuBLASLt is asked. The emulation says how
// long algorithms take, and counts.
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "skein/base/text/json.h"
#include "tests/cuda/matmul_trial.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using op_test::all_matmul_cases, op_test::MatmulCase, op_test::MatmulTrial, op_test::test_device;
using test::TempFolder;

class CudaAlgorithms : public testing::Test {
 protected:
  void SetUp() override { lt = {}; }
  void TearDown() override { lt = {}; }
  TempFolder folder;
  const fs::path file = folder.path() / "algorithms.jsonl";
  cuda_emulation::CublasLt& lt = cuda_emulation::cublas_lt();
};

TEST_F(CudaAlgorithms, OurKernelMultipliesWhereNoneIsProposed) {
  lt.proposes = false;
  CudaMatmuls matmuls({});
  int index = 0;
  for (const MatmulCase& one : all_matmul_cases()) {
    MatmulTrial problem(one);
    problem.expect_right(problem.run(matmuls), fmt::format("case {}", index++));
  }
  EXPECT_EQ(lt.num_products, 0);
}

TEST_F(CudaAlgorithms, KeepsTheFastestAlgorithm) {
  MatmulTrial problem({.rows = 40, .cols = 40, .depth = 300, .out = DType::kF32});
  const auto with = [&](int whole, int halved, const fs::path& from) {
    lt.microseconds[0] = whole;
    lt.microseconds[1] = halved;
    CudaMatmuls matmuls(from);
    return problem.run(matmuls);
  };
  const std::vector<double> whole = with(0, 0, {});
  EXPECT_EQ(lt.num_products, 1);
  const std::vector<double> halved = with(5000, 0, file);
  EXPECT_NE(halved, whole) << "the two add in different orders";
  EXPECT_GT(lt.num_products, 10);

  const int64_t products = lt.num_products, proposals = lt.num_proposals;
  EXPECT_EQ(with(0, 5000, file), halved) << "a second start finds what the first one chose";
  EXPECT_EQ(lt.num_products, products + 1);
  EXPECT_EQ(lt.num_proposals, proposals);

  fs::remove(file);
  EXPECT_EQ(with(0, 5000, file), whole);
  EXPECT_EQ(with(5000, 0, file), whole);
}

// A run's choices outweigh what its machine measured, or would measure, and what was chosen
// already.
TEST_F(CudaAlgorithms, TakesWhatTheRunHasAdopted) {
  MatmulTrial problem({.rows = 40, .cols = 40, .depth = 300, .out = DType::kF32});
  lt.microseconds[0] = 5000;
  CudaMatmuls first(file);
  const std::vector<double> halved = problem.run(first);
  const AlgorithmChoices choices = first.choices();
  EXPECT_EQ(choices.library, "emulated on the CPU, cuBLASLt 130100");
  ASSERT_EQ(choices.by_problem.size(), 1u);

  lt.microseconds[0] = 0;
  lt.microseconds[1] = lt.microseconds[2] = 5000;
  const fs::path other_machine = folder.path() / "other.jsonl";
  for (const bool has_measured : {false, true}) {
    CudaMatmuls second(other_machine);
    if (has_measured) {
      EXPECT_NE(problem.run(second), halved);
    }
    second.adopt(choices);
    const int64_t proposals = lt.num_proposals;
    EXPECT_EQ(problem.run(second), halved);
    EXPECT_EQ(lt.num_proposals, proposals);
    EXPECT_EQ(second.choices(), choices);
  }
  CudaMatmuls untuned({});
  untuned.adopt(choices);
  EXPECT_EQ(problem.run(untuned), halved);
  CudaMatmuls damaged({});
  damaged.adopt({choices.library, {{choices.by_problem.begin()->first, "00ff"}}});
  EXPECT_NE(problem.run(damaged), halved)
      << "what cuBLASLt does not know is as if it were not there";
}

TEST_F(CudaAlgorithms, ChoosingMultipliesNothing) {
  MatmulTrial problem({.rows = 40, .cols = 40, .depth = 300, .out = DType::kF32});
  lt.microseconds[0] = 5000;
  CudaMatmuls matmuls(file);
  problem.choose(matmuls);
  const int64_t products = lt.num_products;
  EXPECT_EQ(matmuls.choices().by_problem.size(), 1u);
  problem.choose(matmuls);
  EXPECT_EQ(lt.num_products, products);
  problem.run(matmuls);
  EXPECT_EQ(lt.num_products, products + 1);
}

TEST_F(CudaAlgorithms, MeasuringLeavesSumsAsTheyWere) {
  const MatmulCase accumulating = {
      .out = DType::kF32, .a_outer = true, .b_outer = true, .accumulate = true};
  MatmulTrial problem(accumulating);
  lt.microseconds[1] = 3000;
  CudaMatmuls measuring(file), taking({});
  const std::vector<double> once = problem.run(taking);
  EXPECT_EQ(lt.num_products, 1);
  EXPECT_EQ(problem.run(measuring), once);
  EXPECT_GT(lt.num_products, 10);
}

TEST_F(CudaAlgorithms, TakesTheFirstProposalWhereAStreamCaptures) {
  MatmulTrial problem({.bias = true});
  CudaMatmuls matmuls(file);
  const auto stream = static_cast<cudaStream_t>(test_device().stream);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  problem.enqueue(matmuls, stream);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(lt.num_products, 1);
  cudaGraphDestroy(graph);
}

TEST_F(CudaAlgorithms, AreKeptByDeviceDriverLibraryAndProblem) {
  MatmulTrial problem({});
  CudaMatmuls matmuls(file);
  problem.run(matmuls);
  const std::string key = parse_json(read_file(file), "the line")["key"];
  EXPECT_NE(key.find("emulated on the CPU, driver 13000, cuBLASLt 130100, 13x24x40 bf16"),
            std::string::npos)
      << key;
}

}  // namespace
}  // namespace skein
