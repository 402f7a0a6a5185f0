// Attention with the tokens of a sequence split over ranks: the kernels of every rank run one after
// the other and must give what one rank with whole sequences gives.
#include <gtest/gtest.h>

#include "skein/ops/attention/attention.h"
#include "skein/ops/attention/cpu/attention_cpu.h"
#include "skein/ops/redistribute/redistribute.h"
#include "skein/ops/zigzag/zigzag.h"
#include "tests/ops/op_harness.h"
#include "tests/ops/rank_run.h"

namespace skein {
namespace {

using namespace op_test;

struct Case {
  Mesh mesh = Mesh({{"dp", 1}, {"cp", 1}, {"kv", 1}, {"replica", 1}});
  int64_t sequences = 2, sequence_length = 24;
  AttentionAttrs attrs = {.heads = 4, .kv_heads = 2, .head_dim = 6};
  DType dtype = DType::kF32;
  std::vector<int64_t> boundaries = {};

  int64_t parts() const { return mesh.size("cp") * mesh.size("cp2"); }
  int64_t tokens() const { return sequences * sequence_length; }
  std::string axes(const std::string& dp, const std::string& cp, const std::string& heads) const {
    return dp + " " + cp + (mesh.find("cp2") < 0 ? " " : " " + cp + " ") + heads;
  }
};

Tensor starts_of(const Case& test) {
  return make_tensor(DType::kI32, {test.tokens()}, [&](int64_t t) {
    // Sequences have different documents.
    const int64_t position = t % test.sequence_length, shift = t / test.sequence_length % 3;
    int64_t start = 0;
    for (const int64_t boundary : test.boundaries) {
      if (boundary + shift <= position) start = boundary + shift;
    }
    return static_cast<double>(start);
  });
}

// The natural row of each row as ranks store them: whole sequences on a rank of dp, then zigzag.
std::vector<int64_t> stored_rows(const Case& test) {
  std::vector<int64_t> rows;
  const int64_t dp = test.mesh.size("dp");
  for (int64_t i = 0; i < dp; ++i) {
    for (int64_t part = 0; part < test.parts(); ++part) {
      const bool whole = test.parts() == 1;
      for (int64_t row = 0; whole && row < test.tokens() / dp; ++row) {
        rows.push_back(i * test.tokens() / dp + row);
      }
      if (whole) continue;
      for (const int64_t row :
           zigzag_rows(test.sequences / dp, test.sequence_length, test.parts(), part)) {
        rows.push_back(i * test.tokens() / dp + row);
      }
    }
  }
  return rows;
}

Tensor store(const Tensor& natural, const std::vector<int64_t>& rows) {
  Tensor stored = natural;
  const int64_t cols = natural.shape.cols();
  for (size_t row = 0; row < rows.size(); ++row) {
    for (int64_t col = 0; col < cols; ++col) {
      stored.values[row * cols + col] = natural.at(rows[row], col);
    }
  }
  return stored;
}

std::vector<double> natural(const std::vector<double>& stored, const std::vector<int64_t>& rows) {
  std::vector<double> values(stored.size());
  const size_t cols = stored.size() / rows.size();
  for (size_t row = 0; row < rows.size(); ++row) {
    std::copy_n(stored.begin() + row * cols, cols, values.begin() + rows[row] * cols);
  }
  return values;
}

struct Built {
  Graph graph;
  std::map<ValueId, Tensor> inputs;
  AttentionResult forward;
  AttentionGrads grads;
};

// Splits the rows as before: the derivative of zigzag, then of redistribute.
ValueId give_back(const Case& test, Graph& graph, ValueId grad) {
  if (test.parts() == 1) return grad;
  grad = zigzag(graph, grad, test.sequence_length, test.parts(), false, "stored");
  for (const char* axis : {"cp", "cp2"}) {
    if (test.mesh.find(axis) >= 0) grad = redistribute(graph, grad, axis, Placement::sharded(0));
  }
  return grad;
}

Built build(const Case& test) {
  Built built{Graph(test.mesh), {}, {}, {}};
  Graph& graph = built.graph;
  const std::vector<int64_t> rows = stored_rows(test);
  const AttentionAttrs& attrs = test.attrs;
  const auto add = [&](const char* name, int64_t heads, uint32_t stream, const std::string& split) {
    const Tensor tensor =
        random_tensor(test.dtype, {test.tokens(), heads * attrs.head_dim}, stream);
    const ValueId id = graph.add_input(
        Role::kInput, name, placed_type(test.dtype, tensor.shape, test.axes("S0", "S0", split)));
    built.inputs[id] = store(tensor, rows);
    return id;
  };
  const ValueId q = add("q", attrs.heads, 1, "S1 S1"), k = add("k", attrs.kv_heads, 2, "S1 R");
  const ValueId v = add("v", attrs.kv_heads, 3, "S1 R"), grad = add("do", attrs.heads, 4, "S1 S1");
  const ValueId start =
      graph.add_input(Role::kInput, "start",
                      placed_type(DType::kI32, {test.tokens()},
                                  test.axes("S0", test.parts() == 1 ? "S0" : "R", "R R")));
  built.inputs[start] = starts_of(test);
  built.forward = attention(graph, q, k, v, start, attrs, "o");
  const Node node = graph.nodes().back();
  graph.set_phase(Phase::kBackward);
  built.grads = attention_backward(graph, grad, q, node.inputs[1], node.inputs[2], built.forward,
                                   start, node.attrs, {"dq", "dk", "dv"});
  built.grads.dk = give_back(test, graph, built.grads.dk);
  built.grads.dv = give_back(test, graph, built.grads.dv);
  verify(graph, "the test");
  return built;
}

// Outputs in natural order: o, lse, dq, dk, dv.
Outputs results(const Case& test) {
  const Built built = build(test);
  const RankRun run(built.graph, built.inputs, 3);
  const std::vector<int64_t> rows = stored_rows(test);
  Outputs outputs;
  for (const ValueId id :
       {built.forward.o, built.forward.lse, built.grads.dq, built.grads.dk, built.grads.dv}) {
    outputs.push_back(natural(run.whole(id), rows));
  }
  return outputs;
}

void check(Case test) {
  test.attrs.sequence_length = test.sequence_length;
  test.attrs.scale = 1 / std::sqrt(static_cast<double>(test.attrs.head_dim));
  SCOPED_TRACE(fmt::format("{}: S {}, causal {}, {} documents", test.mesh.to_string(),
                           test.sequence_length, test.attrs.causal, test.boundaries.size() + 1));
  Case single = test;
  single.mesh = Case().mesh;
  const Outputs want = results(single), got = results(test);
  const char* const names[] = {"o", "lse", "dq", "dk", "dv"};
  for (int i = 0; i < 5; ++i) {
    const DType dtype = i == 1 ? DType::kF32 : test.dtype;
    const double tolerance = test.dtype == DType::kBF16 ? 2e-2 : 1e-5;
    expect_close(got[i], want[i], dtype, tolerance, names[i]);
  }
}

Mesh mesh_of(int64_t dp, int64_t cp, int64_t kv, int64_t replica) {
  return Mesh({{"dp", dp}, {"cp", cp}, {"kv", kv}, {"replica", replica}});
}

TEST(AttentionContext, RanksGiveWhatOneGives) {
  using Sizes = std::vector<int64_t>;
  const bool slow = op_test::test_device().is_slow;
  const Sizes degrees = slow ? Sizes{3} : Sizes{2, 3, 4};
  const Sizes pieces = slow ? Sizes{1, 37} : Sizes{1, 37, 64};
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const bool causal : {true, false}) {
      for (const int64_t n : degrees) {
        for (const int64_t piece : pieces) {
          const int64_t length = 2 * n * piece;
          Case test{.mesh = mesh_of(1, n, 1, 1),
                    .sequences = 2,
                    .sequence_length = length,
                    .attrs = {.heads = 4, .kv_heads = 2, .head_dim = 10, .causal = causal},
                    .dtype = dtype};
          check(test);
          test.boundaries = {1, length / 5, length / 2, length - 3};
          check(test);
        }
      }
    }
  }
}

