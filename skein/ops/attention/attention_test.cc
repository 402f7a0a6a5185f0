#include "skein/ops/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "hwy/highway.h"
#include "hwy/targets.h"
#include "skein/ops/attention/cpu/attention_cpu.h"
#include "skein/ops/simd/cpu_kind.h"
#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using op_test::OpCase;
using op_test::Outputs;
using op_test::random_tensor;
using op_test::Tensor;
using op_test::Tensors;

struct Config {
  int64_t sequences = 1, sequence_length = 8, heads = 1, kv_heads = 1, head_dim = 4;
  bool causal = true;
  DType dtype = DType::kF32;
  std::vector<int64_t> boundaries = {};   // where documents begin, in every sequence
  std::vector<int64_t> boundary_of = {};  // one boundary of sequence n
  double scale = 0;                       // 0: 1 / sqrt(head_dim)

  int64_t tokens() const { return sequences * sequence_length; }
  double factor() const { return scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(head_dim)); }
  Attrs attrs() const {
    return {{"heads", heads},       {"kv_heads", kv_heads}, {"causal", causal},
            {"head_dim", head_dim}, {"scale", factor()},    {"sequence_length", sequence_length}};
  }
};

Tensor starts_of(const Config& config) {
  return op_test::make_tensor(DType::kI32, {config.tokens()}, [&](int64_t t) {
    // Every other sequence is shifted, so that sequences have different documents.
    const int64_t position = t % config.sequence_length, sequence = t / config.sequence_length;
    if (!config.boundary_of.empty()) {
      const int64_t boundary = config.boundary_of[sequence];
      return static_cast<double>(position >= boundary ? boundary : 0);
    }
    int64_t start = 0;
    for (const int64_t boundary : config.boundaries) {
      const int64_t moved = std::min(boundary + sequence % 2, config.sequence_length);
      if (moved <= position) start = std::max(start, moved);
    }
    return static_cast<double>(start);
  });
}

Tensors inputs_of(const Config& config) {
  const int64_t q_cols = config.heads * config.head_dim,
                kv_cols = config.kv_heads * config.head_dim;
  return {random_tensor(config.dtype, {config.tokens(), q_cols}, 1),
          random_tensor(config.dtype, {config.tokens(), kv_cols}, 2),
          random_tensor(config.dtype, {config.tokens(), kv_cols}, 3), starts_of(config)};
}

// The naive computation in double precision.
class Reference {
 public:
  Reference(const Config& config, const Tensor& q, const Tensor& k, const Tensor& v,
            const Tensor& starts)
      : config_(config), q_(q), k_(k), v_(v), starts_(starts) {}

  Outputs forward() const {
    const int64_t dim = config_.head_dim;
    Outputs result = {std::vector<double>(q_.values.size()),
                      std::vector<double>(config_.tokens() * config_.heads)};
    for (int64_t row = 0; row < config_.tokens(); ++row) {
      for (int64_t head = 0; head < config_.heads; ++head) {
        const auto [p, lse] = probabilities(row, head);
        result[1][row * config_.heads + head] = lse;
        for (size_t j = 0; j < p.size(); ++j) {
          const double* value = at(v_, first_row(row) + j, kv_head(head));
          double* out = &result[0][(row * config_.heads + head) * dim];
          for (int64_t d = 0; d < dim; ++d) out[d] += p[j] * value[d];
        }
      }
    }
    return result;
  }

  Outputs backward(const Tensor& grad, const Tensor& out) const {
    const int64_t dim = config_.head_dim;
    Outputs result = {std::vector<double>(q_.values.size()), std::vector<double>(k_.values.size()),
                      std::vector<double>(v_.values.size())};
    for (int64_t row = 0; row < config_.tokens(); ++row) {
      for (int64_t head = 0; head < config_.heads; ++head) {
        const std::vector<double> p = probabilities(row, head).first;
        const double* dout = at(grad, row, head);
        const double delta = dot(dout, at(out, row, head));
        double* dq = &result[0][(row * config_.heads + head) * dim];
        for (size_t j = 0; j < p.size(); ++j) {
          const int64_t key = first_row(row) + j;
          const double* value = at(v_, key, kv_head(head));
          const double ds = p[j] * (dot(dout, value) - delta) * config_.factor();
          const int64_t to = (key * config_.kv_heads + kv_head(head)) * dim;
          for (int64_t d = 0; d < dim; ++d) {
            dq[d] += ds * at(k_, key, kv_head(head))[d];
            result[1][to + d] += ds * at(q_, row, head)[d];
            result[2][to + d] += p[j] * dout[d];
          }
        }
      }
    }
    return result;
  }

