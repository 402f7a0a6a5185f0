// Throughput of whole training steps (micro-batches forward and backward, then the update) on
// random tokens, against the matrix-product rate that the device reaches in the same run.
//
//   train_bench --size tiny|a|b|0.5b|1b|7b [--device cpu|cuda|auto] [--sequences N] [--micro N]
//               [--steps K] [--warmup K] [--threads N] [--precision bf16-sr] [--moments fp32|bf16]
//               [--recompute none] [--keep-fp8-weights true|false] [--repeatable true|false]
//               [--peak-tflops 989] [--profile]
//
//   a, b    for a CPU: 8 and 12 layers, T 1024
//   0.5b    0.47 billion parameters, T 1024: small enough that starting kernels counts
//   1b      TinyLlama 1.1B: grouped keys and values, T 2048
//   7b      Llama 2 7B, T 4096
//   tiny    tries the benchmark out
//
// Prints one JSON line; times are the median over steps. A model FLOP is one of
// training_flops_per_token: 6 per weight of a matrix and token, causal attention at half of T x T,
// nothing for what is computed again. On a GPU also its share of --peak-tflops (989: dense bf16 of
// an H100 or H200, by the data sheet), and that with causal attention as the whole T x T.
// first_step_s is the time from the program's start to the end of its first step. --profile adds a
// table of time by op; the steps are slower for it.
// SKEIN_CPU limits the kind of CPU kernels, as it does for skein.
// Exit code 2: the command line, a mode that this build does not have, or no such device.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <random>

#include "skein/backends/backend.h"
#include "skein/base/machine/clock.h"
#include "skein/base/machine/short_spins.h"
#include "skein/base/text/log.h"
#include "skein/model/decoder.h"
#include "skein/ops/matmul/matmul_ceiling.h"
#include "skein/ops/ops.h"
#include "skein/ops/simd/cpu_kind.h"
#include "skein/train/loop/step_runner.h"
#include "skein/train/start/device_ceiling.h"
#include "skein/weights/initialize.h"