TEST(AttentionContext, WithDataParallelismAndSplitHeads) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    check({.mesh = mesh_of(2, 2, 2, 2),
           .sequences = 6,
           .sequence_length = 92,
           .attrs = {.heads = 8, .kv_heads = 2, .head_dim = 6},
           .dtype = dtype,
           .boundaries = {20, 45}});
    check({.mesh = mesh_of(3, 3, 2, 1),
           .sequences = 3,
           .sequence_length = 66,
           .attrs = {.heads = 4, .kv_heads = 4, .head_dim = 6},
           .dtype = dtype});
  }
  check({.mesh = Mesh({{"dp", 2}, {"cp", 2}, {"cp2", 2}, {"kv", 1}, {"replica", 2}}),
         .sequences = 4,
         .sequence_length = 104,
         .attrs = {.heads = 4, .kv_heads = 1, .head_dim = 6},
         .boundaries = {31}});
}

// A piece is three blocks, the last of which is not full: two tiles.
TEST(AttentionContext, PiecesOfSeveralBlocks) {
  for (const bool causal : {true, false}) {
    check({.mesh = mesh_of(1, 2, 1, 1),
           .sequences = 1,
           .sequence_length = 4 * 150,
           .attrs = {.heads = 2, .kv_heads = 1, .head_dim = 16, .causal = causal},
           .dtype = DType::kBF16,
           .boundaries = {170, 430}});
  }
}

