#include "skein/record/files/op_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "skein/base/files/file.h"
#include "skein/base/text/json.h"
#include "skein/ops/redistribute/redistribute.h"
#include "skein/ops/rms_norm/rms_norm.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

Instruction half_of(const OpDef& op, int64_t channel) {
  Instruction instruction;
  instruction.op = &op;
  instruction.scope = "layers.3";
  instruction.attrs.set("axis", std::string("tp"));
  instruction.attrs.set("kind", std::string("all_gather"));
  instruction.attrs.set("channel", channel);
  return instruction;
}

// Two collectives under way at once, one channel used twice.
TEST(OpTrace, CollectivesLastFromTheirStartToTheEndOfTheirWait) {
  const Instruction start = half_of(kRedistributeStart, 1), wait = half_of(kRedistributeWait, 1);
  const Instruction other = half_of(kRedistributeStart, 2), ends = half_of(kRedistributeWait, 2);
  Instruction norm;
  norm.op = &kRmsNorm;
  const std::vector<OpSpan> spans = {
      {&start, 1, "forward", 0, 10, 10.5}, {&other, 1, "forward", 0, 10.5, 11},
      {&norm, 1, "forward", 0, 11, 13},    {&wait, 1, "forward", 0, 13, 14},
      {&start, 1, "backward", 0, 14, 15},  {&wait, 1, "backward", 0, 16, 17},
      {&ends, 1, "backward", 0, 17, 18}};
  const test::TempFolder folder;
  write_op_trace(spans, 2, folder / "trace.json");
  const Json trace = Json::parse(read_file(folder / "trace.json"));
  std::map<int64_t, std::pair<double, double>> beside;
  int64_t ops = 0;
  for (const Json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    ops += phase == "X" ? 1 : 0;
    if (phase != "b" && phase != "e") continue;
    EXPECT_EQ(event.at("name"), "all_gather over tp");
    EXPECT_EQ(event.at("args").at("scope"), "layers.3");
    auto& [from, to] = beside[event.at("id")];
    (phase == "b" ? from : to) = event.at("ts").get<double>() * 1e-6;
  }
  EXPECT_EQ(ops, 7);
  EXPECT_EQ(beside, (std::map<int64_t, std::pair<double, double>>{
                        {1, {0, 4}}, {2, {4, 7}}, {3, {0.5, 8}}}));
}

}  // namespace
}  // namespace skein
