// Which gradient sums the first micro-batch stores, and what then need not be cleared.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "skein/backends/backend.h"
#include "skein/compile/program_runs.h"
#include "skein/ops/adamw/adamw.h"
#include "skein/ops/linear/linear.h"
#include "tests/tiny_spec.h"

namespace skein {
namespace {

using testing::ElementsAre;

StepSpec data_spec(int64_t data_degree, int zero, int64_t micro_batches) {
  StepSpec spec = tiny_spec(Mesh::standard(1, data_degree, 1, 1), micro_batches);
  spec.layout.zero = zero;
  spec.update.zero = zero;
  return spec;
}

// Parameters whose update leaves the gradient sum as it is.
std::set<std::string> kept(const Graph& graph) {
  std::set<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (node.op == &kAdamw && keeps_gradient(node.attrs)) {
      names.insert(graph.value(node.inputs[0]).name);
    }
  }
  return names;
}

int count(const Graph& graph, std::string_view op) {
  int found = 0;
  for (const Node& node : graph.nodes()) found += node.op->name == op ? 1 : 0;
  return found;
}

std::set<std::string> products(const Graph& graph) {
  std::set<std::string> names;
  for (const Value& value : graph.values()) {
    const bool is_matrix = value.type.shape.rank() == 2 && value.name != "rope_table";
    if (value.role == Role::kParameter && is_matrix &&
        value.name.find("embed") == std::string::npos) {
      names.insert(value.name);
    }
  }
  return names;
}

TEST(BeginSums, OfProductsNeedNoZeros) {
  const Graph graph = training_graphs(data_spec(1, 0, 2)).training;
  EXPECT_EQ(kept(graph), products(graph));
  EXPECT_EQ(kept(graph).size(), 2 * 7 + 1);
}

TEST(BeginSums, OfZeroStage1AreNotClearedBehindTheSums) {
  const Graph graph = training_graphs(data_spec(2, 1, 2)).training;
  EXPECT_EQ(kept(graph).size(), 2 * 9 + 3);  // updates clear nothing: their ranges are received
  std::set<std::string> cleared;
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "fill_zero") continue;
    for (const ValueId id : node.inputs) cleared.insert(graph.value(id).name.substr(0, 9));
  }
  EXPECT_EQ(cleared.size(), 1);  // norms and the embedding
  EXPECT_EQ(count(graph, "fill_zero"), 1);
}

std::map<std::string, bool> beginning(const ProgramSet& programs) {
  std::map<std::string, bool> by_name;
  for (const Program& program : programs.programs) {
    for (const Instruction& instruction : program.instructions) {
      by_name[program.name] |= is_from_zero(instruction.attrs);
    }
  }
  return by_name;
}

std::vector<std::string> order(const StepSpec& spec, const ProgramSet& programs) {
  std::vector<std::string> names;
  for (const ProgramRun& run : step_order(spec, programs)) names.push_back(run.program);
  return names;
}

TEST(BeginSums, OnlyTheFirstMicroBatchStores) {
  const KernelTable kernels = find_backend("cpu").kernels();
  for (const int64_t micro_batches : {1, 3}) {
    const StepSpec spec = data_spec(1, 0, micro_batches);
    const ProgramSet programs = plan_training(training_graphs(spec), spec, kernels);
    std::map<std::string, bool> begins = beginning(programs);
    EXPECT_EQ(begins["forward"], micro_batches == 1);
    EXPECT_EQ(begins["backward"], micro_batches == 1);
    if (micro_batches == 1) {
      EXPECT_THAT(order(spec, programs), ElementsAre("forward", "backward"));
    } else {
      EXPECT_TRUE(begins["forward.first"] && begins["backward.first"]);
      EXPECT_THAT(order(spec, programs), ElementsAre("forward.first", "backward.first", "forward",
                                                     "backward", "forward", "backward"));
    }
  }
}

// Sums over ranks start in the last micro-batch, which may be the first as well.
TEST(BeginSums, FirstAndLastMayBeOne) {
  const KernelTable kernels = find_backend("cpu").kernels();
  for (const int64_t micro_batches : {1, 2}) {
    const StepSpec spec = data_spec(2, 1, micro_batches);
    const ProgramSet programs = plan_training(training_graphs(spec), spec, kernels);
    EXPECT_EQ(beginning(programs)["backward.last"], micro_batches == 1);
    if (micro_batches == 1) {
      EXPECT_THAT(order(spec, programs), ElementsAre("forward", "backward.last"));
    } else {
      EXPECT_THAT(order(spec, programs),
                  ElementsAre("forward.first", "backward.first", "forward", "backward.last"));
    }
  }
}

}  // namespace
}  // namespace skein
