#include "skein/ops/redistribute/redistribute.h"
#include "tests/ops/group_run.h"

namespace skein {
namespace {

using namespace op_test;

struct Case {
  const char *from, *to;
  DType dtype = DType::kF32;
  int64_t row_padding = 0;
  bool split = false;  // into start and wait, whose results have no gaps
  bool into = false;   // memory that is there
  // With `split`; kCopied: to results whose rows have the padding.
  Results results = Results::kInPlace;
  bool of_ranges = false;  // of values that are Flat over dp; the group is of its first rank
};

constexpr double kGarbage = 77;  // in the padding of a Flat share

TensorType type_of(const Case& c, const Shape& shape, const Mesh& mesh, const char* placement) {
  TensorType type = TensorType::replicated(c.dtype, shape, mesh);
  type.placements[3] = Placement::parse(placement);
  if (c.of_ranges) type.placements[1] = Placement::flat();
  return type;
}

// Integers that bf16 can represent; the terms of a Partial value differ by rank.
double element(int64_t i) { return static_cast<double>(i * 7 % 61 - 30); }
double sum_of_terms(int64_t i, int64_t ranks) {
  return element(i) * static_cast<double>(ranks * (ranks + 1) / 2);
}

class Redistribution {
 public:
  Redistribution(GroupRank& rank, int size, const Case& c, const std::vector<Shape>& shapes)
      : rank_(rank),
        size_(size),
        case_(c),
        graph_(Mesh::standard(1, c.of_ranges ? 2 : 1, 1, size)) {
    std::vector<ValueId> inputs;
    for (const Shape& shape : shapes) {
      inputs.push_back(graph_.add_input(Role::kInput, fmt::format("x{}", inputs.size()),
                                        type_of(c, shape, graph_.mesh(), c.from)));
    }
    std::vector<ValueId> targets;
    for (size_t i = 0; c.into && i < shapes.size(); ++i) {
      targets.push_back(graph_.add_input(Role::kInput, fmt::format("t{}", i),
                                         type_of(c, shapes[i], graph_.mesh(), c.to)));
      views_[targets.back()] = allocate(targets.back(), 0);
    }
    outputs_ = redistribute(graph_, inputs, "tp", Placement::parse(c.to), targets);
    for (const ValueId id : inputs) {
      views_[id] = allocate(id, is_copied() ? 0 : c.row_padding);
      rank_.write(views_[id], input_values(id));
    }
    const Node node = graph_.nodes().back();
    if (node.op->layout != nullptr && !is_copied()) {
      for (const Alias& alias : node.op->layout(graph_.call(node)).aliases) {
        views_[node.outputs.at(alias.output)] = views_[node.inputs.at(alias.input)];
      }
    }
    for (const ValueId id : outputs_) {
      if (!views_.contains(id))
        views_[id] = allocate(id, c.split && !is_copied() ? 0 : c.row_padding);
    }
  }

  void run_and_check() {
    Node node = graph_.nodes().back();
    if (case_.split) {
      const RedistributeHalves halves = split_redistribute(graph_, node, 0, case_.results);
      for (size_t i = 0; i < outputs_.size(); ++i) {
        const ValueId started = halves.start.outputs[i];
        views_[started] = is_copied() ? allocate(started, 0) : views_[outputs_[i]];
      }
      const ValueId staging = halves.start.outputs.back();
      views_[staging] = rank_.allocate(case_.dtype, graph_.type(staging).shape);
      bind_and_run({halves.start, halves.wait});
    } else {
      bind_and_run({node});
    }
    for (const ValueId id : outputs_) {
      EXPECT_EQ(rank_.read(views_[id]), expected(id))
          << case_.from << " to " << case_.to << ", " << dtype_name(case_.dtype) << " "
          << graph_.type(id).shape.to_string() << " over " << size_ << ", rank " << rank_.rank;
    }
  }

 private:
  bool is_copied() const { return case_.results == Results::kCopied; }
  View allocate(ValueId id, int64_t row_padding) {
    return rank_.allocate(case_.dtype, graph_.type(id).local_shape(graph_.mesh()), row_padding);
  }

  std::vector<double> input_values(ValueId id) const {
    const TensorType& type = graph_.type(id);
    const double factor = type.placements[3].is_partial() ? rank_.rank + 1 : 1;
    std::vector<double> values;
    for (const int64_t at : local_elements(type, graph_.mesh(), rank_.rank)) {
      values.push_back(at < 0 ? kGarbage : factor * element(at));
    }
    return values;
  }

