// How algorithms are chosen, kept and found again, and the matrix product that does it.
#include "skein/ops/cuda/algorithm_cache.h"

#include <cublasLt.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <thread>

#include "skein/base/error.h"
#include "skein/base/json.h"
#include "skein/ops/cuda/library_cuda.h"
#include "skein/ops/matmul/matmul_cuda.h"
#include "tests/ops/graph_run.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using cuda::AlgorithmCache;
using op_test::random_tensor;
using op_test::test_device;

using test::TempFolder;

// The op tests choose algorithms too: not in the user's file.
class OwnCache : public testing::Environment {
 public:
  void SetUp() override { setenv("SKEIN_CACHE", folder_.path().c_str(), 0); }

 private:
  TempFolder folder_;
};
[[maybe_unused]] testing::Environment* const own_cache =
    testing::AddGlobalTestEnvironment(new OwnCache);

AlgorithmCache::Choice no_choice() { throw std::logic_error("chooses again"); }

TEST(AlgorithmCache, FindsWhatAnotherProcessChose) {
  const TempFolder folder;
  const fs::path file = folder.path() / "new" / "choices.jsonl";
  const std::string bytes("\0\xff\n\"x", 5);
  AlgorithmCache other(file);  // that has read it too early
  EXPECT_FALSE(other.find("key"));
  {
    AlgorithmCache cache(file);
    EXPECT_EQ(cache.find_or_choose("key",
                                   [&] {
                                     return AlgorithmCache::Choice{bytes, 2.5};
                                   })
                  ->algorithm,
              bytes);
  }
  EXPECT_EQ(other.find_or_choose("key", no_choice)->algorithm, bytes);
  const AlgorithmCache later(file);
  ASSERT_TRUE(later.find("key"));
  EXPECT_EQ(later.find("key")->algorithm, bytes);
  EXPECT_EQ(later.find("key")->microseconds, 2.5);
  EXPECT_FALSE(later.find("another key"));
}

TEST(AlgorithmCache, IgnoresWhatIsDamaged) {
  const TempFolder folder;
  const fs::path file = folder.path() / "choices.jsonl";
  const auto choose = [](std::string bytes) {
    return [=] { return AlgorithmCache::Choice{bytes, 1}; };
  };
  AlgorithmCache(file).find_or_choose("good", choose("abc"));
  AlgorithmCache(file).find_or_choose("flipped", choose("abc"));
  std::string text = read_file(file);
  text[text.rfind("616263")] = '7';
  text = "{\"key\": 3}\n[]\n\n\xfe\n" + text + "{\"key\": \"torn\", \"algor";
  std::ofstream(file) << text;

  AlgorithmCache cache(file);
  EXPECT_TRUE(cache.find("good"));
  EXPECT_FALSE(cache.find("flipped"));
  EXPECT_TRUE(cache.find_or_choose("flipped", choose("new")));
  EXPECT_EQ(AlgorithmCache(file).find("flipped")->algorithm, "new");
  EXPECT_TRUE(AlgorithmCache(file).find("good"));
  fs::remove(file);
  EXPECT_TRUE(cache.find_or_choose("after it was deleted", choose("x")));
  EXPECT_TRUE(AlgorithmCache(file).find("after it was deleted"));
}

TEST(AlgorithmCache, ChoosesNothingThatItCannotKeep) {
  EXPECT_FALSE(AlgorithmCache("/proc/none/choices.jsonl").find_or_choose("key", no_choice));
  EXPECT_FALSE(AlgorithmCache({}).find_or_choose("key", no_choice));
}

