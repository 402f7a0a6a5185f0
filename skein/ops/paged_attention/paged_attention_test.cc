#include "skein/ops/paged_attention/paged_attention.h"

#include <limits>

#include "tests/ops/paged_attention_reference.h"
#include "tests/ops/rank_run.h"

namespace skein {
namespace {

using namespace op_test;         // NOLINT(google-build-using-namespace)
using namespace op_test::paged;  // NOLINT(google-build-using-namespace)

bool is_slow() { return test_device().is_slow; }

// The end of one sequence, a prompt's beginning, padding, and single tokens.
std::vector<Token> mixed_tokens(int64_t longest) {
  std::vector<Token> tokens = {{2, longest - 1}, {-1, 0}};
  for (int64_t p = 0; p < 9; ++p) tokens.push_back({0, p});
  tokens.push_back({1, 17});
  for (int64_t p = longest - 12; p < longest; ++p) tokens.push_back({3, p});
  tokens.push_back({-1, 5});
  return tokens;
}

TEST(PagedAttention, MeetsItsReference) {
  struct Sizes {
    int64_t heads, kv_heads, head_dim, page_size, longest;
  };
  std::vector<Sizes> all = {{4, 4, 16, 16, 70}, {4, 2, 80, 16, 130}, {4, 1, 64, 64, 140}};
  if (!is_slow()) {
    all.insert(all.end(), {{8, 2, 128, 16, 200}, {7, 1, 20, 48, 150}, {2, 2, 7, 32, 65}});
  }
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const Sizes& s : all) {
      Config config = Config::of(dtype, s.heads, s.kv_heads, s.head_dim, s.page_size);
      config.draw_pages(4, s.longest, 1);
      check_op(case_of(config, inputs_of(config, mixed_tokens(s.longest))));
    }
  }
}

// More rows than one unit of a CPU's work has, beginning within a block.
TEST(PagedAttention, PiecesOfPrompts) {
  const int64_t first = 30, longest = is_slow() ? 70 : 230;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t kv_heads : {1, 3}) {
      Config config = Config::of(dtype, 3, kv_heads, 32, 16);
      config.draw_pages(2, longest, 2);
      std::vector<Token> tokens;
      for (int64_t p = first; p < longest; ++p) tokens.push_back({1, p});
      check_op(case_of(config, inputs_of(config, tokens)));
    }
  }
}

// Tokens in no order, whose neighbours have longer contexts.
TEST(PagedAttention, TokensInAnyOrder) {
  Config config = Config::of(DType::kBF16, 2, 1, 16, 16);
  config.draw_pages(2, 150, 3);
  const std::vector<Token> tokens = {{0, 149}, {0, 3}, {1, 80}, {0, 70}, {1, 81},
                                     {1, 82},  {1, 5}, {1, 6},  {0, 71}, {0, 149 - 16}};
  check_op(case_of(config, inputs_of(config, tokens)));
}

TEST(PagedAttention, ScoresOfHundreds) {
  Config config = Config::of(DType::kF32, 2, 1, 64, 16);
  config.attrs.scale = 20;
  config.draw_pages(1, 140, 4);
  std::vector<Token> tokens;
  for (int64_t p = 120; p < 140; ++p) tokens.push_back({0, p});
  OpCase test = case_of(config, inputs_of(config, tokens));
  test.tolerance = 1e-3;
  check_op(test);
}

// What a table of wrong numbers must not do: leave the cache, or change what is stored in it.
TEST(PagedAttention, HostileTablesArePadding) {
  constexpr double kMost = std::numeric_limits<int32_t>::max();
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    Config config = Config::of(dtype, 4, 2, 16, 16);
    config.draw_pages(3, 100, 5);
    Tensors in = inputs_of(config, {{0, 99}, {1, 15}, {1, 16}, {1, 70}, {2, 50}, {2, 51}, {2, 5}});
    const int64_t columns = in[7].shape.dim(1);
    in[7].values[columns + 1] = static_cast<double>(config.num_pages);  // position 16 of sequence 1
    in[7].values[2 * columns + 6] = -1;                                 // behind every token's
    const Tensors good = in;
    check_op(case_of(config, in));
    // Everything that follows is padding, so that no output changes but those rows of o.
    const std::vector<std::pair<double, double>> wrong = {
        {3, 0}, {-1, 3}, {0, -1}, {0, 112}, {kMost, 0}, {0, kMost}, {-kMost - 1, -kMost - 1}};
    for (size_t i = 0; i < wrong.size(); ++i) {
      in[5].values[i] = wrong[i].first;
      in[6].values[i] = wrong[i].second;
    }
    const Outputs all_padding = Reference(config, in).run();
    EXPECT_EQ(all_padding[1], in[3].values);
    EXPECT_EQ(all_padding[0], std::vector<double>(all_padding[0].size(), 0.0));
    check_op(case_of(config, in));
    for (const double page : {-1.0, kMost, -kMost - 1, static_cast<double>(config.num_pages)}) {
      in = good;
      std::fill(in[7].values.begin(), in[7].values.end(), page);
      check_op(case_of(config, in));
    }
  }
}

TEST(PagedAttention, PaddingAlone) {
  Config config = Config::of(DType::kF32, 2, 1, 16, 16);
  config.draw_pages(1, 16, 6);
  check_op(case_of(config, inputs_of(config, {{-1, -1}})));
}

// Ranks that share the heads have the bits of one that has them all.
TEST(PagedAttention, RanksThatShareTheHeads) {
  Config config = Config::of(DType::kBF16, 8, 4, 16, 16);
  config.draw_pages(2, 90, 1);
  const Tensors in = inputs_of(config, {{0, 89}, {1, 3}, {1, 4}, {-1, 0}, {1, 70}});
  std::vector<double> results[2][3];
  for (const bool is_split : {false, true}) {
    Graph graph(Mesh::standard(1, 1, 1, is_split ? 4 : 1));
    std::map<ValueId, Tensor> inputs;
    std::vector<ValueId> ids;
    for (size_t i = 0; i < in.size(); ++i) {
      TensorType type = TensorType::replicated(in[i].dtype, in[i].shape, graph.mesh());
      if (is_split && i < 5) type.placements[3] = Placement::sharded(1);
      ids.push_back(graph.add_input(Role::kInput, fmt::format("in{}", i), type));
      inputs[ids.back()] = in[i];
    }
    const PagedAttention result = paged_attention(graph, ids[0], ids[1], ids[2], ids[3], ids[4],
                                                  ids[5], ids[6], ids[7], config.attrs, "o");
    const RankRun run(graph, inputs, 3);
    results[is_split][0] = run.whole(result.o);
    results[is_split][1] = run.whole(result.keys);
    results[is_split][2] = run.whole(result.values);
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(results[0][i], results[1][i]);
}

}  // namespace
}  // namespace skein
