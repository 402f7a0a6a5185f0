#include "skein/ops/matmul/matmul_cpu.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <array>
#include <atomic>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "skein/base/error.h"
#include "skein/ops/matmul/matmul_blocking.h"
#include "skein/ops/matmul/matmul_ceiling.h"
#include "skein/ops/matmul/matmul_tiles-inl.h"
#include "tests/ops/emulated_tiles.h"

namespace skein {
namespace {

enum class Form { kForward, kInputGradient, kWeightGradient };
constexpr Form kForms[] = {Form::kForward, Form::kInputGradient, Form::kWeightGradient};

// A matrix whose rows are `padding` elements apart; the padding is NaN.
struct Matrix {
  Matrix(DType dtype, int64_t rows, int64_t cols, int64_t padding, uint32_t stream)
      : dtype(dtype), row_stride(cols + padding), bytes(rows * row_stride * size_of(dtype), 0xff) {
    uint32_t state = stream;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < cols; ++col) {
        state = state * 1664525 + 1013904223;
        set(row, col, static_cast<float>(state >> 8) * 0x1p-24f - 0.5f);
      }
    }
  }
  double at(int64_t row, int64_t col) const {
    const int64_t i = row * row_stride + col;
    if (dtype == DType::kBF16) {
      return static_cast<float>(reinterpret_cast<const bfloat16*>(bytes.data())[i]);
    }
    return reinterpret_cast<const float*>(bytes.data())[i];
  }
  void set(int64_t row, int64_t col, float value) {
    const int64_t i = row * row_stride + col;
    if (dtype == DType::kBF16) {
      reinterpret_cast<bfloat16*>(bytes.data())[i] = bfloat16(value);
    } else {
      reinterpret_cast<float*>(bytes.data())[i] = value;
    }
  }

  DType dtype;
  int64_t row_stride;
  std::vector<uint8_t> bytes;
};

// One product in the form that linear (or a derivative) needs, with all its operands.
struct Problem {
  Problem(Form form, DType dtype, DType out, int64_t rows, int64_t cols, int64_t depth,
          int64_t padding, bool accumulate, bool with_bias)
      : a_outer(form == Form::kWeightGradient),
        b_outer(form != Form::kForward),
        a(dtype, a_outer ? depth : rows, a_outer ? rows : depth, padding, 1),
        b(dtype, b_outer ? depth : cols, b_outer ? cols : depth, padding, 2),
        c(out, rows, cols, padding, 3),
        bias(dtype, 1, cols, 0, 4) {
    matmul = {dtype, rows, cols, 1, {}, {c.bytes.data(), out, c.row_stride, accumulate}};
    matmul.terms[0] = {
        depth, {a.bytes.data(), a.row_stride, a_outer}, {b.bytes.data(), b.row_stride, b_outer}};
    if (with_bias) {
      matmul.c.bias = bias.bytes.data();
      matmul.c.bias_dtype = dtype;
    }
  }
  double want(int64_t row, int64_t col) const {
    double sum = matmul.c.accumulate ? c.at(row, col) : 0.0;
    if (matmul.c.bias) sum += bias.at(0, col);
    for (int64_t k = 0; k < matmul.terms[0].depth; ++k) {
      sum += (a_outer ? a.at(k, row) : a.at(row, k)) * (b_outer ? b.at(k, col) : b.at(col, k));
    }
    return sum;
  }

  bool a_outer, b_outer;
  Matrix a, b, c, bias;
  Matmul matmul;
};

// Runs in scratch memory of exactly the requested size, between guards; returns C's bytes.
std::vector<uint8_t> run(const Problem& problem, const MatmulKernel& kernel, int threads) {
  constexpr int64_t kGuard = 128;
  Matmul matmul = problem.matmul;
  std::vector<uint8_t> out = problem.c.bytes;
  matmul.c.out = out.data();
  const int64_t scratch_bytes = matmul_scratch_bytes(matmul, kernel);
  std::vector<uint8_t> memory(scratch_bytes + 2 * kGuard + 64, 0xff);
  uint8_t* scratch = memory.data() + kGuard;
  scratch += (64 - reinterpret_cast<uintptr_t>(scratch) % 64) % 64;
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  run_matmul(matmul, kernel, scratch);
  omp_set_num_threads(before);
  for (uint8_t* byte = memory.data(); byte < memory.data() + memory.size(); ++byte) {
    if (byte == scratch) byte += scratch_bytes;
    if (*byte != 0xff) {
      ADD_FAILURE() << "wrote " << byte - scratch << " bytes into " << scratch_bytes
                    << " bytes of scratch";
      break;
    }
  }
  return out;
}

