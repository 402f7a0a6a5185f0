// Matrix products through cuBLASLt, or our own kernel, against double precision.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "skein/base/text/json.h"
#include "skein/ops/cuda/algorithm_cache.h"
#include "tests/cuda/matmul_trial.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using cuda::AlgorithmCache;
using op_test::all_matmul_cases, op_test::MatmulCase, op_test::MatmulTrial, op_test::test_device;
using test::TempFolder;

class CudaMatmulsTest : public testing::Test {
 protected:
  TempFolder folder;
  const fs::path file = folder.path() / "algorithms.jsonl";
};

TEST_F(CudaMatmulsTest, MeetsDoublePrecision) {
  CudaMatmuls measuring(file), taking({});
  int index = 0;
  for (const MatmulCase& one : all_matmul_cases()) {
    const std::string what = fmt::format("case {}", index++);
    MatmulTrial problem(one);
    problem.expect_right(problem.run(measuring), what);
    problem.expect_right(problem.run(taking), what + " without measuring");
  }
}

TEST_F(CudaMatmulsTest, HasTheBitsOfTheChoicesThatItAdopts) {
  MatmulTrial problem({.rows = 80, .cols = 96, .depth = 512});
  CudaMatmuls first(file);
  const std::vector<double> result = problem.run(first);
  const AlgorithmChoices choices = first.choices();
  ASSERT_EQ(choices.by_problem.size(), 1u);
  EXPECT_NE(choices.library.find("cuBLASLt"), std::string::npos) << choices.library;
  CudaMatmuls second({});
  second.adopt(choices);
  EXPECT_EQ(problem.run(second), result);
  EXPECT_EQ(second.choices(), choices);
}

TEST_F(CudaMatmulsTest, MultipliesWhereAStreamCaptures) {
  MatmulTrial problem({.bias = true});
  CudaMatmuls loading({}), matmuls(file);
  problem.run(loading);  // a GPU may load no code while a stream captures
  const auto stream = static_cast<cudaStream_t>(test_device().stream);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  problem.enqueue(matmuls, stream);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
  test_device().synchronize();
  problem.expect_right(problem.values(), "a graph");
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

TEST_F(CudaMatmulsTest, UsesNoAlgorithmThatTheLibraryDoesNotKnow) {
  MatmulTrial problem({});
  CudaMatmuls first(file);
  problem.run(first);
  const std::string key = parse_json(read_file(file), "the line")["key"];
  EXPECT_NE(key.find("13x24x40 bf16"), std::string::npos) << key;
  for (const size_t size : {64, 63}) {
    fs::remove(file);
    AlgorithmCache(file).find_or_choose(key, [&] {
      return AlgorithmCache::Choice{std::string(size, 'x'), 1};
    });
    CudaMatmuls second(file);
    problem.expect_right(problem.run(second), "a foreign algorithm");
  }
}

}  // namespace
}  // namespace skein
