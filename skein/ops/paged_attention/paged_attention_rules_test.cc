// Shapes, attrs and placements that paged attention accepts and refuses.
#include "skein/ops/paged_attention/paged_attention.h"
#include "tests/ops/op_harness.h"

namespace skein {
namespace {

using namespace op_test;  // NOLINT(google-build-using-namespace)

struct Use {
  PagedAttentionAttrs attrs = {4, 2, 8, 16, 0.5};
  DType dtype = DType::kBF16, cache = DType::kBF16;
  Shape q = {6, 32}, k = {6, 16}, v = {6, 16}, keys = {6, 256}, values = {6, 256};
  Shape sequence = {6}, position = {6}, pages = {2, 3};
  std::array<std::string, 8> placements = {"R", "R", "R", "R", "R", "R", "R", "R"};
  int64_t ranks = 2;
};

// The placement of each output on the last axis.
std::vector<std::string> infer(const Use& use) {
  Graph graph(Mesh::standard(1, 1, 1, use.ranks));
  const Shape shapes[] = {use.q,      use.k,        use.v,        use.keys,
                          use.values, use.sequence, use.position, use.pages};
  std::vector<ValueId> ids;
  for (int i = 0; i < 8; ++i) {
    const DType dtype = i >= 5 ? DType::kI32 : i >= 3 ? use.cache : use.dtype;
    TensorType type = TensorType::replicated(dtype, shapes[i], graph.mesh());
    type.placements[3] = Placement::parse(use.placements[i]);
    ids.push_back(graph.add_input(Role::kInput, fmt::format("in{}", i), type));
  }
  const PagedAttention result = paged_attention(graph, ids[0], ids[1], ids[2], ids[3], ids[4],
                                                ids[5], ids[6], ids[7], use.attrs, "attention");
  EXPECT_EQ(graph.value(result.o).name, "attention");
  EXPECT_EQ(graph.type(result.o).shape, use.q);
  EXPECT_EQ(graph.type(result.keys).shape, use.keys);
  EXPECT_EQ(graph.type(result.values).dtype, use.cache);
  std::vector<std::string> placements;
  for (const ValueId id : {result.o, result.keys, result.values}) {
    placements.push_back(graph.type(id).placements[3].to_string());
  }
  return placements;
}

void expect_refused(const std::function<void(Use&)>& change, const std::string& words) {
  Use use;
  change(use);
  try {
    infer(use);
    ADD_FAILURE() << "not refused: " << words;
  } catch (const IllegalCall& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(PagedAttentionRules, PlacesHeads) {
  Use use;
  EXPECT_EQ(infer(use), (std::vector<std::string>{"R", "R", "R"}));
  use.placements = {"S1", "S1", "S1", "S1", "S1", "R", "R", "R"};
  EXPECT_EQ(infer(use), (std::vector<std::string>{"S1", "S1", "S1"}));
}

// Each rank holds the one key-value head that its query heads read.
TEST(PagedAttentionRules, RepeatsOneKeyValueHead) {
  Use use;
  use.attrs.kv_heads = 1;
  use.k = use.v = {6, 8};
  use.keys = use.values = {6, 128};
  use.placements[0] = "S1";
  EXPECT_EQ(infer(use), (std::vector<std::string>{"S1", "R", "R"}));
}

TEST(PagedAttentionRules, RefusesOtherPlacements) {
  using Placed = std::array<std::string, 8>;
  for (const Placed& placed : {Placed{"S0", "S0", "S0", "R", "R", "S0", "S0", "R"},
                               Placed{"S1", "S1", "S1", "R", "R", "R", "R", "R"},
                               Placed{"S1", "S1", "S1", "S0", "S0", "R", "R", "R"},
                               Placed{"P", "S1", "S1", "S1", "S1", "R", "R", "R"},
                               Placed{"R", "R", "R", "R", "R", "R", "R", "S0"}}) {
    expect_refused([&](Use& use) { use.placements = placed; }, "no placement rule");
  }
  expect_refused([](Use& use) { use.placements[0] = "S1"; }, "should hold one kv head, not 2");
  expect_refused(
      [](Use& use) {
        use.placements = {"S1", "S1", "S1", "S1", "S1", "R", "R", "R"};
        use.ranks = 4;
      },
      "splits a head");
}

TEST(PagedAttentionRules, RefusesShapesThatDoNotMatch) {
  expect_refused([](Use& use) { use.q = {6, 24}; }, "must be bf16[6, 32]");
  expect_refused([](Use& use) { use.k = {6, 32}; }, "must be bf16[6, 16]");
  expect_refused([](Use& use) { use.v = {4, 16}; }, "must be bf16[6, 16]");
  expect_refused([](Use& use) { use.keys = {6, 128}; }, "must be bf16[6, 256]");
  expect_refused([](Use& use) { use.values = {7, 256}; }, "must be bf16[6, 256]");
  expect_refused([](Use& use) { use.cache = DType::kF32; }, "must be bf16[6, 256]");
  expect_refused([](Use& use) { use.sequence = {4}; }, "must be i32[6]");
  expect_refused([](Use& use) { use.position = {5}; }, "must be i32[6]");
  expect_refused([](Use& use) { use.pages = {6}; }, "must be i32[sequences, pages of each]");
}

TEST(PagedAttentionRules, RefusesAttrs) {
  expect_refused([](Use& use) { use.attrs.heads = 3; }, "multiple of kv_heads");
  expect_refused([](Use& use) { use.attrs.kv_heads = 0; }, "multiple of kv_heads");
  expect_refused([](Use& use) { use.attrs.head_dim = 0; }, "head_dim");
  expect_refused([](Use& use) { use.attrs.page_size = 24; }, "multiple of 16");
  expect_refused([](Use& use) { use.attrs.scale = 0; }, "scale");
}

}  // namespace
}  // namespace skein