void expect_right(const Problem& problem, const MatmulKernel& kernel, const std::string& what) {
  Problem result = problem;
  result.c.bytes = run(problem, kernel, 1);
  EXPECT_TRUE(result.c.bytes == run(problem, kernel, 2)) << what << ": 2 threads";
  EXPECT_TRUE(result.c.bytes == run(problem, kernel, 3)) << what << ": 3 threads";
  const Matmul& matmul = problem.matmul;
  const double depth = static_cast<double>(matmul.terms[0].depth);
  const double rounding = matmul.c.dtype == DType::kBF16 ? 0x1p-8 : 0.0;
  for (int64_t row = 0; row < matmul.rows; ++row) {
    for (int64_t col = 0; col < matmul.cols; ++col) {
      const double want = problem.want(row, col), got = result.c.at(row, col);
      const double allowed = rounding * std::abs(want) + 1e-7 * depth + 1e-6;
      if (!(std::abs(got - want) <= allowed)) {
        FAIL() << what << " [" << row << ", " << col << "] is " << got << ", expected " << want;
      }
    }
  }
  Matrix before = problem.c;
  for (int64_t row = 0; row < matmul.rows; ++row) {
    for (int64_t col = 0; col < matmul.cols; ++col) {
      before.set(row, col, 0);
      result.c.set(row, col, 0);
    }
  }
  EXPECT_TRUE(before.bytes == result.c.bytes) << what << " wrote between the rows of C";
}

std::vector<std::pair<std::string, MatmulKernel>> kernels(DType dtype) {
  std::vector<std::pair<std::string, MatmulKernel>> list = {
      {"portable", portable_matmul_kernel(dtype)}};
  if (const auto kernel = avx512_matmul_kernel(dtype)) list.emplace_back("avx512", *kernel);
  if (const auto kernel = amx_matmul_kernel(dtype)) list.emplace_back("amx", *kernel);
  return list;
}

TEST(MatmulCpu, MeetsDoublePrecision) {
  struct Size {
    int64_t rows, cols, depth;
  };
  const Size sizes[] = {{1, 1, 1},     {1, 53, 37},   {129, 53, 37},  {7, 64, 2},
                        {97, 257, 64}, {5, 130, 301}, {100, 300, 515}};
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const auto& [name, kernel] : kernels(dtype)) {
      for (const Form form : kForms) {
        for (const auto& [rows, cols, depth] : sizes) {
          for (const int64_t padding : {0, 5}) {
            const std::string what =
                fmt::format("{} {} form {} {}x{}x{} padding {}", name, dtype_name(dtype),
                            static_cast<int>(form), rows, cols, depth, padding);
            const bool sum = form == Form::kWeightGradient;
            const DType out = sum ? DType::kF32 : dtype;
            expect_right(
                Problem(form, dtype, out, rows, cols, depth, padding, sum, padding && !sum), kernel,
                what);
          }
        }
      }
    }
  }
}

TEST(MatmulCpu, StoresBF16ProductsInF32) {
  for (const auto& [name, kernel] : kernels(DType::kBF16)) {
    expect_right(Problem(Form::kForward, DType::kBF16, DType::kF32, 70, 90, 40, 1, false, true),
                 kernel, name);
  }
}