// Backward with several pieces of keys.
TEST(AttentionContext, LongSequences) {
  for (const bool causal : {true, false}) {
    check({.mesh = mesh_of(1, 3, 1, 1),
           .sequences = 1,
           .sequence_length = 2130,
           .attrs = {.heads = 1, .kv_heads = 1, .head_dim = 3, .causal = causal},
           .boundaries = {900}});
  }
}

// Counts the score blocks that each rank computes.
TEST(AttentionContext, RanksHaveEqualWork) {
  using namespace attention_cpu;
  for (const int64_t n : {2, 3, 4, 8}) {
    for (const int64_t length : {2 * n * 64, 2 * n * 100, 2 * n * 256}) {
      const std::vector<int32_t> starts(length, 0);
      std::vector<int64_t> work(n, 0);
      for (int64_t part = 0; part < n; ++part) {
        Problem problem;
        problem.start = starts.data();
        problem.sequence_length = length;
        problem.part = part;
        problem.parts = n;
        for (int64_t block = 0; block < problem.num_blocks(); ++block) {
          const Range keys = visible_keys(problem, 0, query_range(problem, block));
          work[part] += round_up(keys.end, kBlock) / kBlock;
        }
      }
      const auto [least, most] = std::minmax_element(work.begin(), work.end());
      const int64_t blocks = 2 * round_up(length / n / 2, kBlock) / kBlock;
      EXPECT_LE(*most - *least, blocks) << "of " << *most << " blocks";
      RecordProperty(fmt::format("blocks_of_{}_in_{}", length, n),
                     fmt::format("{} to {}", *least, *most));
      if (length % (2 * n * kBlock) == 0) {
        EXPECT_EQ(*least, *most);
      }
    }
  }
}

TEST(AttentionContext, CostIsTheRanksShare) {
  Case test{.mesh = mesh_of(1, 4, 1, 1), .sequence_length = 64};
  test.attrs.sequence_length = 64;
  test.attrs.scale = 1;
  Case single = test;
  single.mesh = mesh_of(1, 1, 1, 1);
  const auto flops = [](const Case& c) {
    const Built built = build(c);
    double sum = 0;
    for (const Node& node : built.graph.nodes()) {
      sum += node.op->cost(built.graph.call(node)).flops *
             static_cast<double>(node.op->name.starts_with("attention"));
    }
    return sum;
  };
  EXPECT_EQ(4 * flops(test), flops(single));
}

TEST(AttentionContext, ExpandsWhereSequencesAreSplit) {
  Case test{.mesh = mesh_of(2, 2, 1, 1), .sequence_length = 24};
  test.attrs.sequence_length = 24;
  test.attrs.scale = 1;
  Built built = build(test);
  std::string ops;
  for (const Node& node : built.graph.nodes()) {
    if (node.phase == Phase::kForward) ops += std::string(node.op->name) + " ";
  }
  EXPECT_EQ(ops, "redistribute zigzag redistribute zigzag attention ");
  EXPECT_EQ(built.graph.value(built.forward.o).name, "o");
  EXPECT_EQ(built.graph.type(built.forward.o).placements,
            placed_type(DType::kF32, {}, "S0 S0 S1 S1").placements);
  EXPECT_EQ(built.graph.type(built.grads.dk).placements,
            placed_type(DType::kF32, {}, "S0 S0 S1 P").placements);
  test.attrs.sequence_length = test.sequence_length = 18;  // 2n = 4 pieces do not divide it
  EXPECT_THROW(build(test), Error);
  test = {.mesh = Mesh({{"cp", 2}, {"dp", 2}, {"kv", 1}, {"replica", 1}})};
  test.attrs.sequence_length = 24;
  test.attrs.scale = 1;
  Graph graph(test.mesh);
  const auto add = [&](const char* name, DType dtype, Shape shape, const std::string& placements) {
    return graph.add_input(Role::kInput, name, placed_type(dtype, std::move(shape), placements));
  };
  const ValueId q = add("q", DType::kF32, {48, 24}, "S0 S0 R R");
  const ValueId k = add("k", DType::kF32, {48, 12}, "R S0 R R");
  const ValueId start = add("start", DType::kI32, {48}, "R S0 R R");
  EXPECT_THROW(attention(graph, q, k, k, start, test.attrs, "o"), Error);  // dp inside of cp
}

}  // namespace
}  // namespace skein
