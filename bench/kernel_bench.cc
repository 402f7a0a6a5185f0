// The kernels of a step at the shapes of Llama 2 7B, against what the device reaches in the same
// run: those that only move memory against copying, products and attention against a large product.
//
//   kernel_bench [--device cuda|cpu|auto] [--filter TEXT] [--small] [--seconds 0.1]
//
//   --filter   the kernels whose name contains TEXT
//   --small    shapes that try the benchmark out
//
// Prints one JSON line of the device, then one a kernel: `us` is the time of one call among many
// that follow each other without a pause, the median over rounds; `gb_per_s` the bytes of the op's
// own cost rule (read plus written) in that time, `ratio` that over the copy's; `tflops` the flops
// of the cost rule, `share_of_matmul` that over the product's. Successive calls use different
// memory, more than a cache holds. Exit code 1 where a kernel failed.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <vector>

#include "bench/bound_op.h"
#include "skein/backends/backend.h"
#include "skein/base/text/json.h"
#include "skein/base/text/log.h"
#include "skein/compile/step_programs.h"
#include "skein/runtime/copy_rate.h"
#include "skein/train/start/device_ceiling.h"

namespace skein {
namespace {

constexpr DType kB = DType::kBF16, kF = DType::kF32, kI = DType::kI32;
constexpr int kRounds = 5;
constexpr int64_t kBytesInRotation = int64_t{512} << 20;  // ten times the L2 of an H100

struct Options {
  std::string device = "auto";
  std::string filter;
  bool is_small = false;
  double seconds = 0.1;  // of a round
};

struct Sizes {
  int64_t tokens, hidden, intermediate, vocabulary, heads, head_dim;
  int64_t head_block;  // tokens whose logits exist at once, in the host's memory
};
constexpr Sizes kLlama7b = {4096, 4096, 11008, 32000, 32, 128, 512};
constexpr Sizes kSmall = {64, 64, 176, 256, 2, 32, 32};

// Seconds of one of `count` calls of `start`, which starts something on the device.
double seconds_of_one(Device& device, int64_t count, const std::function<void()>& start) {
  const int64_t before = device.record_time();
  for (int64_t i = 0; i < count; ++i) start();
  const int64_t after = device.record_time();
  device.synchronize();
  const double seconds = device.seconds_at(after) - device.seconds_at(before);
  device.forget_times();
  return seconds / static_cast<double>(count);
}

double median_seconds(Device& device, double round_seconds, const std::function<void()>& start) {
  seconds_of_one(device, 1, start);
  const double once = seconds_of_one(device, 1, start);
  const auto count = static_cast<int64_t>(std::clamp(round_seconds / once, 1.0, 10'000.0));
  std::vector<double> rounds;
  for (int i = 0; i < kRounds; ++i) rounds.push_back(seconds_of_one(device, count, start));
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2];
}

double copy_bytes_per_s(Device& device, const Options& options) {
  if (device.kind() == "cpu") return measure_copy_bytes_per_s(options.seconds);
  const int64_t bytes = options.is_small ? int64_t{1} << 16 : int64_t{1} << 30;
  void* from = device.allocate(bytes, "copying");
  void* to = device.allocate(bytes, "copying");
  const double seconds =
      median_seconds(device, options.seconds, [&] { device.start_copy(to, from, bytes); });
  device.release(from, bytes);
  device.release(to, bytes);
  return 2.0 * static_cast<double>(bytes) / seconds;
}

// One op in several places of memory, a call of each after the other; recorded where the device
// does, as the steps of a program are.
class Rotation {
 public:
  Rotation(Device& device, const OpCase& op_case, int64_t bytes_in_rotation) {
    ops_.push_back(std::make_unique<BoundOp>(device, op_case));
    const int64_t wanted = ceil_div(bytes_in_rotation, ops_[0]->num_bytes());
    const int64_t count = std::clamp<int64_t>(wanted, 1, 16);
    while (size() < count) ops_.push_back(std::make_unique<BoundOp>(device, op_case));
    run_each();  // what a kernel sets up at its first call
    device.synchronize();
    recording_ = device.record([this] { run_each(); });
  }

  int64_t size() const { return static_cast<int64_t>(ops_.size()); }
  const BoundOp& op() const { return *ops_[0]; }
  void run() {
    if (recording_ == nullptr) return run_each();
    recording_->replay();
  }

 private:
  void run_each() {
    for (const auto& op : ops_) op->run();
  }

  std::vector<std::unique_ptr<BoundOp>> ops_;
  std::unique_ptr<Recording> recording_;
};

std::vector<OpCase> memory_cases(const Sizes& s) {
  const Shape x = {s.tokens, s.hidden}, wide = {s.tokens, s.intermediate};
  const Shape rows = {s.tokens}, w = {s.hidden}, table = {s.vocabulary, s.hidden};
  const Shape rope_table = {s.tokens, s.head_dim}, weight = {s.intermediate, s.hidden};
  const Shape logits = {s.head_block, s.vocabulary};
  const Attrs epsilon = {{"epsilon", 1e-5}}, bf16 = {{"gradient_dtype", std::string("bf16")}};
  const Attrs rope = {{"head_dim", s.head_dim}, {"inverse", false}};
  // As wq, wk and wv leave them.
  const Bundle qk_v = {.operands = {0, 1}, .dim = 1};
  const auto adamw = [&](const char* name, DType moments) {
    const int64_t count = s.intermediate * s.hidden;
    return OpCase{name, "adamw", adamw_attrs(true), adamw_inputs(count, kB, moments, false), 4};
  };
  return {
      {"add", "add", {}, {{kB, x}, {kB, x}}, 1},
      {"rms_norm", "rms_norm", epsilon, {{kB, x}, {kB, x}, {kB, w}}, 3},
      {"rms_norm_backward",
       "rms_norm_backward",
       {},
       {{kB, x}, {kB, x}, {kB, x}, {kF, rows}, {kB, w}, {kF, w}},
       2},
      {"layer_norm", "layer_norm", epsilon, {{kB, x}, {kB, x}, {kB, w}, {kB, w}}, 4},
      {"layer_norm_backward",
       "layer_norm_backward",
       {},
       {{kB, x}, {kB, x}, {kB, x}, {kF, rows}, {kF, rows}, {kB, w}, {kF, w}, {kF, w}},
       3},
      {"swiglu", "swiglu", {}, {{kB, wide}, {kB, wide}}, 1},
      {"swiglu_backward", "swiglu_backward", {}, {{kB, wide}, {kB, wide}, {kB, wide}}, 2},
      {"gelu", "gelu", {}, {{kB, wide}}, 1},
      {"gelu_backward", "gelu_backward", {}, {{kB, wide}, {kB, wide}}, 1},
      {"geglu", "geglu", {}, {{kB, wide}, {kB, wide}}, 1},
      {"geglu_backward", "geglu_backward", {}, {{kB, wide}, {kB, wide}, {kB, wide}}, 2},
      {"fp8_largest", "fp8_largest", {}, {{kB, wide}}, 1},
      {"round_weights",
       "round_weights",
       {},
       {{kB, weight}, {kF, {1}}, {kB, {s.intermediate * s.hidden}}},
       2},
      {"rope", "rope", rope, {{kB, x}, {kB, x}, {kI, rows, s.tokens}, {kF, rope_table}}, 2, {qk_v}},
      {"embedding", "embedding", {}, {{kI, rows, s.vocabulary}, {kB, table}}, 1},
      {"embedding_dw", "embedding_dw", {}, {{kI, rows, s.vocabulary}, {kB, x}, {kF, table}}, 1},
      {"softmax_cross_entropy",
       "softmax_cross_entropy",
       bf16,
       {{kB, logits}, {kI, {s.head_block}, s.vocabulary}},
       2},
      {"sum_squares", "sum_squares", {}, {{kF, weight}, {kF, weight}, {kF, x}, {kF, w}}, 1},
      adamw("adamw_bf16_sr", kF),
      adamw("adamw_bf16_sr_bf16_moments", kB),
  };
}

std::vector<OpCase> product_cases(const Sizes& s) {
  std::vector<OpCase> cases;
  // `outs`: of weights that read the same x.
  const auto add = [&](const std::string& name, int64_t tokens, std::vector<int64_t> outs,
                       int64_t in) {
    const auto parts = static_cast<int64_t>(outs.size());
    const OpInput x = {kB, {tokens, in}};
    std::vector<OpInput> y, w, sums;
    for (const int64_t out : outs) {
      y.push_back({kB, {tokens, out}});
      w.push_back({kB, {out, in}});
      sums.push_back({kF, {out, in}});
    }
    const auto join = [](std::vector<OpInput> first, const std::vector<OpInput>& second) {
      first.insert(first.end(), second.begin(), second.end());
      return first;
    };
    const int num_parts = static_cast<int>(parts);
    cases.push_back({"linear/" + name,
                     "linear",
                     {{"parts", parts}, {"bias", false}, {"f32_output", false}},
                     join({x}, w),
                     num_parts});
    cases.push_back({"linear_dx/" + name, "linear_dx", {{"parts", parts}}, join(y, w), 1});
    cases.push_back({"linear_dw/" + name,
                     "linear_dw",
                     {{"parts", parts}},
                     join(join(y, {x}), sums),
                     num_parts});
  };
  add("qkv", s.tokens, {s.hidden, s.hidden, s.hidden}, s.hidden);
  add("o", s.tokens, {s.hidden}, s.hidden);
  add("gate_up", s.tokens, {s.intermediate, s.intermediate}, s.hidden);
  add("down", s.tokens, {s.hidden}, s.intermediate);
  add("head", s.head_block, {s.vocabulary}, s.hidden);

  Attrs attention = {
      {"heads", s.heads},       {"kv_heads", s.heads},
      {"head_dim", s.head_dim}, {"sequence_length", s.tokens},
      {"causal", true},         {"scale", 1 / std::sqrt(static_cast<double>(s.head_dim))}};
  const OpInput q = {kB, {s.tokens, s.heads * s.head_dim}}, lse = {kF, {s.tokens, s.heads}};
  const OpInput start = {kI, {s.tokens}};
  // As of sequences with several documents, of which each has one here; and as of those that have
  // one by data.document_mask.
  for (const bool documents : {true, false}) {
    const std::string suffix = documents ? "" : "/one_document";
    attention.set("documents", documents);
    cases.push_back({"attention" + suffix,
                     "attention",
                     attention,
                     {q, q, q, start},
                     2,
                     {{.operands = {0, 1, 2}, .dim = 1}}});
    cases.push_back(
        {"attention_backward" + suffix,
         "attention_backward",
         attention,
         {q, q, q, q, q, lse, start},
         3,
         {{.operands = {1, 2, 3}, .dim = 1}, {.outputs = true, .operands = {0, 1, 2}, .dim = 1}}});
  }
  return cases;
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), device_(make(options.device)) {
    copy_bytes_per_s_ = copy_bytes_per_s(*device_, options);
    matmul_flops_ = measure_device_ceiling_flops(*device_, kB);
    print({{"device", device_->kind()},
           {"copy_gb_per_s", rounded(copy_bytes_per_s_ / 1e9)},
           {"matmul_tflops", rounded(matmul_flops_ / 1e12)}});
  }

  bool run() {
    Sizes sizes = options_.is_small ? kSmall : kLlama7b;
    const Backend& backend = find_backend(device_->kind());
    if (!options_.is_small && backend.has_own_memory) {
      sizes.head_block = head_block_tokens({.vocab_size = sizes.vocabulary}, backend);
    }
    for (const OpCase& op_case : memory_cases(sizes)) run_case(op_case, false);
    for (const OpCase& op_case : product_cases(sizes)) run_case(op_case, true);
    return !has_failed_;
  }

 private:
  static std::unique_ptr<Device> make(const std::string& kind) {
    return make_device({.kind = kind == "auto" ? std::string(best_backend().kind) : kind});
  }

  static double rounded(double value) { return std::round(value * 1e4) / 1e4; }
  static void print(const OrderedJson& line) {
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
  }

  void run_case(const OpCase& op_case, bool is_product) {
    if (op_case.name.find(options_.filter) == std::string::npos) return;
    OrderedJson line = {{"kernel", op_case.name}};
    try {
      Rotation rotation(*device_, op_case, options_.is_small ? 1 : kBytesInRotation);
      const double seconds = median_seconds(*device_, options_.seconds, [&] { rotation.run(); }) /
                             static_cast<double>(rotation.size());
      line["us"] = rounded(seconds * 1e6);
      if (is_product) {
        const double flops = rotation.op().cost().flops / seconds;
        line["tflops"] = rounded(flops / 1e12);
        line["share_of_matmul"] = rounded(flops / matmul_flops_);
      } else {
        const double bytes_per_s = static_cast<double>(rotation.op().num_bytes()) / seconds;
        line["gb_per_s"] = rounded(bytes_per_s / 1e9);
        line["ratio"] = rounded(bytes_per_s / copy_bytes_per_s_);
      }
    } catch (const Error& error) {
      has_failed_ = true;
      line["error"] = error.what();
    }
    print(line);
  }

  Options options_;
  std::unique_ptr<Device> device_;
  double copy_bytes_per_s_ = 0, matmul_flops_ = 0;
  bool has_failed_ = false;
};

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  CLI::App app("Rates of kernels");
  skein::Options options;
  app.add_option("--device", options.device)->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  app.add_option("--filter", options.filter);
  app.add_flag("--small", options.is_small);
  app.add_option("--seconds", options.seconds)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    skein::log::start();
    return skein::Bench(options).run() ? 0 : 1;
  } catch (const skein::Error& error) {
    fmt::print(stderr, "kernel_bench: {}\n", error.what());
    return 1;
  }
}
