// What the tests of the whole program share: running it as a user does, and a tiny training job.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/base/text/json.h"
#include "tests/places.h"
#include "tests/temp_folder.h"

namespace skein {

using Arguments = std::vector<std::string>;
using Overrides = std::vector<std::string>;  // KEY=VALUE

inline Overrides operator+(Overrides a, const Overrides& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
using Seconds = std::chrono::duration<double>;

using test::TempFolder;

struct Outcome {
  int exit_code = -1;  // -signal where a signal ended it
  std::string out;
  std::string err;
  double seconds = 0;
  int64_t peak_resident_bytes = 0;

  // The lines of standard error that begin with "skein: ".
  std::vector<std::string> error_lines() const {
    std::vector<std::string> lines;
    std::istringstream stream(err);
    for (std::string line; std::getline(stream, line);) {
      if (line.starts_with("skein: ")) lines.push_back(line);
    }
    return lines;
  }
};

// The program under test: build/skein, or another build of it.
inline std::string default_program() {
  const char* other = std::getenv("SKEIN_TEST_PROGRAM");
  return other == nullptr ? kProgram : other;
}

// A running skein. Standard output and error go to files, so that it never waits for a reader.
class SkeinProcess {
 public:
  // The largest file that it may write; writing more fails as a full disk does. SIGXFSZ is left as
  // a user's shell has it: the program itself must see to that.
  static constexpr rlim_t kNoFileLimit = RLIM_INFINITY;

  explicit SkeinProcess(const Arguments& arguments, rlim_t max_file_bytes = kNoFileLimit,
                        const std::string& program = default_program())
      : start_(std::chrono::steady_clock::now()) {
    std::vector<const char*> argv = {program.c_str()};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    argv.push_back(nullptr);
    const FileDescriptor out = create(output("out"));
    const FileDescriptor err = create(output("err"));
    const struct rlimit limit = {max_file_bytes, max_file_bytes};
    // Spinning threads only take turns from each other on a busy machine.
    if (std::getenv("SKEIN_TEST_BARE") == nullptr) setenv("OMP_WAIT_POLICY", "passive", 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out.get(), STDOUT_FILENO);
      dup2(err.get(), STDERR_FILENO);
      if (max_file_bytes != kNoFileLimit) setrlimit(RLIMIT_FSIZE, &limit);
      execv(program.c_str(), const_cast<char**>(argv.data()));
      _exit(127);
    }
    if (pid_ < 0) throw std::runtime_error("fork failed");
  }
  SkeinProcess(const SkeinProcess&) = delete;
  SkeinProcess& operator=(const SkeinProcess&) = delete;
  ~SkeinProcess() {
    if (pid_ > 0) {
      send(SIGKILL);
      wait();
    }
  }

  void send(int signal) { ::kill(pid_, signal); }
  pid_t pid() const { return pid_; }
  std::string error_so_far() const { return read_file(output("err")); }

  // Its end; after `timeout_s` it is killed and the test fails.
  Outcome wait(double timeout_s = 600) {
    int status = 0;
    struct rusage usage {};
    while (wait4(pid_, &status, WNOHANG, &usage) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (Seconds(std::chrono::steady_clock::now() - start_).count() > timeout_s) {
        ADD_FAILURE() << "skein still runs after " << timeout_s << " s";
        send(SIGKILL);
        timeout_s = 1e9;
      }
    }
    pid_ = -1;
    Outcome outcome;
    outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    outcome.seconds = Seconds(std::chrono::steady_clock::now() - start_).count();
    outcome.peak_resident_bytes = usage.ru_maxrss * 1024;
    outcome.out = read_file(output("out"));
    outcome.err = read_file(output("err"));
    return outcome;
  }

 private:
  fs::path output(const char* which) const { return outputs_ / which; }
  static FileDescriptor create(const fs::path& path) {
    return FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  }

  TempFolder outputs_;
  std::chrono::steady_clock::time_point start_;
  pid_t pid_ = -1;
};

inline Outcome run_skein(const Arguments& arguments,
                         rlim_t max_file_bytes = SkeinProcess::kNoFileLimit) {
  return SkeinProcess(arguments, max_file_bytes).wait();
}

// A refusal: the exit code, nothing on standard output, and one line that says all of `words`.
using Words = std::vector<std::string>;
inline void expect_refused(const Outcome& outcome, int exit_code, const Words& words) {
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const auto lines = outcome.error_lines();
  ASSERT_EQ(lines.size(), 1u) << outcome.err;
  for (const std::string& word : words) {
    EXPECT_NE(lines[0].find(word), std::string::npos) << lines[0] << "\nexpected: " << word;
  }
}

// `skein checkpoint verify` finds nothing wrong with those of a run.
inline void expect_checkpoints_good(const fs::path& run) {
  const Outcome outcome = run_skein({"checkpoint", "verify", run.string()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
}

// The same of a run that may have none yet.
inline void expect_only_good_checkpoints(const fs::path& run) {
  const Outcome outcome = run_skein({"checkpoint", "verify", run.string()});
  const bool none_yet = outcome.err.find("holds no checkpoint") != std::string::npos;
  EXPECT_TRUE(outcome.exit_code == 0 || none_yet) << outcome.out << outcome.err;
}

// The objects of a JSON-lines file; a last line that is torn is left out.
inline std::vector<OrderedJson> read_json_lines(const fs::path& path) {
  std::vector<OrderedJson> objects;
  std::istringstream stream(fs::exists(path) ? read_file(path) : "");
  for (std::string line; std::getline(stream, line);) {
    OrderedJson json = OrderedJson::parse(line, nullptr, false);
    if (!json.is_discarded()) objects.push_back(std::move(json));
  }
  return objects;
}

// What a run says of its numbers: for each step the text of the floats, as it stands in
// metrics.jsonl. The last object for a step counts.
inline std::map<int64_t, std::string> read_curve(const fs::path& run) {
  std::map<int64_t, std::string> curve;
  std::istringstream stream(read_file(run / "metrics.jsonl"));
  for (std::string line; std::getline(stream, line);) {
    const size_t begin = line.find("\"loss\"");
    const size_t end = line.find(", \"tokens_per_s\"");
    const Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded() || begin == std::string::npos || end == std::string::npos) continue;
    curve[json.at("step")] = line.substr(begin, end - begin);
  }
  return curve;
}

// The bytes of every safetensors file of a checkpoint, by name.
inline std::map<std::string, std::string> read_weights(const fs::path& checkpoint) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    if (entry.path().extension() == ".safetensors") {
      files[entry.path().filename().string()] = read_file(entry.path());
    }
  }
  return files;
}