  std::vector<double> expected(ValueId id) const {
    const bool summed = std::string_view(case_.from) == "P";
    std::vector<double> values;
    for (const int64_t at : local_elements(graph_.type(id), graph_.mesh(), rank_.rank)) {
      const double whole = summed ? sum_of_terms(at, size_) : element(at);
      values.push_back(at < 0 ? 0.0 : round_to(case_.dtype, whole));
    }
    return values;
  }

  std::vector<View> views(const std::vector<ValueId>& ids) const {
    std::vector<View> result;
    for (const ValueId id : ids) result.push_back(views_.at(id));
    return result;
  }

  void bind_and_run(const std::vector<Node>& nodes) {
    int64_t tickets[2] = {-1, -1};
    std::vector<KernelCall> calls;
    for (const Node& node : nodes) {
      calls.push_back(rank_.bind(graph_, node, views(node.inputs), views(node.outputs), tickets));
    }
    for (size_t i = 0; i < nodes.size(); ++i) rank_.run(nodes[i], calls[i]);
  }

  GroupRank& rank_;
  int64_t size_;
  Case case_;
  Graph graph_;
  std::vector<ValueId> outputs_;
  std::map<ValueId, View> views_;
};

class RedistributeRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, RedistributeRanks, testing::Range(2, 5));

TEST_P(RedistributeRanks, MovesEveryPlacement) {
  const int size = GetParam();
  run_group(size, "tp", [&](GroupRank& rank) {
    const std::vector<Shape> shapes = {{24, 36}, {12, 12}, {24}};
    const std::vector<Shape> matrices(shapes.begin(), shapes.begin() + 2);
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const int64_t row_padding : {0, 3, 8}) {
        for (const auto& [from, to] :
             {std::pair{"P", "S0"}, {"P", "R"}, {"S0", "R"}, {"R", "S0"}}) {
          Redistribution(rank, size, {from, to, dtype, row_padding}, shapes).run_and_check();
        }
        Redistribution(rank, size, {"R", "S1", dtype, row_padding}, matrices).run_and_check();
        Redistribution(rank, size, {"S1", "R", dtype, row_padding}, matrices).run_and_check();
      }
      for (const auto& [from, to] : {std::pair{"R", "F"}, {"F", "R"}, {"P", "F"}}) {
        Redistribution(rank, size, {from, to, dtype}, {{25, 300}, {7}, {4096}}).run_and_check();
      }
    }
  });
}

TEST_P(RedistributeRanks, InTwoHalves) {
  const int size = GetParam();
  run_group(size, "tp", [&](GroupRank& rank) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const auto& [from, to] :
           {std::pair{"P", "R"}, {"P", "F"}, {"F", "R"}, {"P", "S0"}, {"S0", "R"}}) {
        Redistribution(rank, size, {from, to, dtype, 0, true}, {{24, 36}, {12}}).run_and_check();
      }
      // Into what is there, with a padded share; a gather also reads rows with gaps.
      Redistribution(rank, size, {"P", "F", dtype, 0, true, true}, {{25, 300}, {7}, {4096}})
          .run_and_check();
      Redistribution(rank, size, {"F", "R", dtype, 0, true, true}, {{25, 300}}).run_and_check();
      Redistribution(rank, size, {"S0", "R", dtype, 3, true}, {{24, 36}, {12, 5}}).run_and_check();
      for (const auto& [from, to] : {std::pair{"P", "F"}, {"F", "R"}, {"P", "R"}}) {
        Case of_ranges = {from, to, dtype, 0, true};
        of_ranges.of_ranges = true;
        Redistribution(rank, size, of_ranges, {{25, 300}, {4096}}).run_and_check();
      }
      Case over_terms = {"P", "R", dtype, 0, true};
      over_terms.results = Results::kOverTerms;
      Redistribution(rank, size, over_terms, {{24, 36}, {12}, {25, 7}}).run_and_check();
      for (const char* to : {"S0", "R"}) {
        Case copied = {"P", to, dtype, 3, true};
        copied.results = Results::kCopied;
        Redistribution(rank, size, copied, {{24, 36}, {12, 5}}).run_and_check();
      }
    }
  });
}

// More values than one kernel launch handles.
TEST(RedistributeManyValues, MovesAll) {
  run_group(2, "tp", [&](GroupRank& rank) {
    std::vector<Shape> shapes;
    for (int64_t i = 1; i <= 100; ++i) shapes.push_back({2 * i, i % 5 + 1});
    for (const auto& [from, to] : {std::pair{"S0", "R"}, {"R", "S0"}, {"P", "R"}}) {
      Redistribution(rank, 2, {from, to, DType::kBF16, 1}, shapes).run_and_check();
    }
  });
}

}  // namespace
}  // namespace skein