TEST(AlgorithmCache, LetsOneChooseForAll) {
  const TempFolder folder;
  const fs::path file = folder.path() / "choices.jsonl";
  std::atomic<int> chosen = 0;
  std::vector<std::string> results(4);
  std::vector<std::thread> threads;
  for (std::string& result : results) {
    threads.emplace_back([&] {
      AlgorithmCache cache(file);
      result = cache
                   .find_or_choose("key",
                                   [&] {
                                     std::this_thread::sleep_for(std::chrono::milliseconds(20));
                                     return AlgorithmCache::Choice{std::to_string(++chosen), 1};
                                   })
                   ->algorithm;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(chosen, 1);
  EXPECT_EQ(results, std::vector<std::string>(4, "1"));
}

TEST(Library, SaysWhatIsMissing) {
  cuda::Library library("a thing", "libskein_thing.so", 7, "install it");
  try {
    library.symbol("function");
    FAIL() << "it is there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_EQ(std::string(error.what()),
              "a GPU needs a thing, which does not load (libskein_thing.so.7: cannot open shared "
              "object file: No such file or directory): install it");
  }
  cuda::Library without("the C library", "libc.so", 6, "install it");
  EXPECT_NE(without.symbol("malloc"), nullptr);
  EXPECT_THROW(without.symbol("no_such_function"), Error);
}

// A strided matrix in memory of the device.
class Matrix {
 public:
  Matrix(DType dtype, int64_t rows, int64_t cols, int64_t offset, int64_t padding, uint32_t stream)
      : bytes_(test_device().allocate((rows * (cols + padding) + offset) * size_of(dtype))),
        view_{static_cast<char*>(bytes_) + offset * size_of(dtype), dtype, Shape{rows, cols},
              cols + padding} {
    op_test::GraphRun::fill(view_, random_tensor(dtype, {rows, cols}, stream).values);
  }
  ~Matrix() { test_device().release(bytes_); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  const View& view() const { return view_; }
  std::vector<double> values() const { return op_test::GraphRun::values_of(view_); }

 private:
  void* bytes_;
  View view_;
};

// A product, and everything that it reads.
struct Case {
  int64_t rows = 13, cols = 24, depth = 40;
  DType in = DType::kBF16, out = DType::kBF16;
  bool a_outer = false, b_outer = false, accumulate = false, bias = false;
  int64_t offset = 0, padding = 0;
};
class Problem {
 public:
  explicit Problem(const Case& c)
      : case_(c),
        a_(c.in, c.a_outer ? c.depth : c.rows, c.a_outer ? c.rows : c.depth, c.offset, c.padding,
           1),
        b_(c.in, c.b_outer ? c.depth : c.cols, c.b_outer ? c.cols : c.depth, c.offset, c.padding,
           2),
        c_(c.out, c.rows, c.cols, c.offset, c.padding, 3),
        bias_(c.in, 1, c.cols, c.offset, 0, 4),
        scratch_(test_device().allocate(cuda_matmul_scratch_bytes(c.cols))),
        before_(c_.values()) {}
  ~Problem() { test_device().release(scratch_); }

  // What C is afterwards.
  std::vector<double> run(CudaMatmuls& matmuls) {
    op_test::GraphRun::fill(c_.view(), before_);
    enqueue(matmuls, test_device().stream);
    test_device().synchronize();
    return c_.values();
  }
  void choose(CudaMatmuls& matmuls) {
    matmuls.choose(matmul(), scratch_, test_device().stream);
    test_device().synchronize();
  }
  void enqueue(CudaMatmuls& matmuls, void* stream) { matmuls.run(matmul(), scratch_, stream); }
  CudaMatmul matmul() const {
    const View &a = a_.view(), &b = b_.view(), &c = c_.view();
    CudaMatmul matmul{case_.rows, case_.cols, case_.depth};
    matmul.a = {a.data, a.dtype, a.row_stride, case_.a_outer};
    matmul.b = {b.data, b.dtype, b.row_stride, case_.b_outer};
    matmul.c = {c.data, c.dtype, c.row_stride, case_.accumulate};
    if (case_.bias) matmul.c.bias = bias_.view().data;
    matmul.c.bias_dtype = case_.in;
    return matmul;
  }
  std::vector<double> values() const { return c_.values(); }

  void expect_right(const std::vector<double>& got, const std::string& what) const {
    const std::vector<double> a = a_.values(), b = b_.values(), bias = bias_.values();
    const auto& [rows, cols, depth] = std::tie(case_.rows, case_.cols, case_.depth);
    for (int64_t i = 0; i < rows * cols; ++i) {
      const int64_t row = i / cols, col = i % cols;
      double want = case_.accumulate ? before_[i] : 0.0;
      if (case_.bias) want += bias[col];
      for (int64_t k = 0; k < depth; ++k) {
        want += (case_.a_outer ? a[k * rows + row] : a[row * depth + k]) *
                (case_.b_outer ? b[k * cols + col] : b[col * depth + k]);
      }
      const double allowed = (case_.out == DType::kBF16 ? 0x1p-8 * std::abs(want) : 0.0) + 2e-5;
      ASSERT_LE(std::abs(got[i] - want), allowed) << what << " at " << row << ", " << col;
    }
  }

 private:
  Case case_;
  Matrix a_, b_, c_, bias_;
  void* scratch_;
  std::vector<double> before_;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const int64_t padding : {0, 3}) {
    for (const DType in : {DType::kF32, DType::kBF16}) {
      for (const bool bias : {false, true}) {
        cases.push_back({.in = in, .out = in, .bias = bias, .offset = padding, .padding = padding});
        cases.push_back({.in = in, .out = DType::kF32, .bias = bias, .offset = padding});
      }
      cases.push_back({.in = in, .out = in, .b_outer = true, .offset = padding});
      cases.push_back({.in = in,
                       .out = DType::kF32,
                       .a_outer = true,
                       .b_outer = true,
                       .accumulate = true,
                       .padding = padding});
    }
  }
  return cases;
}

class CudaMatmulsTest : public testing::Test {
 protected:
  void SetUp() override { lt = {}; }
  void TearDown() override { lt = {}; }
  TempFolder folder;
  const fs::path file = folder.path() / "algorithms.jsonl";
  cuda_emulation::CublasLt& lt = cuda_emulation::cublas_lt();
};

TEST_F(CudaMatmulsTest, MeetsDoublePrecision) {
  CudaMatmuls measuring(file), taking({});
  for (const bool proposes : {true, false}) {
    lt.proposes = proposes;
    CudaMatmuls other({});
    int index = 0;
    for (const Case& one : all_cases()) {
      const std::string what = fmt::format("case {}{}", index++, proposes ? "" : " by our kernel");
      Problem problem(one);
      problem.expect_right(problem.run(proposes ? measuring : other), what);
      if (proposes) problem.expect_right(problem.run(taking), what + " without measuring");
    }
  }
}

TEST_F(CudaMatmulsTest, KeepsTheFastestAlgorithm) {
  Problem problem({.rows = 40, .cols = 40, .depth = 300, .out = DType::kF32});
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
TEST_F(CudaMatmulsTest, TakesWhatTheRunHasAdopted) {
  Problem problem({.rows = 40, .cols = 40, .depth = 300, .out = DType::kF32});
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

TEST_F(CudaMatmulsTest, ChoosingMultipliesNothing) {
  Problem problem({.rows = 40, .cols = 40, .depth = 300, .out = DType::kF32});
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

TEST_F(CudaMatmulsTest, MeasuringLeavesSumsAsTheyWere) {
  const Case accumulating = {
      .out = DType::kF32, .a_outer = true, .b_outer = true, .accumulate = true};
  Problem problem(accumulating);
  lt.microseconds[1] = 3000;
  CudaMatmuls measuring(file), taking({});
  const std::vector<double> once = problem.run(taking);
  EXPECT_EQ(lt.num_products, 1);
  EXPECT_EQ(problem.run(measuring), once);
  EXPECT_GT(lt.num_products, 10);
}

TEST_F(CudaMatmulsTest, TakesTheFirstProposalWhereAStreamCaptures) {
  Problem problem({.bias = true});
  CudaMatmuls matmuls(file);
  const auto stream = static_cast<cudaStream_t>(test_device().stream);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  problem.enqueue(matmuls, stream);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(lt.num_products, 1);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
  test_device().synchronize();
  problem.expect_right(problem.values(), "a graph");
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

TEST_F(CudaMatmulsTest, UsesNoAlgorithmThatTheLibraryDoesNotKnow) {
  Problem problem({});
  CudaMatmuls first(file);
  problem.run(first);
  const std::string key = parse_json(read_file(file), "the line")["key"];
  EXPECT_NE(key.find("emulated on the CPU, driver 13000, cuBLASLt 130100, 13x24x40 bf16"),
            std::string::npos)
      << key;
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
