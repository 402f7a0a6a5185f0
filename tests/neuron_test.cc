// The way to AWS Trainium, judged by programs that stand for Neuron's: the compiler neuronx-cc,
// which reads every byte of the HLO, and the plugin libneuronpjrt.so, which runs what it gets on
// XLA for CPUs. Nothing here tells what the real ones do. Skipped where there is no plugin.
#include "skein/backends/backend.h"
#include "tests/pjrt/plugin.h"
#include "tests/places.h"
#include "tests/trained_job.h"

namespace skein {
namespace {

const TrainedJob& job() {
  static const TrainedJob job;
  return job;
}

std::string plugin() { return pjrt_test::plugin_path(kSourceFolder); }
fs::path stand_ins() { return fs::path(kSourceFolder) / "tests" / "neuron"; }

class Neuron : public testing::Test {
 protected:
  void SetUp() override {
    const Backend& backend = find_backend_to_plan("pjrt");
    if (!backend.only_plans.empty()) GTEST_SKIP() << backend.only_plans;
    if (plugin().empty()) {
      GTEST_SKIP() << "no PJRT plugin: scripts/test_tools.sh unpacks one";
    }
  }
};

// A variable of this process and its children, as long as it lives; then what it was.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* former = std::getenv(name)) former_ = former;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { former_ ? ::setenv(name_, former_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> former_;
};

// ---- HLO for neuronx-cc

Arguments write_hlo(const fs::path& folder, const Overrides& overrides, Arguments more = {}) {
  Arguments arguments =
      job().arguments("plan", "planned", overrides + Overrides{"device.pjrt_plugin=" + plugin()});
  arguments.insert(arguments.end(), {"--write-hlo", folder.string(), "--for", "trn1"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// Compiles what was written with the stand-in; what it read, by program.
std::map<std::string, OrderedJson> compiled(const fs::path& folder) {
  const Variable path("PATH", stand_ins().string() + ":" + std::getenv("PATH"));
  EXPECT_EQ(std::system(("sh '" + (folder / "compile.sh").string() + "'").c_str()), 0);
  std::map<std::string, OrderedJson> read;
  for (const OrderedJson& program : OrderedJson::parse(read_file(folder / "programs.json"))) {
    const std::string neff = program.at("neff");
    read[program.at("program")] = OrderedJson::parse(read_file(folder / neff));
  }
  return read;
}

// "f32[64,176]" of {"element": "f32", "dims": [64, 176]}
std::string array_text(const OrderedJson& array) {
  static const std::map<std::string, std::string> names = {
      {"i32", "s32"}, {"ui32", "u32"}, {"ui16", "u16"}, {"ui8", "u8"}, {"i1", "pred"}};
  const std::string element = array.at("element");
  const auto name = names.find(element);
  const std::vector<int64_t> dims = array.at("dims");
  return fmt::format("{}[{}]", name == names.end() ? element : name->second, fmt::join(dims, ","));
}

void expect_same_signature(const OrderedJson& program, const OrderedJson& read) {
  std::vector<std::string> arguments, results;
  for (const OrderedJson& array : program.at("arguments")) arguments.push_back(array_text(array));
  for (const OrderedJson& array : program.at("results")) results.push_back(array_text(array));
  EXPECT_EQ(read.at("parameters").get<std::vector<std::string>>(), arguments);
  const std::string result =
      results.size() == 1 ? results[0] : fmt::format("({})", fmt::join(results, ", "));
  EXPECT_EQ(read.at("result"), result);
  EXPECT_EQ(read.at("module"), program.at("program"));
  EXPECT_EQ(read.at("instructions"), program.at("instructions"));
  const std::vector<int> donated = program.at("donated");
  std::map<std::string, int> aliases;
  for (size_t i = 0; i < donated.size(); ++i) {
    if (donated[i] >= 0) aliases[std::to_string(i)] = donated[i];
  }
  EXPECT_EQ((read.at("aliases").get<std::map<std::string, int>>()), aliases);
}

TEST_F(Neuron, ACompilerReadsEveryProgramOfAStep) {
  for (const char* precision : {"fp32", "bf16-sr", "mixed"}) {
    SCOPED_TRACE(precision);
    const TempFolder folder;
    const Outcome outcome =
        TinyJob::must(write_hlo(folder.path(), {std::string("precision.mode=") + precision}));
    EXPECT_NE(outcome.out.find("compiles them for trn1"), std::string::npos) << outcome.out;
    const auto read = compiled(folder.path());
    const OrderedJson programs = OrderedJson::parse(read_file(folder.path() / "programs.json"));
    ASSERT_GE(programs.size(), 3u);
    for (const OrderedJson& program : programs) {
      expect_same_signature(program, read.at(program.at("program")));
    }
    for (const char* name : {"forward", "backward", "update"}) {
      ASSERT_TRUE(read.contains(name));
      EXPECT_FALSE(read.at(name).at("parameters").empty());
    }
    EXPECT_FALSE(read.at("update").at("aliases").empty());
    const std::map<std::string, std::string> options = {
        {"--framework", "XLA"},       {"--target", "trn1"},
        {"--auto-cast", "none"},      {"--model-type", "transformer"},
        {"--optlevel", "2"},          {"--distribution-strategy", "llm-training"},
        {"--output", "forward.neff"}, {"--logfile", "forward.log"}};
    OrderedJson given = read.at("forward").at("options");
    EXPECT_EQ(given.at("--enable-saturate-infinity"), true);
    given.erase("--enable-saturate-infinity");
    EXPECT_EQ((given.get<std::map<std::string, std::string>>()), options);
  }
}

TEST_F(Neuron, GroupsOfCollectivesReachACompilerOfAnOlderXla) {
  const TempFolder folder;
  TinyJob::must(write_hlo(folder.path(), {"parallel.tensor=2", "batch.micro_sequences=1"},
                          {"--ranks", "4", "--optlevel", "1"}));
  const auto read = compiled(folder.path());
  const std::vector<std::vector<int>> tensor = {{0, 1}, {2, 3}}, data = {{0, 2}, {1, 3}};
  const auto groups = read.at("forward").at("groups");
  ASSERT_FALSE(groups.empty());
  for (const OrderedJson& one : groups) {
    EXPECT_EQ((one.get<std::vector<std::vector<int>>>()), tensor);
  }
  std::set<std::vector<std::vector<int>>> of_update;
  for (const OrderedJson& one : read.at("update").at("groups")) of_update.insert(one);
  EXPECT_TRUE(of_update.contains(data));
  EXPECT_EQ(read.at("forward").at("options").at("--optlevel"), "1");
}

TEST_F(Neuron, WhatTrainiumLacksIsListedBeforeAnythingIsWritten) {
  const TempFolder folder;
  const fs::path to = folder.path() / "hlo";
  // The number of an element of its embedding takes more than 32 bits.
  const Overrides huge = {"precision.mode=bf16-sr", "model.vocab_size=2097152",
                          "model.hidden_size=4096"};
  expect_refused(run_skein(write_hlo(to, huge)), 1,
                 {"--for trn1: the programs have", "update: adamw_", "64-bit integers",
                  "--native-int64", "docs/trainium.md"});
  EXPECT_FALSE(fs::exists(to));
}

TEST_F(Neuron, MistakesOfTheCommandLine) {
  const TempFolder folder;
  const Arguments plan = job().arguments("plan", "planned", {});
  const std::string to = folder.path().string();
  expect_refused(run_skein(plan + Arguments{"--write-hlo", to}), 2, {"--write-hlo", "--for"});
  expect_refused(run_skein(plan + Arguments{"--for", "trn1"}), 2, {"--for is trn1", "--write-hlo"});
  expect_refused(run_skein(plan + Arguments{"--write-hlo", to, "--for", "trn9"}), 2, {"trn9"});
  expect_refused(run_skein(plan + Arguments{"--write-hlo", to, "--for", "trn1"}), 2,
                 {"device.pjrt_plugin is empty", "XLA for CPUs"});
  const Overrides no_plugin = {"device.pjrt_plugin=/nowhere/plugin.so"};
  expect_refused(run_skein(job().arguments("plan", "planned", no_plugin) +
                           Arguments{"--write-hlo", to, "--for", "trn1"}),
                 2, {"/nowhere/plugin.so"});
}

// ---- A plugin that behaves as Neuron's

// The stand-in in a folder as pip makes it, of the Python that this machine has.
class NeuronPlugin {
 public:
  explicit NeuronPlugin(const std::string& python) {
    package_ = folder_.path() / "lib" / python / "site-packages" / "libneuronxla";
    fs::create_directories(package_);
    fs::copy(stand_ins() / "libneuronxla" / "__init__.py", package_);
    fs::copy(built(), package_);
  }
  static fs::path built() {
    return fs::path(kProgram).parent_path() / "neuron" / "libneuronpjrt.so";
  }
  std::string path() const { return (package_ / "libneuronpjrt.so").string(); }
  fs::path package() const { return package_; }
  fs::path report() const { return folder_.path() / "report"; }
  std::vector<std::string> lines() const {
    std::vector<std::string> lines;
    std::istringstream stream(fs::exists(report()) ? read_file(report()) : "");
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }

 private:
  TempFolder folder_;
  fs::path package_;
};

// "python3.11", whose library the loader finds; "": none.
std::string python_of_this_machine() {
  for (int minor = 8; minor < 20; ++minor) {
    const std::string name = fmt::format("libpython3.{}.so.1.0", minor);
    for (const char* folder :
         {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/lib/x86_64-linux-gnu"}) {
      if (fs::exists(fs::path(folder) / name)) return fmt::format("python3.{}", minor);
    }
  }
  return "";
}

class NeuronTraining : public Neuron {
 protected:
  void SetUp() override {
    Neuron::SetUp();
    if (IsSkipped()) return;
    if (python_of_this_machine().empty()) GTEST_SKIP() << "no libpython3.N.so.1.0";
    if (!fs::exists(NeuronPlugin::built()))
      GTEST_SKIP() << NeuronPlugin::built() << " is not built";
  }
};

Overrides on(const NeuronPlugin& neuron, const Overrides& more, const char* precision = "fp32") {
  return TrainedJob::with(
      more + Overrides{"device.kind=pjrt", "device.pjrt_plugin=" + neuron.path()}, precision);
}

std::map<int64_t, double> losses_of(const fs::path& run) {
  std::map<int64_t, double> losses;
  for (const OrderedJson& json : read_json_lines(run / "metrics.jsonl")) {
    if (json.contains("loss")) losses[json.at("step")] = json.at("loss");
  }
  return losses;
}

void expect_near(const std::map<int64_t, double>& curve, const std::map<int64_t, double>& want,
                 double relative) {
  ASSERT_EQ(curve.size(), want.size());
  for (const auto& [step, loss] : want) {
    EXPECT_NEAR(curve.at(step), loss, relative * loss) << "step " << step;
  }
}

// Programs without 64-bit numbers have the losses of all others.
TEST_F(NeuronTraining, HasTheLossesOfTheCpuWithout64BitNumbers) {
  const NeuronPlugin neuron(python_of_this_machine());
  const Variable runs_on("FAKE_NEURON_RUNS_ON", plugin());
  const Variable report("FAKE_NEURON_REPORT", neuron.report().string());
  const Variable flags("NEURON_CC_FLAGS", "--optlevel=1");
  const Outcome outcome = job().train("neuron", on(neuron, {"run.steps=20"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  job().trained("cpu", TrainedJob::with({"run.steps=20"}));
  expect_near(losses_of(job().run("neuron")), losses_of(job().run("cpu")), 1e-5);

  const std::vector<std::string> lines = neuron.lines();
  size_t compilations = 0;
  for (const std::string& line : lines) {
    EXPECT_FALSE(line.starts_with("WRONG")) << line;
    compilations += line.starts_with("Python compiles") ? 1 : 0;
  }
  EXPECT_GE(compilations, 3u);
  for (const char* line : {"flags --optlevel=1", "cores 0", "opened", "created a client of 1"}) {
    EXPECT_NE(std::find(lines.begin(), lines.end(), line), lines.end()) << line;
  }
  for (const char* word : {"Neuron's plugin: set NEURON_COMPILE_CACHE_URL=",
                           "kept NEURON_CC_FLAGS=--optlevel=1", "runs in this process"}) {
    EXPECT_NE(outcome.err.find(word), std::string::npos) << outcome.err << "\nexpected: " << word;
  }
}

TEST_F(NeuronTraining, RoundsStochasticallyAsTheCpuDoes) {
  const NeuronPlugin neuron(python_of_this_machine());
  const Variable runs_on("FAKE_NEURON_RUNS_ON", plugin());
  const Variable report("FAKE_NEURON_REPORT", neuron.report().string());
  job().trained("neuron_sr", on(neuron, {"run.steps=20"}, "bf16-sr"));
  job().trained("cpu_sr", TrainedJob::with({"run.steps=20"}, "bf16-sr"));
  expect_near(losses_of(job().run("neuron_sr")), losses_of(job().run("cpu_sr")), 5e-3);
}

TEST_F(NeuronTraining, SaysWhatItLacks) {
  const NeuronPlugin neuron(python_of_this_machine());
  const Variable runs_on("FAKE_NEURON_RUNS_ON", plugin());
  const Variable report("FAKE_NEURON_REPORT", neuron.report().string());
  {
    const Variable library("SKEIN_PYTHON_LIBRARY", "/nowhere/libpython3.so");
    const Outcome outcome = job().train("no_python", on(neuron, {}));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find("/nowhere/libpython3.so"), std::string::npos) << outcome.err;
  }
  fs::remove_all(neuron.package() / "__init__.py");
  std::ofstream(neuron.package() / "__init__.py") << "raise ImportError('broken')\n";
  const Outcome outcome = job().train("no_package", on(neuron, {}));
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("does not find the module libneuronxla"), std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace skein