 private:
  int64_t kv_head(int64_t head) const { return head / (config_.heads / config_.kv_heads); }
  int64_t first_row(int64_t row) const { return row - row % config_.sequence_length; }
  const double* at(const Tensor& tensor, int64_t row, int64_t head) const {
    return &tensor.values[row * tensor.shape.cols() + head * config_.head_dim];
  }
  double dot(const double* a, const double* b) const {
    double sum = 0;
    for (int64_t d = 0; d < config_.head_dim; ++d) sum += a[d] * b[d];
    return sum;
  }
  // The probability of every key of the sequence, 0 if it is not visible; and the log of the sum.
  std::pair<std::vector<double>, double> probabilities(int64_t row, int64_t head) const {
    std::vector<double> p(config_.sequence_length);
    double sum = 0, max = -std::numeric_limits<double>::infinity();
    const auto visible = [&](int64_t key) {
      return starts_[key] == starts_[row] && (!config_.causal || key <= row);
    };
    for (int64_t j = 0; j < config_.sequence_length; ++j) {
      const int64_t key = first_row(row) + j;
      p[j] = visible(key) ? config_.factor() * dot(at(q_, row, head), at(k_, key, kv_head(head)))
                          : -std::numeric_limits<double>::infinity();
      max = std::max(max, p[j]);
    }
    for (double& value : p) sum += value = std::exp(value - max);
    for (double& value : p) value /= sum;
    return {p, max + std::log(sum)};
  }

  const Config& config_;
  const Tensor &q_, &k_, &v_, &starts_;
};

double tolerance_of(DType dtype) { return dtype == DType::kBF16 ? 6e-3 : 3e-6; }

void check_forward(const Config& config, double tolerance = 0) {
  SCOPED_TRACE(fmt::format("S {} heads {}/{} dim {} causal {} documents {}", config.sequence_length,
                           config.heads, config.kv_heads, config.head_dim, config.causal,
                           config.boundaries.size() + 1));
  const OpCase test{.op = &kAttention,
                    .attrs = config.attrs(),
                    .inputs = inputs_of(config),
                    .reference =
                        [&](const Tensors& in) {
                          return Reference(config, in[0], in[1], in[2], in[3]).forward();
                        },
                    .tolerance = tolerance > 0 ? tolerance : tolerance_of(config.dtype)};
  op_test::check_forward(test, test.reference(test.inputs));
}

void check_backward(const Config& config) {
  SCOPED_TRACE(fmt::format("backward: S {} heads {}/{} dim {} causal {} documents {}",
                           config.sequence_length, config.heads, config.kv_heads, config.head_dim,
                           config.causal, config.boundaries.size() + 1));
  const Tensors in = inputs_of(config);
  const Outputs forward = Reference(config, in[0], in[1], in[2], in[3]).forward();
  const auto tensor = [](DType dtype, const Shape& shape, const std::vector<double>& values) {
    return op_test::make_tensor(dtype, shape, [&](int64_t i) { return values[i]; });
  };
  const OpCase test{
      .op = &kAttentionBackward,
      .attrs = config.attrs(),
      .inputs = {random_tensor(config.dtype, in[0].shape, 4), in[0], in[1], in[2],
                 tensor(config.dtype, in[0].shape, forward[0]),
                 tensor(DType::kF32, {config.tokens(), config.heads}, forward[1]), in[3]},
      .reference =
          [&](const Tensors& all) {
            return Reference(config, all[1], all[2], all[3], all[6]).backward(all[0], all[4]);
          },
      .tolerance = config.dtype == DType::kBF16 ? 1e-2 : 1e-5};
  op_test::check_forward(test, test.reference(test.inputs));
}

void check_both(const Config& config) {
  check_forward(config);
  // The gradient of the only key is 0, which has no relative error.
  if (config.sequence_length > 1) check_backward(config);
}

