// The skein program from outside: exit codes, what goes to which stream, suggestions, paths, help.
#include <regex>

#include "tests/testing.h"

namespace skein {
namespace {

// In a shell, for redirections; `skein` is the program.
Outcome run_shell(const std::string& script) {
  const TempFolder folder;
  const std::string text = fmt::format("skein() {{ '{}' \"$@\"; }}\n{}", default_program(), script);
  std::ofstream(folder / "script.sh") << text;
  return SkeinProcess({(folder / "script.sh").string()}, SkeinProcess::kNoFileLimit, "/bin/bash")
      .wait();
}

TEST(CommandLine, PrintsTheVersion) {
  for (const char* arguments : {"--version", "version"}) {
    const Outcome outcome = run_skein({arguments});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.out.substr(0, 6), "skein ");
    EXPECT_NE(outcome.out.find(", commit "), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find(" CUDA; "), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.err, "");
  }
  const Json json = parse_json(run_skein({"version", "--json"}).out, "version");
  EXPECT_TRUE(json.contains("compiler"));
  const std::string commit = json.at("commit");
  EXPECT_TRUE(std::regex_match(commit, std::regex("unknown|[0-9a-f]{12,}(-dirty)?"))) << commit;
  EXPECT_TRUE(json.at("cuda").is_boolean());
}

TEST(CommandLine, AWrongCommandLineIsExitCode2AndSaysWhatWasMeant) {
  const struct {
    Arguments arguments;
    const char* expected;
  } cases[] = {
      {{}, "A subcommand is required"},
      {{"repot", "x"}, "there is no command repot: did you mean report?"},
      {{"zzzzzzzzzz"}, "there is no command zzzzzzzzzz: --help says what there is\n"},
      {{"manul"}, "there is no command manul: --help"},  // what is hidden is not suggested
      {{"help"}, "there is no command help: skein --help lists the commands"},
      {{"resume", "runs/a"}, "there is no command resume: skein train with the same arguments"},
      {{"sweep"}, "there is no command sweep: skein train CONFIG --sweep KEY=V1,V2"},
      {{"finetune"}, "there is no command finetune: skein train CONFIG --set model.init_from"},
      {{"evaluate", "runs/a"}, "there is no command evaluate: skein eval asks a model"},
      {{"repot", "--help"}, "there is no command repot: did you mean report?"},
      {{"ingest", "--help"}, "there is no command ingest: did you mean data ingest?"},
      {{"data", "ingst", "--help"}, "there is no command ingst: did you mean ingest?"},
      {{"smple", "x"}, "there is no command smple: did you mean data sample?"},
      {{"--vrsion"}, "skein has no option --vrsion: did you mean --version?"},
      {{"report"}, "RUN_DIR is required"},
      {{"report", "x", "--jsn"}, "report has no option --jsn: did you mean --json?"},
      {{"why", "a", "b"}, "why does not expect b"},
      {{"data", "sample", "c.toml", "--step", "0"}, "--step: 0 is not a whole number from 1\n"},
      {{"data", "sample", "c.toml", "--step", "1e3"}, "--step: 1e3 is not a whole number from 1\n"},
      {{"generate", "--model", "m", "--prompt", "a", "--temperature", "-1"},
       "--temperature: -1 is not a number from 0\n"},
      {{"generate", "--model", "m", "--prompt", "a", "--seed", "-1"},
       "--seed: -1 is not a whole number from 0\n"},
      {{"report", "~somebody/run"}, "RUN_DIR: the path is '~somebody/run': only your own home"},
  };
  for (const auto& wrong : cases) {
    const Outcome outcome = run_skein(wrong.arguments);
    EXPECT_EQ(outcome.exit_code, 2) << wrong.expected;
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.find(std::string("skein: ") + wrong.expected), 0u) << outcome.err;
    EXPECT_LT(outcome.err.size(), 300u) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

// Keys of the configuration that are written as options, or without --set.
TEST(CommandLine, KeysOfTheConfigurationAreFoundBehindDashes) {
  const struct {
    Arguments arguments;
    const char* expected;
  } cases[] = {
      {{"train", "c.toml", "--steps", "5"},
       "train has no option --steps: did you mean --set run.steps=5?"},
      {{"train", "--steps", "5", "c.toml"}, "did you mean --set run.steps=5?"},
      {{"plan", "c.toml", "--learning-rate=1e-3"},
       "did you mean --set optimizer.learning_rate=1e-3?"},
      {{"train", "c.toml", "--run.seed", "7"}, "did you mean --set run.seed=7?"},
      {{"train", "c.toml", "--batch-size", "8"}, "did you mean --set batch.global_sequences=8?"},
      {{"plan", "c.toml", "--tp=8"}, "did you mean --set parallel.tensor=8?"},
      {{"train", "c.toml", "--fsdp", "4"},  // ranks there, and no value of the key here
       "did you mean --set parallel.zero=…? (3 shards weights"},
      {{"train", "c.toml", "--gradient-accumulation-steps", "8"},
       "train has no option --gradient-accumulation-steps: gradient accumulation: follows from"},
      {{"train", "c.toml", "--micro_sequence", "7"}, "--set batch.micro_sequences=7?"},
      {{"train", "c.toml", "--every_steps", "7"},
       "--set checkpoint.every_steps=7 or --set log.every_steps=7 or --set "
       "validate.every_steps=7?"},
      {{"train", "c.toml", "--sett", "run.seed=7"}, "did you mean --set?"},
      {{"plan", "c.toml", "--jsno"}, "did you mean --json?"},
      {{"train", "c.toml", "run.seed=7"}, "run.seed=7 stands alone: did you mean --set run.seed=7"},
      {{"train", "--set", "run.seed=7", "run.steps=5", "c.toml"}, "did you mean --set run.steps=5"},
  };
  for (const auto& wrong : cases) {
    expect_refused(run_skein(wrong.arguments), 2, {wrong.expected});
  }
}

TEST(CommandLine, SetTakesOneValueWhereverItStands) {
  const TempFolder folder;
  const std::string file = (folder / "c.toml").string();
  std::ofstream(file) << "[data]\ntrain = \"c\"\ntokenizer = \"t\"\n";
  // The last of equals counts, and each is read: only the last key is wrong.
  expect_refused(run_skein({"train", "--set", "run.steps=3", file, "--set", "run.stepz=4"}), 2,
                 {"--set run.stepz=4: unknown key stepz"});
  expect_refused(run_skein({"train", "--set", "rnu.steps=3", "--set", "run.steps=4", file}), 2,
                 {"--set rnu.steps=3: unknown section"});
}

TEST(CommandLine, AFailureIsExitCode1AndOneLine) {
  const Outcome outcome = run_skein({"report", "/nowhere"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "skein: /nowhere: expected a run folder, with metrics.jsonl or events.jsonl\n");
  expect_refused(
      run_skein({"generate", "--model", "/nowhere", "--prompt", "a"}), 2,
      {"/nowhere is not a folder: expected a run, a checkpoint or a Hugging Face model"});
}

// A run's folder stands for its configuration.
TEST(CommandLine, AFolderIsTheConfigurationInIt) {
  const TempFolder folder;
  const std::string path = folder.path().string();
  expect_refused(run_skein({"train", path}), 2,
                 {path + " is a folder without a config.toml", "expected a configuration file"});
  std::ofstream(folder / "config.toml") << "[run]\nstepz = 4\n";
  for (const char* command : {"train", "plan"}) {
    // Without them training starts itself again, and reads the command line twice.
    const Outcome outcome =
        run_shell(fmt::format("unset OMP_WAIT_POLICY GOMP_SPINCOUNT; skein {} {}", command, path));
    expect_refused(outcome, 2, {path + "/config.toml:2", "unknown key stepz"});
    EXPECT_EQ(outcome.err.rfind("reading " + path + "/config.toml\n"), 0u) << outcome.err;
  }
}

// A thread that spins takes processor time for the wait of another, so the steps that --calibrate
// measures spin as those of training do. What OpenMP began with is printed before the
// configuration is refused.
TEST(CommandLine, CalibratingSpinsAsBrieflyAsTraining) {
  const Outcome outcome = run_shell(
      "unset OMP_WAIT_POLICY GOMP_SPINCOUNT; OMP_DISPLAY_ENV=verbose skein plan /nowhere.toml "
      "--calibrate /nowhere/hardware.toml");
  EXPECT_NE(outcome.err.find("GOMP_SPINCOUNT = '10000'"), std::string::npos) << outcome.err;
}

TEST(CommandLine, ReportsARun) {
  const TempFolder folder;
  std::ofstream(folder / "metrics.jsonl") << "{\"step\": 1, \"loss\": 2.5}\n{\"step\": 2, \"lo";
  const Outcome text = run_skein({"report", folder.path().string()});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_NE(text.out.find("2.5000 at step 1"), std::string::npos) << text.out;
  const Outcome json = run_skein({"report", "--json", folder.path().string()});
  EXPECT_EQ(json.exit_code, 0);
  EXPECT_EQ(json.err, "");
  EXPECT_EQ(parse_json(json.out, "report").at("final_loss"), 2.5);
  EXPECT_EQ(parse_json(json.out, "report").at("bad_lines"), 1);
}

// What was printed and did not arrive is a failure, whatever printed it.
TEST(CommandLine, OutputThatDoesNotArriveIsAFailure) {
  const TempFolder folder;
  std::ofstream(folder / "metrics.jsonl") << "{\"step\": 1, \"loss\": 2.5}\n";
  const std::string run = folder.path().string();
  for (const std::string& command :
       {std::string("--version"), std::string("--help"), std::string("version --json"),
        std::string("completion bash"), "report " + run, "report --json " + run}) {
    SCOPED_TRACE(command);
    expect_refused(run_shell("skein " + command + " >/dev/full"), 1,
                   {"cannot write to standard output", "No space left on device"});
    expect_refused(run_shell("skein " + command + " >&-"), 1,
                   {"cannot write to standard output", "Bad file descriptor"});
  }
  EXPECT_EQ(run_shell("skein report /nowhere >/dev/full").exit_code, 1);
}

TEST(CommandLine, TheTildeIsTheHomeFolder) {
  const TempFolder folder;
  fs::create_directories(folder / "run");
  std::ofstream(folder / "run/metrics.jsonl") << "{\"step\": 1, \"loss\": 2.5}\n";
  const std::string home = "HOME='" + folder.path().string() + "'; export HOME; ";
  EXPECT_EQ(run_shell(home + "skein report '~/run'").exit_code, 0);
  std::ofstream(folder / "c.toml") << "[data]\ntrain = \"~/c.arrow\"\ntokenizer = \"t\"\n";
  const Outcome train = run_shell(home + "skein train '~/c.toml' --set run.dir=~you/x");
  expect_refused(train, 2, {"--set run.dir=~you/x", "dir in [run] is '~you/x'", "in full"});
}

// The names of all commands, hidden ones left out: "data ingest", ….
std::vector<std::string> command_names(const std::string& prefix = "") {
  Arguments arguments = {"--help"};
  if (!prefix.empty()) arguments.insert(arguments.begin(), prefix);
  std::istringstream help(run_skein(arguments).out);
  std::vector<std::string> names;
  bool listed = false;
  for (std::string line; std::getline(help, line);) {
    if (line.empty()) listed = false;
    if (listed) {
      const std::string name = line.substr(2, line.find(' ', 2) - 2);
      const std::vector<std::string> below = prefix.empty() ? command_names(name) : Arguments{};
      if (below.empty()) names.push_back(prefix.empty() ? name : prefix + " " + name);
      names.insert(names.end(), below.begin(), below.end());
    }
    if (line == "Subcommands:") listed = true;
  }
  return names;
}

TEST(CommandLine, EveryHelpEndsWithExamplesOfOptionsThatThereAre) {
  const std::vector<std::string> names = command_names();
  EXPECT_GE(names.size(), 14u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    Arguments arguments = {name.substr(0, name.find(' ')), "--help"};
    if (name.find(' ') != std::string::npos) {
      arguments.insert(arguments.begin() + 1, name.substr(name.find(' ') + 1));
    }
    const Outcome help = run_skein(arguments);
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_EQ(help.err, "");
    const size_t at = help.out.find("\nExamples:\n");
    ASSERT_NE(at, std::string::npos) << help.out;
    const std::string examples = help.out.substr(at);
    EXPECT_NE(examples.find("skein " + name), std::string::npos) << examples;
    const std::regex option("--[a-z][a-z-]*");
    for (std::sregex_iterator it(examples.begin(), examples.end(), option), end; it != end; ++it) {
      EXPECT_NE(help.out.substr(0, at).find("  " + it->str()), std::string::npos) << it->str();
    }
    // One set of words for kinds of values.
    for (const char* kind : {"TEXT:", " INT", " UINT", " FLOAT", "POSITIVE", "NONNEGATIVE"}) {
      EXPECT_EQ(help.out.find(kind), std::string::npos) << help.out;
    }
  }
}

TEST(CommandLine, TheManualPageAndTheCompletionsKnowEveryCommand) {
  const std::string manual = run_skein({"manual"}).out;
  const std::string bash = run_skein({"completion", "bash"}).out;
  const std::string zsh = run_skein({"completion", "zsh"}).out;
  const std::string fish = run_skein({"completion", "fish"}).out;
  EXPECT_EQ(manual.find(".TH SKEIN 1"), 0u);
  EXPECT_NE(manual.find(".TP\nSKEIN_CPU\n"), std::string::npos);
  for (const std::string& name : command_names()) {
    EXPECT_NE(manual.find(".SS skein " + name + "\n"), std::string::npos) << name;
    EXPECT_NE(bash.find("'" + name + "') words="), std::string::npos) << name;
    EXPECT_NE(zsh.find("'" + name + "') "), std::string::npos) << name;
    EXPECT_NE(fish.find("'__skein_at " + name + "'"), std::string::npos) << name;
  }
  for (const std::string& text : {manual, bash, zsh, fish}) {
    EXPECT_NE(text.find("validation"), std::string::npos);
    EXPECT_EQ(text.find("{}"), std::string::npos);
  }
}

// In a real bash: what is offered where.
TEST(CommandLine, BashCompletes) {
  const struct {
    const char* words;
    Words offered;
    const char* not_offered;
  } cases[] = {{"skein da", {"data\n"}, "train"},
               {"skein data ''", {"ingest\n", "tokenizer\n"}, "train"},
               {"skein data ingest --", {"--out\n", "--validation-out\n"}, "--vocab-size"},
               {"skein train --set optimizer.be", {"optimizer.beta1=\n"}, "run.steps"},
               {"skein report --j", {"--json\n"}, "--out"},
               {"skein report /usr/inc", {"/usr/include\n"}, "--json"}};
  for (const auto& typed : cases) {
    const Outcome outcome =
        run_shell(fmt::format("source <(skein completion bash)\n"
                              "COMP_WORDS=({})\nCOMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n_skein\n"
                              "printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
                              typed.words));
    for (const std::string& word : typed.offered) {
      EXPECT_NE(outcome.out.find(word), std::string::npos) << typed.words << ": " << outcome.out;
    }
    EXPECT_EQ(outcome.out.find(typed.not_offered), std::string::npos) << outcome.out;
  }
}

}  // namespace
}  // namespace skein
