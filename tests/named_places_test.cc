// Places that people name: what no command can use is refused before anything is made, by every
// option that is a path; variables and the home folder are put in; a run keeps what was written.
#include <regex>

#include "tests/testing.h"

namespace skein {
namespace {

const TinyJob& job() {
  static const TinyJob job;
  return job;
}

struct PathOption {
  Arguments command;  // with subcommands
  std::string name;   // "--out", or "INPUT" of an argument
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Every option and argument whose kind is PATH, as --help shows them.
void find_path_options(const Arguments& command, std::vector<PathOption>& found) {
  Arguments help = command;
  help.push_back("--help");
  static const std::regex kOption(R"(^  (?:-\w,)?(--[\w-]+|[A-Z][\w.|]*) PATH\b.*)");
  static const std::regex kCommand(R"(^  ([a-z]+) .*)");
  bool in_commands = false;
  for (const std::string& line : lines_of(run_skein(help).out)) {
    std::smatch match;
    if (line.empty() || line == "Subcommands:") in_commands = !line.empty();
    if (std::regex_match(line, match, kOption)) found.push_back({command, match[1]});
    if (in_commands && std::regex_match(line, match, kCommand)) {
      Arguments below = command;
      below.push_back(match[1]);
      find_path_options(below, found);
    }
  }
}

// The program in a folder of its own, where what it makes is seen.
Outcome run_in(const fs::path& folder, const Arguments& arguments) {
  Arguments wrapped = {"-C", folder.string(), default_program()};
  wrapped.insert(wrapped.end(), arguments.begin(), arguments.end());
  return SkeinProcess(wrapped, SkeinProcess::kNoFileLimit, "/usr/bin/env").wait();
}

TEST(NamedPlaces, EveryPathOfEveryCommandIsParsed) {
  unsetenv("SKEIN_TEST_NONE");
  std::vector<PathOption> options;
  find_path_options({}, options);
  EXPECT_GE(options.size(), 40u);
  const TempFolder folder;
  for (const PathOption& option : options) {
    for (const auto& [path, words] : {std::pair("gs://b/x", "gs:// is not known here"),
                                      {"hf://a/b", "hf download"},
                                      {"${SKEIN_TEST_NONE}/x", "SKEIN_TEST_NONE is not set"},
                                      {"$HOME/x", "${HOME}"}}) {
      SCOPED_TRACE(fmt::format("{} {} {}", fmt::join(option.command, " "), option.name, path));
      Arguments arguments = option.command;
      if (option.name.starts_with("--")) arguments.push_back(option.name);
      arguments.push_back(path);
      expect_refused(run_in(folder.path(), arguments), 2, {option.name + ": ", path, words});
    }
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(NamedPlaces, WhatEndedWellWithAFolderOfThatNameIsRefused) {
  const TempFolder folder;
  std::ofstream(folder / "a.txt") << "some text\n";
  const std::string corpus = job().corpus().string();
  for (const char* out : {"gs://b/x", "hf://a/b", "$HOME/x", "${SKEIN_TEST_NONE}/x"}) {
    for (const Arguments& arguments :
         {Arguments{"data", "ingest", "--out", out, "a.txt"},
          {"data", "clean", "--out", out, "a.txt"},
          {"data", "dedup", "--out", out, "a.txt"},
          {"data", "tokenizer", "--vocab-size", "300", "--out", out, corpus},
          {"checkpoint", "export", job().folder.path().string(), "--out", out},
          {"train", job().config().string(), "--set", std::string("run.dir=") + out},
          {"train", job().config().string(), "--set", std::string("checkpoint.dir=") + out}}) {
      SCOPED_TRACE(fmt::format("{}", fmt::join(arguments, " ")));
      expect_refused(run_in(folder.path(), arguments), 2, {out});
    }
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);  // a.txt
}

TEST(NamedPlaces, VariablesMeanTheSameEverywhereAndStayInTheRunFolder) {
  setenv("SKEIN_TEST_FOLDER", job().folder.path().c_str(), 1);
  const Outcome ingested = run_skein(
      {"data", "ingest", "--out", "${SKEIN_TEST_FOLDER}/named.arrow", job().corpus().string()});
  ASSERT_EQ(ingested.exit_code, 0) << ingested.err;
  EXPECT_TRUE(fs::exists(job().folder / "named.arrow"));
  const Overrides named = {"data.train=${SKEIN_TEST_FOLDER}/named.arrow",
                           "run.dir=${SKEIN_TEST_FOLDER}/named"};
  const Outcome first = job().train("named", named + Overrides{"run.steps=2", "launch.workers=2"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const std::string config = read_file(job().run("named") / "config.toml");
  EXPECT_NE(config.find("train = \"${SKEIN_TEST_FOLDER}/named.arrow\""), config.npos) << config;
  EXPECT_NE(config.find("dir = \"{config_dir}\""), config.npos) << config;
  // The folder goes on as long as the variable is there, and keeps it.
  const Arguments folder = {"train", job().run("named").string()};
  EXPECT_EQ(run_skein(folder + Arguments{"--set", "run.steps=3"}).exit_code, 0);
  EXPECT_EQ(read_file(job().run("named") / "config.toml").find(job().folder.path().string()),
            std::string::npos);
  unsetenv("SKEIN_TEST_FOLDER");
  expect_refused(run_skein(folder + Arguments{"--set", "run.steps=4"}), 2,
                 {"SKEIN_TEST_FOLDER is not set"});
  // By another name it is the same file.
  const std::string corpus = (job().folder / "named.arrow").string();
  const Outcome in_full = job().train("named", Overrides{"run.steps=4", "data.train=" + corpus});
  EXPECT_EQ(in_full.exit_code, 0) << in_full.err;
  EXPECT_EQ(in_full.err.find("data.train"), std::string::npos) << in_full.err;
}

}  // namespace
}  // namespace skein