inline std::string checkpoint_folder_name(int64_t step) { return fmt::format("step-{:08}", step); }

// Words of a made-up language, the same on every machine: `num_bytes` of documents of 5 to 300
// words, as JSON lines.
inline void write_documents(const fs::path& path, int64_t num_bytes) {
  uint64_t state = 1;
  const auto draw = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  std::vector<std::string> words(400);
  for (std::string& word : words) {
    for (uint64_t length = 2 + draw(7); length > 0; --length) word += "etaoinshrdlucm"[draw(14)];
  }
  std::ofstream stream(path);
  while (num_bytes > 0) {
    std::string text;
    for (uint64_t count = 5 + draw(296); count > 0; --count) text += words[draw(400)] + " ";
    stream << Json{{"text", text}}.dump() << "\n";
    num_bytes -= static_cast<int64_t>(text.size());
  }
}

// A folder with a corpus of 300 KB, a tokenizer of 320 tokens, and the configuration of a model of
// 100 thousand parameters; runs live in it.
class TinyJob {
 public:
  TinyJob() {
    write_documents(folder / "documents.jsonl", 300'000);
    must({"data", "ingest", "--out", corpus().string(), (folder / "documents.jsonl").string()});
    must({"data", "tokenizer", "--vocab-size", "320", "--out", tokenizer().string(),
          corpus().string()});
    std::ofstream(config()) << "[run]\nsteps = 6\n"
                               "[model]\nhidden_size = 64\nintermediate_size = 176\n"
                               "num_hidden_layers = 2\nnum_attention_heads = 4\n"
                               "num_key_value_heads = 2\nmax_position_embeddings = 256\n"
                               "[data]\ntrain = \""
                            << corpus().string() << "\"\ntokenizer = \"" << tokenizer().string()
                            << "\"\nsequence_length = 64\n"
                               "[batch]\nglobal_sequences = 4\nmicro_sequences = 2\n"
                               "[optimizer]\nlearning_rate = 1e-3\nwarmup_steps = 4\n"
                               "decay_steps = 1000\n"
                               "[checkpoint]\nevery_steps = 0\n"
                               "[log]\ntensorboard = false\n";
  }

  fs::path corpus() const { return folder / "corpus.arrow"; }
  fs::path tokenizer() const { return folder / "tokenizer"; }
  fs::path config() const { return folder / "tiny.toml"; }
  fs::path run(const std::string& name) const { return folder / name; }
  fs::path checkpoint(const std::string& name, int64_t step) const {
    return run(name) / "checkpoints" / checkpoint_folder_name(step);
  }

  // `command` is train or plan; `overrides` are section.key=value.
  Arguments arguments(const std::string& command, const std::string& name,
                      const std::vector<std::string>& overrides) const {
    Arguments result = {command, config().string(), "--set", "run.dir=" + run(name).string()};
    for (const std::string& text : overrides) {
      result.push_back("--set");
      result.push_back(text);
    }
    return result;
  }
  Outcome train(const std::string& name, const std::vector<std::string>& overrides = {}) const {
    return run_skein(arguments("train", name, overrides));
  }
  // A run that must succeed.
  void trained(const std::string& name, const std::vector<std::string>& overrides = {}) const {
    must(arguments("train", name, overrides));
  }
  static Outcome must(const Arguments& arguments) {
    Outcome outcome = run_skein(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << fmt::format("{}", fmt::join(arguments, " ")) << "\n"
                                    << outcome.err;
    return outcome;
  }

  const TempFolder folder;
};

// Asks every millisecond.
template <typename Condition>
bool wait_until(const Condition& holds, double seconds = 600) {
  for (int i = 0; i < seconds * 1000 && !holds(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return holds();
}

}  // namespace skein
