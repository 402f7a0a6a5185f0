// The table of documents, kernels that leave out what is in it, and the packing of statistics.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "skein/ops/attention/cuda/attention_documents_cuda.h"
#include "skein/tensor/dtype.h"
#include "tests/ops/test_device.h"

namespace skein::attention_cuda {
namespace {

using op_test::test_device;

// Of memory that both the host and the kernels see.
template <typename T>
struct SharedAllocator {
  using value_type = T;
  T* allocate(size_t count) {
    return static_cast<T*>(test_device().allocate(static_cast<int64_t>(count * sizeof(T))));
  }
  void deallocate(T* memory, size_t) { test_device().release(memory); }
  bool operator==(const SharedAllocator&) const { return true; }
};
template <typename T>
using Shared = std::vector<T, SharedAllocator<T>>;

struct Document {
  int begin, length;
};

class AttentionDocuments : public testing::Test {
 protected:
  // Sequences whose documents begin with the given chance a token.
  void make_starts(int num_sequences, int sequence_length, double chance) {
    problem_.num_sequences = num_sequences;
    problem_.sequence_length = sequence_length;
    starts_.clear();
    starts_.reserve(static_cast<size_t>(num_sequences) * sequence_length);
    documents_.clear();
    std::bernoulli_distribution begins(chance);
    for (int i = 0; i < num_sequences * sequence_length; ++i) {
      const int position = i % sequence_length;
      if (position == 0 || begins(random_)) documents_.push_back({i, 0});
      ++documents_.back().length;
      starts_.push_back(documents_.back().begin - (i - position));
    }
    problem_.start = starts_.data();
    for (Rows* rows : {&problem_.q, &problem_.k, &problem_.v, &problem_.o, &problem_.lse}) {
      rows->stride = 10 + (rows - &problem_.q);
    }
  }

  void find() {
    memory_.assign(document_table_bytes(problem_), 0x77);
    table_ = place_document_table(problem_, memory_.data());
    find_documents({.stream = test_device().stream}, problem_, table_);
    test_device().synchronize();
  }

