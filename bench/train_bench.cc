// Throughput of whole training steps (micro-batches forward and backward, then the update) on
// random tokens, against the matrix-product rate that oneDNN reaches on this machine in the same
// run.
//
//   train_bench --size a|b [--sequences N] [--micro N] [--steps K] [--warmup K] [--threads N]
//               [--precision bf16-sr] [--recompute none] [--profile]
//
// Prints one JSON line: the median over steps. --profile adds a table of time by op.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <random>

#include "skein/model/llama/parameters.h"
#include "skein/ops/linear/matmul_ceiling.h"
#include "skein/ops/ops.h"
#include "skein/train/initialize.h"
#include "skein/train/step_runner.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string size = "a";
  int64_t sequences = 2;
  int64_t micro = 1;
  int64_t steps = 8;
  int64_t warmup = 2;
  int threads = 2;
  std::string precision = "bf16-sr";
  std::string recompute = "none";
  bool profile = false;
};

LlamaConfig model_of_size(const std::string& size) {
  LlamaConfig config;
  const bool small = size == "a";
  config.hidden_size = small ? 512 : 768;
  config.num_hidden_layers = small ? 8 : 12;
  config.num_attention_heads = config.num_key_value_heads = small ? 8 : 12;
  config.head_dim = 64;
  config.intermediate_size = small ? 1408 : 2048;
  config.vocab_size = small ? 4096 : 32000;
  config.max_position_embeddings = 1024;
  return config;
}

Batch random_batch(const LlamaConfig& model, int64_t sequences) {
  Batch batch(0, sequences, model.max_position_embeddings);
  std::mt19937 random(1);
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    batch.tokens[i] = static_cast<int32_t>(random() % static_cast<uint32_t>(model.vocab_size));
    batch.labels[i] = static_cast<int32_t>(random() % static_cast<uint32_t>(model.vocab_size));
    batch.positions[i] = static_cast<int32_t>(i % static_cast<size_t>(batch.sequence_length));
    batch.attention_starts[i] = 0;
  }
  batch.num_label_tokens = static_cast<int64_t>(batch.labels.size());
  return batch;
}

void print_profile(const Executor& executor) {
  double total = 0;
  std::vector<std::pair<std::string, OpTime>> rows(executor.profile().begin(),
                                                   executor.profile().end());
  for (const auto& [name, time] : rows) total += time.seconds;
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  fmt::print(stderr, "{:<24} {:>6} {:>9} {:>6} {:>9} {:>8}\n", "op", "calls", "ms", "%", "GFLOP/s",
             "GB/s");
  for (const auto& [name, time] : rows) {
    fmt::print(stderr, "{:<24} {:>6} {:>9.2f} {:>6.1f} {:>9.1f} {:>8.2f}\n", name, time.calls,
               time.seconds * 1e3, 100 * time.seconds / total, time.flops / time.seconds / 1e9,
               time.bytes / time.seconds / 1e9);
  }
}

int run(const Options& options) {
  StepSpec spec;
  spec.model = model_of_size(options.size);
  spec.micro_sequences = options.micro;
  spec.micro_batches = options.sequences / options.micro;
  spec.sequence_length = spec.model.max_position_embeddings;
  spec.recompute = parse_recompute_policy(options.recompute);
  spec.update.precision = parse_precision(options.precision);
  const auto device = make_device({.kind = "cpu", .threads = options.threads}, cpu_kernels());
  const ProgramSet programs = plan_training(training_graphs(spec), spec, device->kernels());
  StepRunner runner(*device, programs, spec);
  initialize_parameters(runner.executor(), spec.model, {});
  const Batch batch = random_batch(spec.model, options.sequences);

  const DType dtype = compute_dtype(spec.update.precision);
  std::vector<double> seconds, ceilings{measure_matmul_ceiling_flops(dtype, 0.3)};
  for (int64_t step = 0; step < options.warmup + options.steps; ++step) {
    if (step == options.warmup && options.profile) runner.executor().start_profile();
    const auto start = Clock::now();
    runner.train(batch, step + 1, 1e-4f);
    const double took = std::chrono::duration<double>(Clock::now() - start).count();
    if (step >= options.warmup) seconds.push_back(took);
    // Beside each step, so that a machine whose speed drifts is compared with itself.
    if (step >= options.warmup) ceilings.push_back(measure_matmul_ceiling_flops(dtype, 0.1));
  }
  const auto median = [](std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  };
  const double tokens_per_s = static_cast<double>(batch.tokens.size()) / median(seconds);
  const double ceiling = median(ceilings);
  const double flops = training_flops_per_token(spec.model, spec.sequence_length) * tokens_per_s;
  fmt::print(
      "{{\"size\": \"{}\", \"tokens_per_s\": {:.1f}, \"matmul_tflops\": {:.3f}, "
      "\"share_of_matmul\": {:.4f}, \"model_tflops\": {:.3f}}}\n",
      options.size, tokens_per_s, ceiling / 1e12, flops / ceiling, flops / 1e12);
  if (options.profile) print_profile(runner.executor());
  return 0;
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  CLI::App app("Throughput of training steps");
  skein::Options options;
  app.add_option("--size", options.size)->check(CLI::IsMember({"a", "b"}));
  app.add_option("--sequences", options.sequences);
  app.add_option("--micro", options.micro);
  app.add_option("--steps", options.steps);
  app.add_option("--warmup", options.warmup);
  app.add_option("--threads", options.threads);
  app.add_option("--precision", options.precision);
  app.add_option("--recompute", options.recompute);
  app.add_flag("--profile", options.profile);
  CLI11_PARSE(app, argc, argv);
  return skein::run(options);
}