namespace skein {
namespace {

struct Options {
  std::string size = "a";
  std::string device = "cpu";
  int64_t sequences = 2;
  int64_t micro = 1;
  int64_t steps = 8;
  int64_t warmup = 2;
  int threads = 2;
  std::string precision = "bf16-sr";
  std::string moments = "fp32";
  std::string recompute = "none";
  double peak_tflops = 989;
  bool keep_fp8_weights = true;
  bool repeatable = true;
  bool profile = false;
};

struct Size {
  int64_t hidden, layers, heads, kv_heads, intermediate, vocabulary, length;
};
const std::map<std::string, Size> kSizes = {
    {"tiny", {64, 2, 4, 2, 176, 512, 64}},        {"a", {512, 8, 8, 8, 1408, 4096, 1024}},
    {"b", {768, 12, 12, 12, 2048, 32000, 1024}},  {"0.5b", {1024, 24, 16, 16, 4096, 32000, 1024}},
    {"1b", {2048, 22, 32, 4, 5632, 32000, 2048}}, {"7b", {4096, 32, 32, 32, 11008, 32000, 4096}},
};

DecoderConfig model_of_size(const Size& size) {
  return parse_decoder({{"hidden_size", size.hidden},
                        {"num_hidden_layers", size.layers},
                        {"num_attention_heads", size.heads},
                        {"num_key_value_heads", size.kv_heads},
                        {"intermediate_size", size.intermediate},
                        {"vocab_size", size.vocabulary},
                        {"max_position_embeddings", size.length}},
                       "--size");
}

Batch random_batch(const DecoderConfig& model, int64_t sequences) {
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

void print_profile(const std::map<std::string, OpTime>& profile) {
  double total = 0;
  std::vector<std::pair<std::string, OpTime>> rows(profile.begin(), profile.end());
  for (const auto& [name, time] : rows) total += time.seconds;
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  fmt::print(stderr, "{:<24} {:>6} {:>9} {:>6} {:>9} {:>8}\n", "op", "calls", "ms", "%", "GFLOP/s",
             "GB/s");
  for (const auto& [name, time] : rows) {
    const double seconds = std::max(time.seconds, 1e-9);
    fmt::print(stderr, "{:<24} {:>6} {:>9.2f} {:>6.1f} {:>9.1f} {:>8.2f}\n", name, time.calls,
               time.seconds * 1e3, 100 * time.seconds / total, time.flops / seconds / 1e9,
               time.bytes / seconds / 1e9);
  }
}

std::unique_ptr<Device> make_bench_device(const Options& options) {
  const bool chosen = options.device != "auto";
  return make_device({.kind = chosen ? options.device : std::string(best_backend().kind),
                      .threads = options.threads});
}

StepSpec make_spec(const Options& options, std::string_view device_kind) {
  StepSpec spec;
  spec.model = model_of_size(kSizes.at(options.size));
  spec.micro_sequences = options.micro;
  spec.micro_batches = options.sequences / options.micro;
  spec.sequence_length = spec.model.max_position_embeddings;
  spec.recompute = parse_recompute_policy(options.recompute);
  spec.update.precision = parse_precision(options.precision);
  spec.fp8 = options.precision == "fp8";
  spec.keep_fp8_weights = spec.fp8 && options.keep_fp8_weights;
  spec.repeatable = options.repeatable;
  spec.head_block_tokens = head_block_tokens(spec.model, find_backend(device_kind));
  spec.update.optimizer.moments = options.moments == "bf16" ? DType::kBF16 : DType::kF32;
  return spec;
}

// Of memory that the device's programs live in.
int64_t peak_bytes(const Device& device) {
  // Nothing is given back before the end; the driver's part and other processes' count as well.
  if (const auto own = device.own_memory()) return own->total_bytes - own->free_bytes;
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

struct Measured {
  std::vector<double> step_seconds, ceilings;
  double first_step_seconds = 0;
  double loss = 0;  // of the last step
};

// The first step alone; then, as the trainer does, the next one is started before the last has
// finished, where the device works behind the host.
Measured measure(StepRunner& runner, const Batch& batch, const Options& options, DType dtype,
                 Clock::time_point program_start) {
  Device& device = runner.executor().device();
  const bool is_cpu = device.kind() == "cpu";
  const int64_t num_steps = options.warmup + options.steps;
  Measured measured;
  Clock::time_point clock;
  const auto finish_one = [&](int64_t step) {
    measured.loss = runner.finish().loss;
    const double took = seconds_since(clock);
    clock = Clock::now();
    if (step == 0) measured.first_step_seconds = seconds_since(program_start);
    if (step < options.warmup) return;
    measured.step_seconds.push_back(took);
    // Beside each step, so that a machine whose speed drifts is compared with itself.
    if (is_cpu) measured.ceilings.push_back(measure_matmul_ceiling_flops(dtype, 0.1));
  };
  int64_t finished = 0;
  for (int64_t step = 0; step < num_steps; ++step) {
    if (step == options.warmup && options.profile) runner.executor().start_profile();
    if (runner.num_under_way() == 0) clock = Clock::now();
    runner.start(batch, step + 1, 1e-4f);
    const bool pauses = step == 0 || step + 1 == num_steps;
    while (runner.num_under_way() > (pauses ? 0 : device.depth() - 1)) finish_one(finished++);
  }
  return measured;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void run(const Options& options, Clock::time_point program_start) {
  const auto device = make_bench_device(options);
  const StepSpec spec = make_spec(options, device->kind());
  const bool is_cpu = device->kind() == "cpu";
  const DType dtype = compute_dtype(spec.update.precision);
  // On a GPU before the arenas take its memory.
  double ceiling = measure_device_ceiling_flops(*device, dtype);
  const ProgramSet programs = plan_training(training_graphs(spec), spec, device->kernels());
  StepRunner runner(*device, programs, spec);
  initialize_parameters(runner.executor(), spec.model, {});
  const Batch batch = random_batch(spec.model, options.sequences);

  Measured measured = measure(runner, batch, options, dtype, program_start);
  if (is_cpu) {
    measured.ceilings.push_back(ceiling);
    ceiling = median(measured.ceilings);
  }
  const double tokens_per_s =
      static_cast<double>(batch.tokens.size()) / median(measured.step_seconds);
  const double flops = training_flops_per_token(spec.model, spec.sequence_length) * tokens_per_s;
  int64_t arena_bytes = 0;
  for (const int64_t bytes : programs.arena_bytes) arena_bytes += bytes;
  std::string line = fmt::format(
      "{{\"size\": \"{}\", \"tokens_per_s\": {:.1f}, \"matmul_tflops\": {:.3f}, "
      "\"share_of_matmul\": {:.4f}, \"model_tflops\": {:.3f}",
      options.size, tokens_per_s, ceiling / 1e12, flops / ceiling, flops / 1e12);
  if (!is_cpu) {
    const double whole_square =
        flops + 6.0 *
                    static_cast<double>(spec.model.num_hidden_layers * spec.model.query_size() *
                                        spec.sequence_length) *
                    tokens_per_s;
    line += fmt::format(
        ", \"peak_tflops\": {:g}, \"share_of_peak\": {:.4f}, "
        "\"share_of_peak_whole_square\": {:.4f}",
        options.peak_tflops, flops / 1e12 / options.peak_tflops,
        whole_square / 1e12 / options.peak_tflops);
  }
  fmt::print(
      "{}, \"step_ms\": {:.3f}, \"first_step_s\": {:.3f}, \"peak_bytes\": {}, \"arena_bytes\": {}, "
      "\"loss\": {:.4f}, \"device\": \"{}\", \"parameters\": {}, \"sequences\": {}, \"micro\": {}, "
      "\"precision\": \"{}\", \"moments\": \"{}\", \"recompute\": \"{}\"}}\n",
      line, median(measured.step_seconds) * 1e3, measured.first_step_seconds, peak_bytes(*device),
      arena_bytes, measured.loss, device->kind(), num_parameters(spec.model), options.sequences,
      options.micro, options.precision, options.moments, options.recompute);
  if (options.profile) print_profile(runner.executor().profile());
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  skein::restart_with_short_spins(argv);
  const auto program_start = skein::Clock::now();
  CLI::App app("Throughput of training steps");
  skein::Options options;
  app.add_option("--size", options.size)->check(CLI::IsMember(skein::kSizes));
  app.add_option("--device", options.device)->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  app.add_option("--sequences", options.sequences)->check(CLI::PositiveNumber);
  app.add_option("--micro", options.micro)->check(CLI::PositiveNumber);
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber);
  app.add_option("--warmup", options.warmup)->check(CLI::NonNegativeNumber);
  app.add_option("--threads", options.threads);
  app.add_option("--precision", options.precision);
  app.add_option("--moments", options.moments)->check(CLI::IsMember({"fp32", "bf16"}));
  app.add_option("--recompute", options.recompute);
  app.add_option("--peak-tflops", options.peak_tflops)->check(CLI::PositiveNumber);
  app.add_option("--keep-fp8-weights", options.keep_fp8_weights);
  app.add_option("--repeatable", options.repeatable);
  app.add_flag("--profile", options.profile);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    skein::log::start();
    skein::limit_cpu_kind("auto");
    if (options.sequences % options.micro != 0) {
      skein::fail(skein::ErrorCode::kUsage, "--micro must divide --sequences");
    }
    skein::run(options, program_start);
  } catch (const skein::Error& error) {
    fmt::print(stderr, "train_bench: {}\n", error.what());
    const bool refused =
        error.code() == skein::ErrorCode::kUsage || error.code() == skein::ErrorCode::kUnsupported;
    return refused ? 2 : 1;
  }
  return 0;
}