// Sums that are cut, and blocks of B and of A that are packed one after another.
TEST(MatmulCpu, MeetsDoublePrecisionWhereItBlocks) {
  for (const auto& [name, kernel] : kernels(DType::kBF16)) {
    for (const auto& [rows, cols, depth] :
         {std::array<int64_t, 3>{3, 40, 5003}, {1300, 3, 2100}, {2, 1300, 2049}}) {
      expect_right(Problem(Form::kWeightGradient, DType::kBF16, DType::kF32, rows, cols, depth, 1,
                           true, false),
                   kernel, fmt::format("{} {}x{}x{}", name, rows, cols, depth));
    }
    for (const auto& [rows, cols, depth] : {std::array<int64_t, 3>{2, 700, 9001},
                                            {130, 5, 33000},
                                            {3, 300, 33000},
                                            {250, 530, 2100}}) {
      expect_right(Problem(Form::kInputGradient, DType::kBF16, DType::kBF16, rows, cols, depth, 0,
                           false, false),
                   kernel, fmt::format("{} {}x{}x{}", name, rows, cols, depth));
    }
  }
}

std::vector<uint32_t> packed_b(const Problem& problem, const MatmulKernel& kernel, int threads) {
  const Matmul& matmul = problem.matmul;
  const int64_t words = matmul_packed_b_words(kernel, matmul.cols, matmul.terms[0].depth);
  std::vector<uint32_t> packed(static_cast<size_t>(words), 0xffffffff);
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  pack_matmul_b(matmul, kernel, packed.data());
  omp_set_num_threads(before);
  return packed;
}

// A row's sums do not depend on the other rows of the product, nor on when B was packed.
TEST(MatmulCpu, APackedBGivesTheSameBitsToAnyNumberOfRows) {
  constexpr int64_t kRows = 130;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const auto& [name, kernel] : kernels(dtype)) {
      for (const auto& [cols, depth] :
           {std::pair<int64_t, int64_t>{53, 37}, {300, 64}, {16, 515}, {70, 4100}}) {
        const Problem whole(Form::kForward, dtype, dtype, kRows, cols, depth, 3, false, true);
        const std::vector<uint8_t> want = run(whole, kernel, 2);
        const std::vector<uint32_t> packed = packed_b(whole, kernel, 1);
        EXPECT_TRUE(packed == packed_b(whole, kernel, 3)) << name;
        if (cols > 256) {  // packed in pieces, as a large weight is
          Problem rest = whole;
          rest.matmul.cols -= 256;
          rest.matmul.terms[0].b.data =
              whole.b.bytes.data() + 256 * whole.b.row_stride * size_of(dtype);
          const std::vector<uint32_t> last = packed_b(rest, kernel, 2);
          EXPECT_TRUE(std::equal(last.begin(), last.end(),
                                 packed.begin() + matmul_packed_b_words(kernel, 256, depth)))
              << name;
        }
        for (const int64_t rows : {1, 2, 33, 130}) {
          Problem some = whole;
          some.matmul.rows = rows;
          some.matmul.packed_b = packed.data();
          some.matmul.terms[0].b = {};
          const std::vector<uint8_t> got = run(some, kernel, 2);
          const int64_t bytes = ((rows - 1) * whole.c.row_stride + cols) * size_of(dtype);
          EXPECT_TRUE(std::equal(got.begin(), got.begin() + bytes, want.begin()))
              << fmt::format("{} {} {} rows {}x{}", name, dtype_name(dtype), rows, cols, depth);
        }
      }
    }
  }
}

// The first `depth` elements of an input gradient's sums become a term of their own.
void split_in_terms(Problem& problem, int64_t depth) {
  Matmul& matmul = problem.matmul;
  MatmulTerm& first = matmul.terms[0];
  MatmulTerm& second = matmul.terms[1];
  matmul.num_terms = 2;
  second = first;
  first.depth = depth;
  second.depth -= depth;
  second.a.data = static_cast<const char*>(first.a.data) + depth * size_of(matmul.dtype);
  second.b.data =
      static_cast<const char*>(first.b.data) + depth * first.b.row_stride * size_of(matmul.dtype);
}

// Terms make one sum, rounded once, as if they were adjacent.
TEST(MatmulCpu, AddsTermsBeforeItRounds) {
  constexpr int64_t kRows = 20, kCols = 70, kDepth = 112;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const auto& [name, kernel] : kernels(dtype)) {
      const Problem whole(Form::kInputGradient, dtype, dtype, kRows, kCols, kDepth, 0, false,
                          false);
      Problem split = whole;
      split_in_terms(split, kernel.block_steps == 1 ? 18 : 2 * kMatmulDepthGroup);
      EXPECT_TRUE(run(whole, kernel, 1) == run(split, kernel, 2)) << name;
    }
  }
}

