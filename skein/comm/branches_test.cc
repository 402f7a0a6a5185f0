#include "skein/comm/branches.h"

#include <gtest/gtest.h>

#include <bit>

#include "skein/base/error.h"
#include "tests/comm/terms.h"

namespace skein {
namespace {

using comm_test::Bytes;

std::vector<int64_t> counts(int64_t leaves, int64_t ranks) {
  std::vector<int64_t> all;
  for (int64_t rank = 0; rank < ranks; ++rank)
    all.push_back(Branches(leaves, ranks).of(rank).count);
  return all;
}

TEST(Branches, AreThoseOfThePage) {
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(counts(4, 3), (Counts{2, 1, 1}));
  EXPECT_EQ(counts(8, 3), (Counts{4, 2, 2}));
  EXPECT_EQ(counts(8, 5), (Counts{2, 2, 2, 1, 1}));
  EXPECT_EQ(counts(6, 2), (Counts{4, 2}));
  EXPECT_EQ(counts(6, 4), (Counts{2, 2, 1, 1}));
  EXPECT_EQ(counts(7, 3), (Counts{2, 2, 3}));
  EXPECT_EQ(counts(12, 5), (Counts{4, 2, 2, 2, 2}));
}

// As many leaves each wherever the number of ranks divides them a power of two times; all of them
// with one rank.
TEST(Branches, AreEqualWhereTheyCanBe) {
  for (int64_t leaves = 1; leaves <= 64; ++leaves) {
    for (int64_t ranks = 1; ranks <= leaves; ++ranks) {
      const bool divides =
          leaves % ranks == 0 && std::has_single_bit(static_cast<uint64_t>(leaves / ranks));
      EXPECT_EQ(Branches(leaves, ranks).are_equal(), ranks == 1 || divides)
          << leaves << " over " << ranks;
    }
  }
}

TEST(Branches, CoverTheLeavesInOrderAndAreAsEvenAsWholeBranchesCanBe) {
  for (int64_t leaves = 1; leaves <= 100; ++leaves) {
    for (int64_t ranks = 1; ranks <= leaves; ++ranks) {
      SCOPED_TRACE(::testing::Message() << leaves << " over " << ranks);
      const Branches branches(leaves, ranks);
      int64_t next = 0, most = 0, least = leaves;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const Branch branch = branches.of(rank);
        ASSERT_EQ(branch.first, next);
        ASSERT_GE(branch.count, 1);
        next += branch.count;
        most = std::max(most, branch.count);
        least = std::min(least, branch.count);
      }
      ASSERT_EQ(next, leaves);
      ASSERT_EQ(branches.most(), most);
      ASSERT_EQ(branches.least(), least);
      const auto even = static_cast<uint64_t>((leaves + ranks - 1) / ranks);
      ASSERT_LE(most, static_cast<int64_t>(std::bit_ceil(even)));
      if (2 * ranks >= leaves) {
        ASSERT_EQ(most, static_cast<int64_t>(even));
      }
    }
  }
}

// What a rank adds by itself, and then what they add together, is one and the same tree.
TEST(Branches, AddUpToTheTreeOfAllLeaves) {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    for (int64_t leaves = 1; leaves <= 40; ++leaves) {
      std::vector<Bytes> terms;
      for (int64_t i = 0; i < leaves; ++i) {
        terms.push_back(comm_test::term(dtype, 50, static_cast<uint64_t>(leaves * 100 + i)));
      }
      const Bytes expected = comm_test::serial_sum(dtype, terms);
      for (int64_t ranks = 1; ranks <= leaves; ++ranks) {
        const Branches branches(leaves, ranks);
        std::vector<Bytes> sums;
        std::vector<const void*> of_ranks;
        for (int64_t rank = 0; rank < ranks; ++rank) {
          const Branch branch = branches.of(rank);
          sums.push_back(comm_test::serial_sum(
              dtype, {terms.begin() + branch.first, terms.begin() + branch.first + branch.count}));
        }
        for (const Bytes& sum : sums) of_ranks.push_back(sum.data());
        Bytes result(expected.size());
        tree_sum(dtype, of_ranks, result.data(), 50, branches.pairs());
        ASSERT_EQ(result, expected) << leaves << " leaves over " << ranks << " ranks";
      }
    }
  }
}

TEST(Branches, RefuseRanksWithoutALeaf) {
  EXPECT_THROW(Branches(3, 4), Error);
  EXPECT_THROW(Branches(3, 0), Error);
}

}  // namespace
}  // namespace skein
