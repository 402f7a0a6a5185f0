// What the tests of parallel runs share: a job that every layout divides, and comparing runs.
#pragma once

#include <cmath>
#include <fstream>

#include "skein/checkpoint/find/reader.h"
#include "tests/layouts.h"
#include "tests/testing.h"

namespace skein {

using Curve = std::map<int64_t, std::string>;  // read_curve's

// A model of 8 heads, 8 sequences of 32 tokens a step, 8 virtual ranks. The epsilon of its norms
// keeps a row that happens to be near zero from magnifying the last bits of its gradient.
class ParallelJob : public TinyJob {
 public:
  static Overrides setting(int64_t steps, const std::string& precision = "fp32") {
    return {fmt::format("run.steps={}", steps), "precision.mode=" + precision,
            "model.num_hidden_layers=5",        "model.num_attention_heads=8",
            "model.num_key_value_heads=4",      "model.rms_norm_eps=1e-3",
            "data.sequence_length=32",          "batch.global_sequences=8",
            "batch.micro_sequences=1",          "parallel.reduction_width=8"};
  }
  // 8 workers share two cores, and whatever else runs there.
  static constexpr double kRunTimeoutS = 900;

  Outcome run_for(const std::string& name, const Overrides& overrides) const {
    return SkeinProcess(arguments("train", name, overrides)).wait(kRunTimeoutS);
  }
  void remove(const std::string& name) const {
    std::error_code ignored;
    fs::remove_all(run(name), ignored);
  }
};

// One worker that trains the model of `layout`.
inline RunLayout alone(const RunLayout& layout) {
  RunLayout one;
  one.recompute = "none";
  one.tied = layout.tied;
  one.layers = layout.layers;
  one.kv_heads = layout.kv_heads;
  one.sequences = layout.sequences;
  one.micro_sequences = layout.micro_sequences;
  one.biases = layout.biases;
  one.qwen3 = layout.qwen3;
  return one;
}

// The functions below return what differs, for people; nothing where nothing does.

inline std::string different_steps(const Curve& expected, const Curve& found) {
  if (expected.empty()) return "the reference has no steps";
  for (const auto& [step, text] : expected) {
    if (!found.contains(step)) return fmt::format("step {} is missing", step);
  }
  if (found.size() > expected.size()) {
    return fmt::format("{} steps, expected {}", found.size(), expected.size());
  }
  return "";
}

inline std::string different_bits(const Curve& expected, const Curve& found) {
  std::string problem = different_steps(expected, found);
  for (const auto& [step, text] : expected) {
    if (problem.empty() && found.at(step) != text) {
      problem = fmt::format("step {}: {}, expected {}", step, found.at(step), text);
    }
  }
  return problem;
}

// The largest relative differences that were seen.
struct Closeness {
  double loss = 0, grad_norm = 0, param_norm = 0;

  void include(const Closeness& other) {
    loss = std::max(loss, other.loss);
    grad_norm = std::max(grad_norm, other.grad_norm);
    param_norm = std::max(param_norm, other.param_norm);
  }
};

// Sums in another order: the loss agrees within 1e-5. The norm of the gradient is more sensitive,
// and finds what a loss is slow to show: a gradient counted twice, or not at all.
inline constexpr Closeness kMayDiffer = {.loss = 1e-5, .grad_norm = 1e-4, .param_norm = 1e-6};

inline std::string not_close(const Curve& expected, const Curve& found, Closeness* worst,
                             const Closeness& may_differ = kMayDiffer) {
  std::string problem = different_steps(expected, found);
  if (!problem.empty()) return problem;
  for (const auto& [step, text] : expected) {
    const Json a = Json::parse("{" + text + "}"), b = Json::parse("{" + found.at(step) + "}");
    const auto relative = [&](const char* key) {
      const double reference = a.at(key), value = b.at(key);
      return std::abs(value - reference) / std::abs(reference);
    };
    const Closeness now = {relative("loss"), relative("grad_norm"), relative("param_norm")};
    const bool close = now.loss <= may_differ.loss && now.grad_norm <= may_differ.grad_norm &&
                       now.param_norm <= may_differ.param_norm;
    const bool same_data = a.at("tokens") == b.at("tokens");
    if (problem.empty() && (!close || !same_data)) {
      problem = fmt::format("step {}: {}, expected about {}", step, found.at(step), text);
    }
    worst->include(now);
  }
  return problem;
}

inline std::string read_tensor(const CheckpointReader& reader, const ManifestTensor& tensor) {
  std::string bytes(static_cast<size_t>(tensor.shape.num_elements() * size_of(tensor.dtype)), '\0');
  reader.read(tensor.name, Box::whole(tensor.shape), tensor.dtype,
              std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

// Weights, masters, moments, lanes and counts, whatever files they lie in.
inline std::string different_state(const fs::path& expected_path, const fs::path& found_path) {
  if (!fs::exists(found_path / "manifest.json")) return found_path.string() + " is missing";
  const CheckpointReader expected(expected_path), found(found_path);
  for (const ManifestTensor& tensor : expected.manifest().tensors) {
    const ManifestTensor* other = found.find(tensor.name);
    if (other == nullptr) return tensor.name + " is not in the checkpoint";
    if (!(other->shape == tensor.shape) || other->dtype != tensor.dtype) {
      return tensor.name + " has another shape or dtype";
    }
    if (read_tensor(expected, tensor) != read_tensor(found, *other)) {
      return tensor.name + " has other bits";
    }
  }
  if (expected.manifest().tensors.size() != found.manifest().tensors.size()) {
    return "the checkpoint has more tensors";
  }
  TrainingState a = expected.state(), b = found.state();
  a.configuration = b.configuration = Json();
  a.timeline = b.timeline = {};
  a.roll_backs = b.roll_backs = 0;  // how the run came here, not where it is
  return a == b ? "" : "the checkpoint has another state beside its tensors";
}

// The processes that any thread of `parent` started.
inline std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> all;
  std::error_code gone;
  for (fs::directory_iterator task(fmt::format("/proc/{}/task", parent), gone), end;
       !gone && task != end; task.increment(gone)) {
    std::ifstream children(task->path() / "children");
    for (pid_t pid = 0; children >> pid;) all.push_back(pid);
  }
  return all;
}

// The worker of a rank, as its environment says; 0: there is none.
inline pid_t worker_of(pid_t parent, int rank) {
  for (const pid_t pid : children_of(parent)) {
    std::ifstream environment(fmt::format("/proc/{}/environ", pid));
    for (std::string line; std::getline(environment, line, '\0');) {
      if (line == fmt::format("SKEIN_RANK={}", rank)) return pid;
    }
  }
  return 0;
}

}  // namespace skein