TEST(Attention, MatchesTheDefinition) {
  using Sizes = std::vector<int64_t>;
  const bool slow = op_test::test_device().is_slow;
  const Sizes head_dims = slow ? Sizes{7, 80} : Sizes{1, 7, 24, 40, 64, 80, 96, 128};
  const Sizes lengths = slow ? Sizes{1, 65, 128} : Sizes{1, 2, 63, 64, 65, 128, 300};
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const bool causal : {true, false}) {
      for (const int64_t head_dim : head_dims) {
        check_both({.sequences = 2,
                    .sequence_length = 71,
                    .heads = 1,
                    .head_dim = head_dim,
                    .causal = causal,
                    .dtype = dtype,
                    .boundaries = {37}});
      }
      for (const int64_t length : lengths) {
        check_both({.sequences = 3,
                    .sequence_length = length,
                    .heads = 4,
                    .kv_heads = 2,
                    .head_dim = 16,
                    .causal = causal,
                    .dtype = dtype});
      }
    }
  }
}

// Around the edges of blocks of 64, 128 and 192 queries, with heads of each size that kernels have.
TEST(Attention, SeveralBlocksOfWideHeads) {
  using Sizes = std::vector<int64_t>;
  const bool slow = op_test::test_device().is_slow;
  const Sizes lengths = slow ? Sizes{193, 321} : Sizes{127, 129, 191, 192, 193, 256, 257, 385, 513};
  for (const int64_t head_dim : {64, 128}) {
    for (const bool causal : {true, false}) {
      for (const int64_t length : lengths) {
        Config config = {.sequence_length = length,
                         .head_dim = head_dim,
                         .causal = causal,
                         .dtype = DType::kBF16};
        check_both(config);
        config.boundaries = {1, length / 3, length - 64};
        check_both(config);
      }
    }
  }
}

TEST(Attention, SharesKeyValueHeads) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t kv_heads : {1, 2, 3, 6}) {
      check_both({.sequences = 2,
                  .sequence_length = 70,
                  .heads = 6,
                  .kv_heads = kv_heads,
                  .head_dim = 20,
                  .dtype = dtype,
                  .boundaries = {1, 66}});
    }
  }
  // In more than 128 rows.
  check_both({.sequence_length = 200,
              .heads = 2,
              .head_dim = 128,
              .dtype = DType::kBF16,
              .boundaries = {130, 150}});
}

TEST(Attention, StopsAtEveryDocumentBoundary) {
  // Tests every boundary, or where that would take minutes, those around the edges of blocks.
  std::vector<int64_t> boundaries = {1, 2, 31, 32, 33, 63, 64, 65, 66, 96, 127, 128, 129, 130};
  if (!op_test::test_device().is_slow) {
    boundaries.resize(130);
    std::iota(boundaries.begin(), boundaries.end(), 1);
  }
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const bool causal : {true, false}) {
      check_both({.sequences = static_cast<int64_t>(boundaries.size()),
                  .sequence_length = 130,
                  .head_dim = 3,
                  .causal = causal,
                  .dtype = dtype,
                  .boundary_of = boundaries});
    }
  }
}

TEST(Attention, ManyDocumentsInARow) {
  std::vector<int64_t> every_third, uneven = {1, 2, 5, 64, 128, 129, 200, 260};
  for (int64_t at = 3; at < 330; at += 3) every_third.push_back(at);
  for (const auto& boundaries : {every_third, uneven}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const bool causal : {true, false}) {
        check_both({.sequences = 2,
                    .sequence_length = 330,
                    .head_dim = 12,
                    .causal = causal,
                    .dtype = dtype,
                    .boundaries = boundaries});
      }
    }
  }
}

// Several pieces of keys, whose dq are added: on the CPU a piece has 1,024. Elsewhere many blocks.
TEST(Attention, LongSequences) {
  const int64_t unit = op_test::test_device().is_slow ? 30 : 100;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    check_both({.sequence_length = 21 * unit, .head_dim = 3, .dtype = dtype});
    check_both({.sequence_length = 11 * unit, .head_dim = 3, .causal = false, .dtype = dtype});
    check_both({.sequence_length = 21 * unit,
                .head_dim = 3,
                .causal = false,
                .dtype = dtype,
                .boundaries = {2 * unit, 10 * unit, 11 * unit, 19 * unit}});
  }
}

// Scores of hundreds: the running maximum must be subtracted before exp. Rounding a score of s
// changes its probability by s * 2^-24.
TEST(Attention, LargeScores) {
  for (const double scale : {3.0, 20.0}) {
    check_forward({.sequence_length = 150, .head_dim = 64, .scale = scale}, 1e-4);
    // Offsets move in later blocks, too.
    check_forward({.sequence_length = 400, .head_dim = 64, .dtype = DType::kBF16, .scale = scale});
  }
}