  std::mt19937 random_{1};
  Problem problem_;
  Shared<int32_t> starts_;
  std::vector<Document> documents_;
  Shared<char> memory_;
  DocumentRows table_;
};

TEST_F(AttentionDocuments, TheLongestAreInTheTable) {
  for (const int num_sequences : {1, 3, 40}) {
    for (const int length : {1, 7, 512, 1000, 2048}) {
      for (const double chance : {0.0, 0.001, 0.004, 0.1, 0.6}) {
        SCOPED_TRACE(testing::Message() << num_sequences << " of " << length << ", " << chance);
        make_starts(num_sequences, length, chance);
        find();
        std::vector<Document> found;
        std::vector<uint8_t> in_table(starts_.size(), 0);
        for (int i = 0; i < table_.num_entries; ++i) {
          if (table_.lengths[i] == 0) break;
          found.push_back({table_.begins[i], table_.lengths[i]});
          std::fill_n(in_table.begin() + found[i].begin, found[i].length, 1);
        }
        const bool all_fit = static_cast<int>(documents_.size()) <= table_.num_entries;
        EXPECT_LE(found.size(), documents_.size());
        if (all_fit) {
          EXPECT_EQ(found.size(), documents_.size());
        }
        // They are in order, and none that is left out is twice as long as one that is not.
        size_t next = 0;
        int shortest = length, longest_out = 0;
        for (const Document& document : documents_) {
          if (next < found.size() && found[next].begin == document.begin) {
            EXPECT_EQ(found[next++].length, document.length);
            shortest = std::min(shortest, document.length);
          } else {
            longest_out = std::max(longest_out, document.length);
          }
        }
        EXPECT_EQ(next, found.size());
        EXPECT_LT(longest_out, std::max(2 * shortest, 2));
        EXPECT_TRUE(std::equal(in_table.begin(), in_table.end(), table_.is_in_table));
        for (int i = 0; i <= table_.num_entries; ++i) {
          const bool is_document = i < static_cast<int>(found.size());
          const int64_t row = is_document ? found[i].begin : static_cast<int64_t>(starts_.size());
          EXPECT_EQ(table_.offsets[kQ][i], row * problem_.q.stride);
          EXPECT_EQ(table_.offsets[kLse][i], row * problem_.lse.stride);
          if (!is_document && i < table_.num_entries) {
            EXPECT_EQ(table_.lengths[i], 0);
          }
        }
      }
    }
  }
}

TEST_F(AttentionDocuments, RowsOfTheTableAreCopied) {
  make_starts(3, 700, 0.05);
  find();
  constexpr int kCols = 24, kStride = 40, kTokens = 3 * 700;
  Shared<uint16_t> from(kTokens * kCols), to(kTokens * kStride, 7);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint16_t>(i + 100);
  copy_rows_in_table({.stream = test_device().stream}, problem_, table_, {from.data(), kCols},
                     {to.data(), kStride}, kCols);
  test_device().synchronize();
  int num_copied = 0;
  for (int row = 0; row < kTokens; ++row) {
    const bool copied = table_.is_in_table[row] != 0;
    num_copied += copied ? 1 : 0;
    for (int col = 0; col < kStride; ++col) {
      const bool inside = copied && col < kCols;
      ASSERT_EQ(to[row * kStride + col], inside ? from[row * kCols + col] : 7);
    }
  }
  EXPECT_GT(num_copied, 0);
  EXPECT_LT(num_copied, kTokens);
}

struct Kernels {
  DType dtype;
  void (*forward)(const KernelCall&, const Problem&);
  void (*backward)(const KernelCall&, const Problem&);
};
// All that this build and this GPU have.
std::vector<Kernels> own_kernels() {
  std::vector<Kernels> all = {{DType::kF32, run_scalar_forward, run_scalar_backward},
                              {DType::kBF16, run_tensor_core_forward, run_tensor_core_backward}};
  if (has_warpgroups())
    all.push_back({DType::kBF16, run_warpgroup_forward, run_warpgroup_backward});
  return all;
}

// Rows of documents in the table keep what they held; the others are as without a table.
TEST_F(AttentionDocuments, OthersAreLeftToOurKernels) {
  for (const Kernels& kernels : own_kernels()) {
    const DType dtype = kernels.dtype;
    for (const double chance : {0.0, 0.02, 0.1}) {
      make_starts(2, 300, chance);
      const int tokens = 2 * 300, cols = 2 * 8;
      problem_.heads = problem_.kv_heads = 2;
      problem_.head_dim = 8;
      const size_t count = static_cast<size_t>(tokens) * cols;
      const auto bytes = count * size_of(dtype);
      std::vector<Shared<char>> inputs(4, Shared<char>(bytes));
      std::normal_distribution<float> normal;
      for (auto& input : inputs) {
        for (size_t i = 0; i < count; ++i) {
          const float value = normal(random_);
          if (dtype == DType::kF32) {
            reinterpret_cast<float*>(input.data())[i] = value;
          } else {
            reinterpret_cast<bfloat16*>(input.data())[i] = bfloat16(value);
          }
        }
      }
      problem_.q = {inputs[0].data(), cols};
      problem_.k = {inputs[1].data(), cols};
      problem_.v = {inputs[2].data(), cols};
      problem_.grad = {inputs[3].data(), cols};
      Shared<float> delta(tokens * 2), lse(tokens * 2);
      problem_.delta = delta.data();
      problem_.lse = {lse.data(), 2};

      std::vector<Shared<char>> results[2];
      for (const bool with_table : {false, true}) {
        auto& outputs = results[with_table ? 1 : 0];
        outputs.assign(4, Shared<char>(bytes, 0x77));
        problem_.o = {outputs[0].data(), cols};
        problem_.dq = {outputs[1].data(), cols};
        problem_.dk = {outputs[2].data(), cols};
        problem_.dv = {outputs[3].data(), cols};
        problem_.elsewhere = nullptr;
        if (with_table) {
          find();
          problem_.elsewhere = table_.is_in_table;
        }
        KernelCall call{.stream = test_device().stream};
        call.outputs.resize(1);
        call.outputs[0].dtype = dtype;
        std::fill(delta.begin(), delta.end(), std::numeric_limits<float>::quiet_NaN());
        kernels.forward(call, problem_);
        sum_delta(call, problem_);
        kernels.backward(call, problem_);
        test_device().synchronize();
      }
      const int64_t row_bytes = cols * size_of(dtype);
      const std::vector<char> untouched(row_bytes, 0x77);
      int64_t num_own = 0;
      for (int token = 0; token < tokens; ++token) {
        const bool own = table_.is_in_table[token] == 0;
        num_own += own ? 1 : 0;
        for (int i = 0; i < 4; ++i) {
          const char* got = results[1][i].data() + token * row_bytes;
          const char* want = own ? results[0][i].data() + token * row_bytes : untouched.data();
          ASSERT_TRUE(std::equal(got, got + row_bytes, want)) << "output " << i << " row " << token;
        }
      }
      EXPECT_EQ(num_own > 0, chance > 0);
    }
  }
}

TEST_F(AttentionDocuments, StatisticsArePacked) {
  constexpr int kSequences = 3, kLength = 130, kHeads = 5, kStride = 7;
  make_starts(kSequences, kLength, 0);
  problem_.heads = problem_.kv_heads = kHeads;
  Shared<float> lse(kSequences * kLength * kStride), packed(kSequences * kHeads * kLength + 1, -1);
  for (size_t i = 0; i < lse.size(); ++i) lse[i] = static_cast<float>(i);
  problem_.lse = {lse.data(), kStride};
  pack_lse({.stream = test_device().stream}, problem_, packed.data());
  test_device().synchronize();
  size_t at = 0;
  for (int sequence = 0; sequence < kSequences; ++sequence) {
    for (int head = 0; head < kHeads; ++head) {
      for (int position = 0; position < kLength; ++position) {
        ASSERT_EQ(packed[at++], lse[(sequence * kLength + position) * kStride + head]);
      }
    }
  }
  EXPECT_EQ(packed[at], -1);  // nothing behind them
}

}  // namespace
}  // namespace skein::attention_cuda
