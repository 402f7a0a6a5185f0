#include "skein/ops/pipeline/pipeline.h"
#include "tests/ops/group_run.h"

namespace skein {
namespace {

using namespace op_test;

constexpr int64_t kDepth = 2, kMicroBatches = 7;

double element(int64_t micro_batch, int64_t i) {
  return static_cast<double>((micro_batch * 13 + i) % 97);
}

// Stages compute nothing: what the first stage sends comes out of the last. Each sends as far ahead
// as its buffer allows.
void run_stage(GroupRank& rank, int64_t stages, const Shape& shape, int64_t row_padding) {
  const int64_t stage = rank.rank;
  Graph graph(Mesh::standard(stages, 1, 1, 1));
  const TensorType type = TensorType::replicated(DType::kBF16, shape, graph.mesh());
  const View packed = rank.allocate(DType::kBF16, shape);
  const View x = rank.allocate(DType::kBF16, shape, row_padding);
  const View buffer = rank.allocate(DType::kBF16, send_buffer_type(type, kDepth).shape);
  std::vector<std::pair<Node, KernelCall>> receives, sends;
  std::vector<int64_t> tickets(kDepth + 1, -1);
  if (stage > 0) {
    receive(graph, type, kForwardGroup, stage - 1, "y");
    const Node node = graph.nodes().back();
    receives.emplace_back(node, rank.bind(graph, node, {}, {packed}));
  }
  if (stage + 1 < stages) {
    const ValueId value = graph.add_input(Role::kInput, "x", type);
    const ValueId space = graph.add_input(Role::kInput, "buffer", send_buffer_type(type, kDepth));
    send(graph, value, space, kForwardGroup, stage + 1, 0, kDepth);
    const Node node = graph.nodes().back();
    sends.emplace_back(node, rank.bind(graph, node, {x, buffer}, {buffer}, tickets.data()));
  }
  for (int64_t micro_batch = 0; micro_batch < kMicroBatches; ++micro_batch) {
    std::vector<double> values;
    for (int64_t i = 0; i < shape.num_elements(); ++i) values.push_back(element(micro_batch, i));
    for (const auto& [node, call] : receives) {
      rank.run(node, call);
      EXPECT_EQ(rank.read(packed), values) << "stage " << stage;
    }
    rank.write(x, values);
    for (const auto& [node, call] : sends) rank.run(node, call);
    rank.write(x, std::vector<double>(values.size(), -1.0));  // the send has its own copy
  }
  for (int64_t turn = 0; turn < kDepth && !sends.empty(); ++turn) rank.wait(tickets[turn]);
}

TEST(Pipeline, PassesMicroBatchesOn) {
  for (const int stages : {2, 3}) {
    run_group(stages, "pp", [&](GroupRank& rank) {
      run_stage(rank, stages, {12, 40}, 0);
      run_stage(rank, stages, {5, 7}, 3);
    });
  }
}

}  // namespace
}  // namespace skein