TEST(Attention, DerivativeRule) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const bool causal : {true, false}) {
      const Config config = {.sequences = 2,
                             .sequence_length = 18,
                             .heads = 4,
                             .kv_heads = 2,
                             .head_dim = 6,
                             .causal = causal,
                             .dtype = dtype,
                             .boundaries = {5, 11}};
      op_test::check_op({.op = &kAttention,
                         .attrs = config.attrs(),
                         .inputs = inputs_of(config),
                         .reference =
                             [&](const Tensors& in) {
                               return Reference(config, in[0], in[1], in[2], in[3]).forward();
                             },
                         .tolerance = tolerance_of(dtype),
                         .grad_tolerance_bf16 = 2e-2});
    }
  }
}

// Values of another document change no bit, though both documents lie in one block.
TEST(Attention, DocumentsAreStrangers) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const Config config = {
        .sequence_length = 90, .head_dim = 16, .dtype = dtype, .boundaries = {30, 60}};
    const OpCase test{.op = &kAttention, .attrs = config.attrs(), .inputs = inputs_of(config)};
    OpCase changed = test;
    for (int operand = 0; operand < 3; ++operand) {
      for (int64_t i = 0; i < 90 * 16; ++i) {
        if (i / 16 < 30 || i / 16 >= 60) changed.inputs[operand].values[i] *= -8;
      }
    }
    std::vector<double> results[2];
    for (int i = 0; i < 2; ++i) {
      const op_test::BuiltCase built = op_test::build(i == 0 ? test : changed, 2);
      const op_test::GraphRun run(built.graph, built.inputs, {});
      const std::vector<double> o = run.read(built.graph.nodes()[0].outputs[0]);
      results[i].assign(o.begin() + 30 * 16, o.begin() + 60 * 16);
    }
    EXPECT_TRUE(results[0] == results[1]);
  }
}

// The kernels for CPUs with fewer instructions than this one.
class AttentionPortable : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    if ((hwy::SupportedTargets() & GetParam()) == 0) GTEST_SKIP() << "not on this machine";
    const auto* native = &attention_cpu::kernels_for(DType::kF32, attention_cpu::best_products());
    const bool is_best = (hwy::SupportedTargets() & HWY_TARGETS & (GetParam() - 1)) == 0;
    hwy::SetSupportedTargetsForTest(GetParam());
    detect_cpu_kind_again();
    EXPECT_EQ(native == &attention_cpu::kernels_for(DType::kF32, attention_cpu::best_products()),
              is_best);
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    detect_cpu_kind_again();
  }
};

TEST_P(AttentionPortable, MatchesTheDefinition) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t head_dim : {7, 40, 64}) {
      check_both({.sequence_length = 150,
                  .heads = 2,
                  .kv_heads = 1,
                  .head_dim = head_dim,
                  .dtype = dtype,
                  .boundaries = {61, 100}});
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, AttentionPortable,
                         testing::Values<int64_t>(HWY_AVX3, HWY_AVX2, HWY_SSE4, HWY_SCALAR),
                         [](const auto& info) { return std::string(hwy::TargetName(info.param)); });

// Products of vectors on a CPU that has tiles, and tiles with dims that fill none.
TEST(Attention, EachKindOfProductMatchesTheDefinition) {
  for (const char* kind : {"amx", "avx512-bf16", "avx512"}) {
    if (common_cpu_kind(std::vector<std::string>{kind, best_cpu_kind()}) != kind) continue;
    limit_cpu_kind(kind);
    for (const int64_t head_dim : {7, 16, 40, 64, 96}) {
      for (const int64_t length : {20, 64, 150, 257}) {
        SCOPED_TRACE(fmt::format("{}, head_dim {}, {} positions", kind, head_dim, length));
        check_both({.sequence_length = length,
                    .heads = 2,
                    .kv_heads = 1,
                    .head_dim = head_dim,
                    .dtype = DType::kBF16,
                    .boundaries = {length / 3, length / 2 + 1}});
      }
    }
    limit_cpu_kind("auto");
  }
}

TEST(Attention, ProductsOfBF16AreForBF16) {
  using attention_cpu::kernels_for, attention_cpu::Products;
  if (attention_cpu::best_products() == Products::kFp32) GTEST_SKIP() << "not on this machine";
  EXPECT_NE(&kernels_for(DType::kBF16, attention_cpu::best_products()),
            &kernels_for(DType::kBF16, Products::kFp32));
  EXPECT_EQ(&kernels_for(DType::kF32, attention_cpu::best_products()),
            &kernels_for(DType::kF32, Products::kFp32));
}

}  // namespace
}  // namespace skein
