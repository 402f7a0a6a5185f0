#include "skein/runtime/executor.h"

#include <gtest/gtest.h>

#include "skein/base/error.h"
#include "skein/comm/local/local_communicator.h"
#include "skein/runtime/cpu/cpu_device.h"
#include "skein/runtime/host_memory.h"
#include "skein/runtime/null/null_device.h"
#include "tests/ir/testing_ops.h"

namespace skein {
namespace {

// The program of y = x + w, built by hand.
ProgramSet one_step() {
  ProgramSet set;
  set.mesh = Mesh::standard(1, 1, 1, 1);
  set.arena_bytes = {256, 0, 0, 256, 0, 256};
  const Operand x{Arena::kInputs, 0, DType::kF32, {4}, 4};
  const Operand w{Arena::kWeights, 0, DType::kF32, {4}, 4};
  const Operand y{Arena::kInputs, 64, DType::kF32, {4}, 4};
  Instruction instruction;
  instruction.op = &testing_ops::kPlus;
  instruction.inputs = {x, w};
  instruction.outputs = {y};
  set.programs = {{"forward", {instruction}}};
  set.named = {{"x", x}, {"w", w}, {"y", y}};
  return set;
}

void plus(const KernelCall& call) {
  for (int i = 0; i < 4; ++i) {
    call.outputs[0].as<float>()[i] = call.inputs[0].as<float>()[i] + call.inputs[1].as<float>()[i];
  }
}

TEST(Executor, RunsASteppedProgram) {
  const auto device = std::make_unique<CpuDevice>(0, KernelTable{{"plus", {.run = plus}}});
  const ProgramSet set = one_step();
  Executor executor(*device, set);
  const std::array<float, 4> x{1, 2, 3, 4}, w{10, 20, 30, 40};
  executor.upload("x", x.data(), sizeof(x));
  executor.upload("w", w.data(), sizeof(w));
  executor.run("forward");
  std::array<float, 4> y{};
  executor.download("y", y.data(), sizeof(y));
  EXPECT_EQ(y, (std::array<float, 4>{11, 22, 33, 44}));
}

std::vector<size_t> run_as_one;  // how many calls
void plus_together(const std::vector<const KernelCall*>& calls) {
  run_as_one.push_back(calls.size());
  for (const KernelCall* call : calls) plus(*call);
}

// y = x + w, z = x + w, then x = z + w, which must wait for both.
ProgramSet three_steps() {
  ProgramSet set = one_step();
  const Operand z{Arena::kInputs, 128, DType::kF32, {4}, 4};
  std::vector<Instruction>& steps = set.programs[0].instructions;
  steps.resize(3, steps[0]);
  steps[1].outputs = {z};
  steps[2].inputs[0] = z;
  steps[2].outputs = {set.named.at("x")};
  for (Instruction& step : steps) step.cost.flops = 4;
  set.named["z"] = z;
  return set;
}

TEST(Executor, RunsNeighboursTogetherThatAreIndependent) {
  const auto device = std::make_unique<CpuDevice>(
      0, KernelTable{{"plus", {.run = plus, .run_together = plus_together}}});
  const ProgramSet set = three_steps();
  Executor executor(*device, set);
  int before = 0;
  executor.run_before(
      "forward", [](const OpDef& op) { return op.name == "plus"; }, [&] { ++before; });
  const std::array<float, 4> x{1, 2, 3, 4}, w{10, 20, 30, 40};
  executor.upload("x", x.data(), sizeof(x));
  executor.upload("w", w.data(), sizeof(w));
  run_as_one.clear();
  executor.run("forward");
  EXPECT_EQ(run_as_one, (std::vector<size_t>{2}));
  EXPECT_EQ(before, 1);
  std::array<float, 4> result{};
  executor.download("x", result.data(), sizeof(result));
  EXPECT_EQ(result, (std::array<float, 4>{21, 42, 63, 84}));

  std::vector<bool> marks;
  executor.start_profile([&](bool begins) { marks.push_back(begins); });
  executor.run("forward");
  ASSERT_EQ(marks.size() % 2, 0u);  // before and after each span
  for (size_t i = 0; i < marks.size(); ++i) EXPECT_EQ(marks[i], i % 2 == 0) << i;
  const OpTime time = executor.profile().at("plus");
  EXPECT_EQ(time.calls, 3);
  EXPECT_EQ(time.flops, 12);
}

TEST(Executor, ArenasBeginAtZero) {
  const auto device = std::make_unique<CpuDevice>(0, KernelTable{{"plus", {.run = plus}}});
  const ProgramSet set = one_step();
  Executor executor(*device, set);
  std::array<float, 4> w{1, 1, 1, 1};
  executor.download("w", w.data(), sizeof(w));
  EXPECT_EQ(w, (std::array<float, 4>{}));
}

// Records what is started, and starts it anew.
class RecordingDevice : public CpuDevice {
 public:
  using CpuDevice::CpuDevice;
  std::unique_ptr<Recording> record(const std::function<void()>& steps) override {
    struct Again : Recording {
      Again(std::function<void()> what, int& count) : steps(std::move(what)), replays(count) {}
      void replay() override {
        ++replays;
        steps();
      }
      std::function<void()> steps;
      int& replays;
    };
    ++recorded;
    return std::make_unique<Again>(steps, replays);
  }
  int recorded = 0, replays = 0;
};

// The places in memory that "plus" wrote, in order.
std::vector<int64_t>& written() {
  static std::vector<int64_t> places;
  return places;
}

// `ops`: p an op of the device, c one that communicates, w one that waits for work of before.
ProgramSet mixed_program(std::string_view ops) {
  ProgramSet set = one_step();
  const Instruction plus = set.programs[0].instructions[0];
  set.programs[0].instructions.clear();
  for (const char op : ops) {
    Instruction& instruction = set.programs[0].instructions.emplace_back(plus);
    const int64_t place = 64 + 16 * std::ssize(set.programs[0].instructions);
    instruction.outputs = {Operand{Arena::kInputs, place, DType::kF32, {4}, 4}};
    if (op == 'c') instruction.attrs.set("axis", "tp");
    if (op == 'w') instruction.attrs.set("channel", int64_t{0});
  }
  return set;
}

int pieces_recorded_of(std::string_view ops, int expected_replays) {
  written().clear();
  RecordingDevice device(
      0, KernelTable{{"plus", {.run = [](const KernelCall& call) {
                        written().push_back(reinterpret_cast<int64_t>(call.outputs[0].data));
                      }}}});
  Communicators groups;
  groups["tp"] = std::make_unique<LocalCommunicator>("tp");
  const ProgramSet set = mixed_program(ops);
  Executor executor(device, set, &groups);
  executor.run("forward");
  const std::vector<int64_t> once = written();
  EXPECT_EQ(once.size(), ops.size());
  for (int run = 2; run <= 3; ++run) {
    written().clear();
    executor.run("forward");
    EXPECT_EQ(written(), once) << ops << ", run " << run;
  }
  EXPECT_EQ(device.replays, expected_replays) << ops;
  return device.recorded;
}

TEST(Executor, RecordsWhatLiesBetweenCollectives) {
  EXPECT_EQ(pieces_recorded_of("ppp", 2), 1);
  EXPECT_EQ(pieces_recorded_of("p", 2), 1);
  EXPECT_EQ(pieces_recorded_of("pwp", 2), 1);       // begins and ends within the piece
  EXPECT_EQ(pieces_recorded_of("ppcpppcp", 4), 2);  // one op is started as quickly
  EXPECT_EQ(pieces_recorded_of("cppwppc", 4), 2);   // may end what another piece began
  EXPECT_EQ(pieces_recorded_of("ccpc", 0), 0);
}

TEST(Executor, NamesTheOpThatTheDeviceLacks) {
  const auto device = std::make_unique<CpuDevice>(0, KernelTable{});
  const ProgramSet set = one_step();
  try {
    Executor executor(*device, set);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[plus] f32[4] f32[4]: device cpu has no kernel for it");
  }
}

TEST(Executor, RefusesWhatDoesNotFitThisMachine) {
  const auto device = std::make_unique<CpuDevice>(0, KernelTable{{"plus", {.run = plus}}});
  ProgramSet set = one_step();
  set.arena_bytes[static_cast<int>(Arena::kWeights)] = int64_t{1} << 50;
  try {
    Executor executor(*device, set);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoSpace);
    EXPECT_NE(std::string(error.what()).find("the program needs 1.13 PB"), std::string::npos)
        << error.what();
  }
}

// Each arena alone would fit. Allocating one after the other would end in an OOM kill, or in an
// error about the last arena after the others were taken in vain.
TEST(Executor, RefusesTheSumBeforeTheFirstArena) {
  const auto device = std::make_unique<CpuDevice>(0, KernelTable{{"plus", {.run = plus}}});
  const HostMemory before = read_host_memory();
  const int64_t part = before.tightest()->free_bytes / 10 * 6;
  ProgramSet set = one_step();
  set.arena_bytes[static_cast<int>(Arena::kWeights)] = part;
  set.arena_bytes[static_cast<int>(Arena::kGradients)] = part;
  EXPECT_THROW(Executor(*device, set), Error);
  EXPECT_LT(read_host_memory().own_bytes, before.own_bytes + (int64_t{64} << 20));
}

TEST(Executor, TheNullDeviceNeedsNoMemory) {
  const auto device = std::make_unique<NullDevice>(KernelTable{{"plus", {.run = plus}}});
  ProgramSet set = one_step();
  set.arena_bytes[static_cast<int>(Arena::kWeights)] = int64_t{1} << 50;  // more than there is
  const int64_t before = read_host_memory().own_bytes;
  Executor executor(*device, set);
  executor.run("forward");
  EXPECT_LT(read_host_memory().own_bytes - before, int64_t{16} << 20);
  EXPECT_THROW(Executor(*std::make_unique<CpuDevice>(0, KernelTable{{"plus", {.run = plus}}}), set),
               Error);
}

}  // namespace
}  // namespace skein
