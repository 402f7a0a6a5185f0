#include "skein/ops/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/ops/attention_reference.h"

namespace skein {
namespace {

using namespace op_test::attention;  // NOLINT(google-build-using-namespace)
using op_test::OpCase;
using op_test::Outputs;
using op_test::Tensors;

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

// Walks over several blocks of 64, and of 128, in each head of a group and in each sequence, whose
// documents begin in either half of a block.
TEST(Attention, GroupsOfWideHeads) {
  check_both({.sequences = 2,
              .sequence_length = 200,
              .heads = 2,
              .head_dim = 64,
              .dtype = DType::kBF16,
              .boundary_of = {90, 150}});
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
  // More blocks than a GPU's kernels have places for, three times over.
  check_both({.sequence_length = 14 * 64, .head_dim = 128, .dtype = DType::kBF16});
}

// On CPUs packed keys stay from one unit of work to the next, of up to 1,024 positions: several
// heads and sequences of several units each, and more positions than stay.
TEST(Attention, ManyHeadsOfManyBlocks) {
  const int64_t length = op_test::test_device().is_slow ? 300 : 1100;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    check_both({.sequences = 2,
                .sequence_length = length,
                .heads = 4,
                .kv_heads = 2,
                .head_dim = 4,
                .dtype = dtype,
                .boundaries = {length / 4, length - 90}});
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

}  // namespace
}  // namespace skein
