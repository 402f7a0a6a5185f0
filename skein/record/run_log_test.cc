// A run's numbers of starts, on what a power cut may leave of its files.
#include "skein/record/run_log.h"

#include <gtest/gtest.h>

#include <fstream>

#include "skein/record/jsonl.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

// Else its steps could not be told from those of the start before.
TEST(RunLog, AStartHasANumberOfItsOwnWhereTheLineOfTheOneBeforeIsLost) {
  const test::TempFolder folder;
  for (const char* end : {"\n", ""}) {  // of the last line of metrics, which is whole
    const fs::path dir = folder / (std::string("run") + (*end == '\n' ? "-whole" : "-torn"));
    fs::create_directories(dir);
    std::ofstream(dir / "events.jsonl") << "{\"event\": \"start\", \"number\": 1}\n";
    std::ofstream(dir / "metrics.jsonl") << "{\"step\": 3, \"loss\": 1, \"start\": 2}" << end;
    Config config;
    config.run.dir = dir.string();
    RunLog(config, {}).start(3, "checkpoints/step-00000003", {});
    int64_t number = 0;
    for_each_json_line(dir / "events.jsonl", [&](const Json& json) { number = json.at("number"); });
    EXPECT_EQ(number, 3);
  }
}

}  // namespace
}  // namespace skein
