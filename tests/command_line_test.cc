// The skein program from outside: exit codes, what goes to which stream, suggestions.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "skein/base/file.h"
#include "skein/base/json.h"

namespace skein {
namespace {

struct Outcome {
  int exit_code;
  std::string out;
  std::string err;
};

Outcome run_skein(const std::string& arguments) {
  const std::string name = fmt::format("{}/command_line-{}", testing::TempDir(), ::getpid());
  const std::string out = name + ".out", err = name + ".err";
  const int status =
      std::system(fmt::format("{} {} >{} 2>{}", SKEIN_BINARY, arguments, out, err).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(out), read_file(err)};
}

TEST(CommandLine, PrintsTheVersion) {
  for (const char* arguments : {"--version", "version"}) {
    const Outcome outcome = run_skein(arguments);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.out.substr(0, 6), "skein ");
    EXPECT_EQ(outcome.err, "");
  }
  const Outcome json = run_skein("version --json");
  EXPECT_TRUE(parse_json(json.out, "version").contains("compiler"));
}

TEST(CommandLine, HelpIsNoMistake) {
  const Outcome outcome = run_skein("--help");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.out.find("report"), std::string::npos);
}

TEST(CommandLine, AWrongCommandLineIsExitCode2) {
  const struct {
    const char* arguments;
    const char* expected;
  } cases[] = {{"", "skein: A subcommand is required"},
               {"repot x", "skein: there is no command repot: did you mean report?"},
               {"zzzzzzzzzz", "skein: there is no command zzzzzzzzzz\n"},
               {"report", "skein: RUN_DIR is required"},
               {"report x --jsn", "skein: The following argument was not expected: --jsn"}};
  for (const auto& wrong : cases) {
    const Outcome outcome = run_skein(wrong.arguments);
    EXPECT_EQ(outcome.exit_code, 2) << wrong.arguments;
    EXPECT_EQ(outcome.out, "") << wrong.arguments;
    EXPECT_EQ(outcome.err.find(wrong.expected), 0u) << outcome.err;
  }
}

TEST(CommandLine, AFailureIsExitCode1AndOneLine) {
  const Outcome outcome = run_skein("report /nowhere");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "skein: /nowhere: expected a run folder, with metrics.jsonl or events.jsonl\n");
}

TEST(CommandLine, ReportsARun) {
  const fs::path folder = fs::path(testing::TempDir()) / "command_line_run";
  fs::create_directories(folder);
  std::ofstream(folder / "metrics.jsonl") << "{\"step\": 1, \"loss\": 2.5}\n{\"step\": 2, \"lo";
  const Outcome text = run_skein("report " + folder.string());
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_NE(text.out.find("2.5000 at step 1"), std::string::npos) << text.out;
  const Outcome json = run_skein("report --json " + folder.string());
  EXPECT_EQ(json.exit_code, 0);
  EXPECT_EQ(json.err, "");
  EXPECT_EQ(parse_json(json.out, "report").at("final_loss"), 2.5);
  EXPECT_EQ(parse_json(json.out, "report").at("bad_lines"), 1);
}

}  // namespace
}  // namespace skein