// A product of two terms is not cut: its sums are one chain.
TEST(MatmulCpu, SumsThatAreCutStayOneChain) {
  // The sums of the second take more than are kept at a time: several bands of rows.
  const std::array<int64_t, 3> sizes[] = {{200, 530, 4500}, {1100, 4100, 2100}};
  for (const auto& [rows, cols, depth] : sizes) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const auto& [name, kernel] : kernels(dtype)) {
        const Problem cut(Form::kInputGradient, dtype, DType::kF32, rows, cols, depth, 0, false,
                          false);
        Problem whole = cut;
        split_in_terms(whole, kernel.block_steps == 1 ? 300 : 10 * kMatmulDepthGroup);
        EXPECT_TRUE(run(cut, kernel, 2) == run(whole, kernel, 2)) << name << ", " << rows;
      }
    }
  }
}

// A large C that begins with a cache line is streamed where the kernel can.
TEST(MatmulCpu, RowsThatAreStreamedAreTheSame) {
  constexpr int64_t kLine = 64;
  const int64_t rows = 8192 * std::max(omp_get_max_threads(), 1) + 4;
  for (const DType out : {DType::kBF16, DType::kF32}) {
    const int64_t cols = out == DType::kBF16 ? 1120 : 1104;
    for (const auto& named : kernels(DType::kBF16)) {
      const std::string& name = named.first;
      const MatmulKernel& kernel = named.second;
      Problem problem(Form::kForward, DType::kBF16, out, rows, cols, 40, 32, out == DType::kF32,
                      out == DType::kBF16);
      problem.matmul.c.from_zero = out == DType::kF32;
      const auto result = [&](int64_t offset) {
        std::vector<uint8_t> memory(problem.c.bytes.size() + 2 * kLine, 0xff);
        const auto address = reinterpret_cast<uintptr_t>(memory.data());
        uint8_t* c = memory.data() + (kLine - address % kLine) + offset;
        std::copy(problem.c.bytes.begin(), problem.c.bytes.end(), c);
        Matmul matmul = problem.matmul;
        matmul.c.out = c;
        EXPECT_EQ(matmul_cpu::choose_blocking(matmul, kernel).stream, name == "amx" && offset == 0);
        std::vector<uint8_t> scratch(matmul_scratch_bytes(matmul, kernel) + kLine);
        run_matmul(matmul, kernel, scratch.data());
        return std::vector<uint8_t>(c, c + problem.c.bytes.size());
      };
      EXPECT_TRUE(result(0) == result(16)) << name << ", " << dtype_name(out);
    }
  }
}

// A kernel that keeps A in L1 takes rows by themselves, in passes: the same sums.
TEST(MatmulCpu, RowsThatGoByThemselvesAreTheSame) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (auto [name, kernel] : kernels(dtype)) {
      for (const auto& [rows, cols, depth] :
           {std::array<int64_t, 3>{97, 530, 4096}, {33, 300, 2080}, {250, 70, 64}}) {
        for (const bool two_terms : {false, true}) {
          Problem problem(Form::kInputGradient, dtype, dtype, rows, cols, depth, 0, false, false);
          if (two_terms) split_in_terms(problem, kMatmulDepthGroup);
          kernel.keeps_a = false;
          const std::vector<uint8_t> want = run(problem, kernel, 1);
          kernel.keeps_a = true;
          EXPECT_TRUE(run(problem, kernel, 2) == want) << name << " " << rows << " " << two_terms;
        }
      }
    }
  }
}

