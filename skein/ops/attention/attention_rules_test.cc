#include <gtest/gtest.h>

#include "skein/ops/attention/attention.h"

namespace skein {
namespace {

TensorType type_of(DType dtype, Shape shape, const std::string& placements) {
  TensorType type{dtype, std::move(shape), {}};
  for (const char c : placements) {
    type.placements.push_back(c == 'R'   ? Placement::replicated()
                              : c == 'P' ? Placement::partial()
                                         : Placement::sharded(c - '0'));
  }
  return type;
}

const Mesh kMesh({{"dp", 2}, {"kv", 2}, {"replica", 2}});
constexpr AttentionAttrs kAttrs = {
    .heads = 8, .kv_heads = 2, .head_dim = 4, .sequence_length = 8, .scale = 0.5};

struct Built {
  Graph graph{kMesh};
  AttentionResult forward;
  AttentionGrads grads;
};

Built build_sharded(const std::string& q_placements, const std::string& kv_placements,
                    const std::string& start_placements, const AttentionAttrs& attrs = kAttrs,
                    int64_t tokens = 32) {
  Built built;
  Graph& graph = built.graph;
  const auto add = [&](const char* name, DType dtype, Shape shape, const std::string& placements) {
    return graph.add_input(Role::kInput, name, type_of(dtype, std::move(shape), placements));
  };
  const ValueId q = add("q", DType::kBF16, {tokens, 32}, q_placements);
  const ValueId k = add("k", DType::kBF16, {tokens, 8}, kv_placements);
  const ValueId v = add("v", DType::kBF16, {tokens, 8}, kv_placements);
  const ValueId start = add("start", DType::kI32, {tokens}, start_placements);
  const ValueId grad = add("do", DType::kBF16, {tokens, 32}, q_placements);
  built.forward = attention(graph, q, k, v, start, attrs, "o");
  built.grads = attention_backward(graph, grad, q, k, v, built.forward, start,
                                   graph.nodes()[0].attrs, {"dq", "dk", "dv"});
  return built;
}

TEST(Attention, Placements) {
  const Built built = build_sharded("011", "01R", "0RR");
  const auto type = [&](ValueId id) { return built.graph.type(id); };
  EXPECT_EQ(type(built.forward.o), type_of(DType::kBF16, {32, 32}, "011"));
  EXPECT_EQ(type(built.forward.lse), type_of(DType::kF32, {32, 8}, "011"));
  EXPECT_EQ(type(built.grads.dq), type_of(DType::kBF16, {32, 32}, "011"));
  EXPECT_EQ(type(built.grads.dk), type_of(DType::kBF16, {32, 8}, "01P"));
  EXPECT_EQ(type(built.grads.dv), type_of(DType::kBF16, {32, 8}, "01P"));
  // 16 rows and 2 query heads per rank: 8 * 9 / 2 pairs per sequence and head.
  const Node& node = built.graph.nodes()[0];
  EXPECT_EQ(kAttention.cost(built.graph.call(node)).flops, 4 * 4 * 2 * 2 * 36);
}

TEST(Attention, RejectsWhatDoesNotFit) {
  const auto message = [](const auto& build) -> std::string {
    try {
      build();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto has = [&](const auto& build, const std::string& part) {
    const std::string text = message(build);
    EXPECT_NE(text.find(part), std::string::npos) << "'" << text << "' lacks '" << part << "'";
  };
  // Three sequences of 8 over two ranks.
  has([] { build_sharded("011", "01R", "0RR", kAttrs, 24); }, "whole sequences of 8 tokens");
  // Two kv heads on every rank of an axis that splits the query heads.
  has([] { build_sharded("0R1", "0RR", "0RR"); }, "a rank should hold one kv head, not 2");
  has([] { build_sharded("0R1", "0R0", "0RR"); }, "no placement rule");
  AttentionAttrs attrs = kAttrs;
  attrs.scale = 0;
  has([&] { build_sharded("RRR", "RRR", "RRR", attrs); }, "scale = 0 should be positive");
  attrs = kAttrs;
  attrs.kv_heads = 3;
  has([&] { build_sharded("RRR", "RRR", "RRR", attrs); }, "multiple of kv_heads = 3");
  attrs = kAttrs;
  attrs.heads = 4;
  has([&] { build_sharded("RRR", "RRR", "RRR", attrs); }, "q bf16[32, 32] must be bf16[32, 16]");
}

}  // namespace
}  // namespace skein