// The kernel of tiles on what emulates them, with the packing of AVX-512.
TEST(MatmulCpu, EmulatedTilesMeetDoublePrecision) {
  if (!avx512_matmul_kernel(DType::kBF16)) GTEST_SKIP() << "no AVX512-BF16 on this machine";
  MatmulKernel kernel = avx512_block_kernel();
  kernel.keeps_a = true;
  kernel.accumulate = tiles::accumulate<test::EmulatedTiles>;
  kernel.begin = test::EmulatedTiles::begin;
  kernel.end = test::EmulatedTiles::end;
  for (const Form form : kForms) {
    const DType out = form == Form::kWeightGradient ? DType::kF32 : DType::kBF16;
    for (const auto& [rows, cols, depth] :
         {std::array<int64_t, 3>{97, 70, 37}, {33, 130, 2080}, {5, 64, 64}, {170, 70, 2080}}) {
      expect_right(
          Problem(form, DType::kBF16, out, rows, cols, depth, 5, out == DType::kF32, false), kernel,
          fmt::format("form {} {}x{}x{}", static_cast<int>(form), rows, cols, depth));
    }
  }
}

TEST(MatmulCpu, KeepsNanAndInfinity) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const auto& [name, kernel] : kernels(dtype)) {
      Problem problem(Form::kForward, dtype, dtype, 3, 20, 6, 0, false, false);
      problem.a.set(1, 2, std::nanf(""));
      problem.a.set(2, 2, INFINITY);
      problem.matmul.terms[0].a.data = problem.a.bytes.data();
      Problem result = problem;
      result.c.bytes = run(problem, kernel, 1);
      EXPECT_TRUE(std::isfinite(result.c.at(0, 0))) << name;
      EXPECT_TRUE(std::isnan(result.c.at(1, 0))) << name;
      EXPECT_TRUE(std::isinf(result.c.at(2, 0))) << name;
    }
  }
}

// The shapes of training, bit for bit with 1 and with 2 threads.
TEST(MatmulCpu, DoesNotDependOnThreadsAtTrainingShapes) {
  struct Size {
    int64_t tokens, out, in;
  };
  const Size sizes[] = {{8192, 512, 512},  {1024, 1536, 512}, {1024, 2816, 512},
                        {4096, 512, 1408}, {1024, 4096, 512}, {1024, 2304, 768},
                        {1024, 768, 2048}, {1024, 32000, 768}};
  for (const auto& [tokens, out, in] : sizes) {
    for (const Form form : kForms) {
      const bool sum = form == Form::kWeightGradient;
      const int64_t rows = sum ? out : tokens, cols = form == Form::kForward ? out : in;
      const int64_t depth = form == Form::kForward ? in : sum ? tokens : out;
      const Problem problem(form, DType::kBF16, sum ? DType::kF32 : DType::kBF16, rows, cols, depth,
                            0, sum, false);
      const MatmulKernel kernel = best_matmul_kernel(DType::kBF16);
      EXPECT_TRUE(run(problem, kernel, 1) == run(problem, kernel, 2))
          << tokens << " tokens, " << in << " -> " << out << ", form " << static_cast<int>(form);
    }
  }
}

// The yardstick must not flatter.
TEST(MatmulCeiling, IsTheBetterOfOurProductAndOneDnns) {
  EXPECT_EQ((MatmulCeiling{.own = 2e9, .onednn = 3e9}.flops()), 3e9);
  EXPECT_EQ((MatmulCeiling{.own = 2e9, .onednn = 0}.flops()), 2e9);
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const MatmulCeiling ceiling = measure_matmul_ceiling(dtype, 0.02);
    EXPECT_GT(ceiling.own, 0) << dtype_name(dtype);
    EXPECT_GT(ceiling.onednn, 0) << dtype_name(dtype);
  }
}

// Threads that compute all the time, three for each core, leave the measured ones a quarter of
// their time. Half leaves room for caches and hyperthreads.
TEST(MatmulCeiling, BusyProcessesDoNotLowerIt) {
  const double quiet = measure_own_matmul_flops(DType::kF32, 0.1);
  std::atomic<bool> done = false;
  std::vector<std::thread> busy;
  for (int i = 0; i < 3 * omp_get_num_procs(); ++i) {
    busy.emplace_back([&] {
      while (!done) std::atomic_signal_fence(std::memory_order_seq_cst);
    });
  }
  const double beside = measure_own_matmul_flops(DType::kF32, 0.1);
  done = true;
  for (std::thread& thread : busy) thread.join();
  EXPECT_GT(beside, 0.5 * quiet);
}

}  // namespace
}  // namespace skein
