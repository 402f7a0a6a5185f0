// linear and its derivatives at the shapes of training beside oneDNN's product of the same operands
// in the same memory, in turn: which is faster, and by how much.
//
//   linear_bench [--filter TEXT] [--seconds 1] [--cold]
//
//   --filter   the products whose name contains TEXT: OP/DTYPE/HIDDEN/PROJECTION/TOKENS
//   --seconds  of each product, more where that is less than 15 pairs
//   --cold     other memory is read before each run, more than the caches hold
//
// Prints one line a product: GFLOP/s of both, medians; our rate over oneDNN's, the median of pairs
// that follow each other, with its quartiles; the pairs counted, of those run; and the name of
// oneDNN's kernel. With one thread times are those of its core; with more a pair during which
// another process took a core does not count, since we divide the work anew then and oneDNN waits.
// Where the CPU, or its limit, has no products of bf16, oneDNN has those of f32. Operands lie in
// huge pages, as in training. Ends with the ratios by op, and the products at which oneDNN is
// faster by more than 5 %.
// SKEIN_CPU limits the kind of kernels, as it does for skein, and ONEDNN_MAX_CPU_ISA oneDNN's;
// OMP_NUM_THREADS is the number of threads of both. Exit code 1 where the two disagree.
#include <fmt/format.h>
#include <omp.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "bench/bound_op.h"
#include "bench/onednn_product.h"
#include "skein/base/machine/clock.h"
#include "skein/base/text/log.h"
#include "skein/ops/ops.h"
#include "skein/ops/simd/cpu_kind.h"
#include "skein/runtime/cpu/cpu_device.h"

namespace skein {
namespace {

struct Projection {
  const char* name;
  int64_t out, in;
};
constexpr Projection kProjections[] = {
    {"512/qkv", 1536, 512},   {"512/o", 512, 512},        {"512/gate_up", 2816, 512},
    {"512/down", 512, 1408},  {"512/head", 4096, 512},    {"768/qkv", 2304, 768},
    {"768/o", 768, 768},      {"768/gate_up", 4096, 768}, {"768/down", 768, 2048},
    {"768/head", 32000, 768}, {"square", 1024, 1024}};
constexpr size_t kMinPairs = 15;
constexpr double kMostTime = 8;  // times --seconds, where another process takes the cores
constexpr double kHasCores = 0.95;
constexpr double kFaster = 1.05;

struct Options {
  std::string filter;
  double seconds = 1;
  bool is_cold = false;
};

struct Product {
  std::string op;
  DType dtype;
  Projection projection;
  int64_t tokens;

  std::string name() const {
    return fmt::format("{}/{}/{}/{}", op, dtype_name(dtype), projection.name, tokens);
  }
  double flops() const {
    return 2.0 * static_cast<double>(tokens * projection.out * projection.in);
  }
};

OpCase case_of(const Product& product, DType dtype) {
  const OpInput x = {dtype, {product.tokens, product.projection.in}};
  const OpInput y = {dtype, {product.tokens, product.projection.out}};
  const OpInput w = {dtype, {product.projection.out, product.projection.in}};
  Attrs attrs = {{"parts", int64_t{1}}};
  if (product.op == "linear_dx") return {product.name(), product.op, attrs, {y, w}};
  if (product.op == "linear_dw") {
    return {product.name(), product.op, attrs, {y, x, {DType::kF32, w.shape}}};
  }
  attrs.set("bias", false);
  attrs.set("f32_output", false);
  return {product.name(), product.op, attrs, {x, w}};
}

double median(std::vector<double> values, double quantile = 0.5) {
  const auto at = values.begin() + static_cast<int64_t>(quantile * double(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// ---- both products of the same operands

class Rivals {
 public:
  Rivals(Device& device, const Product& product) : ours_(device, case_of(product, product.dtype)) {
    // Without the CPU's dot products oneDNN's bf16 has a third of the rate of its f32.
    if (product.dtype == DType::kF32 || cpu_uses_bf16_dot()) {
      rival_ = OneDnnProduct::make(device, product.op, ours_.call());
    }
    if (rival_ == nullptr) {
      f32_operands_ = std::make_unique<BoundOp>(device, case_of(product, DType::kF32));
      rival_ = OneDnnProduct::make(device, product.op, f32_operands_->call());
    }
    if (rival_ == nullptr) fail(ErrorCode::kUnsupported, "oneDNN has no product for this CPU");
    check(device, product, f32_operands_ == nullptr ? ours_ : *f32_operands_);
  }

  void run_ours() { ours_.run(); }
  void run_rival() { rival_->run(); }
  std::string rival() const {
    return (f32_operands_ == nullptr ? "" : "in f32, ") + rival_->kernel();
  }

 private:
  // That the rival computes what our kernel does of the same operands.
  void check(Device& device, const Product& product, const BoundOp& ours) {
    const View& c = ours.call().outputs[0];
    const auto result_of = [&](const std::function<void()>& run) {
      device.fill_zero(c.data, c.num_bytes());
      run();
      std::vector<float> result(static_cast<size_t>(c.shape.num_elements()));
      for (size_t i = 0; i < result.size(); ++i) {
        result[i] = c.dtype == DType::kF32 ? c.as<float>()[i] : float(c.as<bfloat16>()[i]);
      }
      return result;
    };
    const std::vector<float> expected = result_of([&] { ours.run(); });
    const std::vector<float> found = result_of([&] { rival_->run(); });
    float largest = 0, difference = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      largest = std::max(largest, std::fabs(expected[i]));
      difference = std::max(difference, std::fabs(expected[i] - found[i]));
    }
    if (!(difference <= 0.01f * largest)) {
      fail(ErrorCode::kInternal, "{}: oneDNN's result differs by {} from ours, whose largest is {}",
           product.name(), difference, largest);
    }
  }

  BoundOp ours_;
  std::unique_ptr<BoundOp> f32_operands_;  // the rival's, where it has none of bf16
  std::unique_ptr<OneDnnProduct> rival_;
};

// ---- time

// Of the team's threads, each by its own clock: that of the process knows what other threads have
// done only up to their last tick, some ms ago.
double cpu_seconds() {
  double sum = 0;
#pragma omp parallel reduction(+ : sum)
  {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    sum += static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  return sum;
}

struct Run {
  double seconds = 0;
  bool had_cores = false;
};

class Timer {
 public:
  explicit Timer(bool is_cold) : other_(is_cold ? kOtherBytes / sizeof(uint64_t) : 0, 1) {}

  Run run(const std::function<void()>& product) {
    read_other();
    const int threads = omp_get_max_threads();
    const Clock::time_point before = Clock::now();
    const double cpu_before = cpu_seconds();
    const Clock::time_point start = Clock::now();
    product();
    const double seconds = seconds_since(start), cpu = cpu_seconds() - cpu_before;
    const bool had_cores = cpu > kHasCores * seconds_since(before) * threads;
    return {threads == 1 ? cpu : seconds, threads == 1 || had_cores};
  }

 private:
  static constexpr size_t kOtherBytes = size_t{128} << 20;
  void read_other() {
    uint64_t sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (uint64_t value : other_) sum += value;
    sum_ = sum;
  }

  std::vector<uint64_t> other_;
  volatile uint64_t sum_ = 0;
};

struct Pair {
  double ours = 0, rival = 0;
  bool counts = false;
};

std::vector<Pair> run_pairs(Rivals& rivals, const Options& options) {
  Timer timer(options.is_cold);
  std::vector<Pair> pairs;
  size_t counted = 0;
  const Clock::time_point start = Clock::now();
  for (double passed = 0;
       passed < options.seconds || (counted < kMinPairs && passed < kMostTime * options.seconds);
       passed = seconds_since(start)) {
    Run ours, rival;
    const bool ours_first = pairs.size() % 2 == 0;
    if (ours_first) ours = timer.run([&] { rivals.run_ours(); });
    rival = timer.run([&] { rivals.run_rival(); });
    if (!ours_first) ours = timer.run([&] { rivals.run_ours(); });
    pairs.push_back({ours.seconds, rival.seconds, ours.had_cores && rival.had_cores});
    counted += pairs.back().counts ? 1 : 0;
  }
  return pairs;
}

// ---- what is printed

struct Ratio {
  std::string name;
  double median = 0;
};

Ratio compare(const Product& product, const Options& options) {
  CpuDevice device(0, cpu_kernels());
  Rivals rivals(device, product);
  const std::vector<Pair> pairs = run_pairs(rivals, options);
  std::vector<double> ours, rival, ratios;
  for (const Pair& pair : pairs) {
    if (!pair.counts) continue;
    ours.push_back(product.flops() / pair.ours);
    rival.push_back(product.flops() / pair.rival);
    ratios.push_back(pair.rival / pair.ours);
  }
  if (ratios.empty()) {
    fmt::print("{:<32} another process took a core in each of {} pairs\n", product.name(),
               pairs.size());
    return {product.name(), 0};
  }
  fmt::print("{:<32} {:>7.1f} {:>7.1f} {:>6.3f} {:>6.3f} {:>6.3f} {:>5} {:>5}  {}\n",
             product.name(), median(ours) * 1e-9, median(rival) * 1e-9, median(ratios),
             median(ratios, 0.25), median(ratios, 0.75), ratios.size(), pairs.size(),
             rivals.rival());
  std::fflush(stdout);
  return {product.name(), median(ratios)};
}

void print_summary(const std::vector<Ratio>& ratios) {
  std::map<std::string, std::vector<double>> of_op;  // by "op/dtype"
  for (const auto& [name, ratio] : ratios) {
    if (ratio > 0) of_op[name.substr(0, name.find('/', name.find('/') + 1))].push_back(ratio);
  }
  fmt::print("\n{:<32} {:>8} {:>7} {:>7} {:>7}\n", "ours / oneDNN", "products", "lowest", "median",
             "highest");
  for (const auto& [op, values] : of_op) {
    fmt::print("{:<32} {:>8} {:>7.3f} {:>7.3f} {:>7.3f}\n", op, values.size(), median(values, 0),
               median(values), median(values, 1));
  }
  for (const auto& [name, ratio] : ratios) {
    if (ratio > 0 && ratio * kFaster < 1) {
      fmt::print("oneDNN is faster: {}, {:.2f} times\n", name, 1 / ratio);
    }
  }
}

std::vector<Product> all_products() {
  std::vector<Product> products;
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    for (const Projection& projection : kProjections) {
      for (const int64_t tokens : {int64_t{1024}, int64_t{8192}}) {
        const bool takes_blocks = projection.out > 8192;  // the head, of tokens
        const bool is_square = projection.out == projection.in && projection.in == 1024;
        if (tokens > 1024 && (takes_blocks || is_square || dtype == DType::kF32)) continue;
        for (const char* op : {"linear", "linear_dx", "linear_dw"}) {
          products.push_back({op, dtype, projection, tokens});
        }
      }
    }
  }
  return products;
}

void run(const Options& options) {
  const dnnl_version_t& version = *dnnl_version();
  fmt::print("kernels for {}, oneDNN {}.{}.{}, {} threads, {}\n", cpu_kind(), version.major,
             version.minor, version.patch, omp_get_max_threads(),
             options.is_cold ? "cold caches" : "caches as the runs before left them");
  fmt::print("{:<32} {:>7} {:>7} {:>6} {:>6} {:>6} {:>5} {:>5}  {}\n", "product", "GFLOP/s",
             "oneDNN", "ratio", "25 %", "75 %", "pairs", "of", "oneDNN's kernel");
  std::vector<Ratio> ratios;
  for (const Product& product : all_products()) {
    if (product.name().find(options.filter) == std::string::npos) continue;
    ratios.push_back(compare(product, options));
  }
  print_summary(ratios);
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  skein::Options options;
  CLI::App app("linear and its derivatives beside oneDNN's products");
  app.add_option("--filter", options.filter);
  app.add_option("--seconds", options.seconds)->check(CLI::PositiveNumber);
  app.add_flag("--cold", options.is_cold);
  CLI11_PARSE(app, argc, argv);
  try {
    skein::log::start();
    skein::limit_cpu_kind("auto");
    skein::run(options);
  } catch (const skein::Error& error) {
    fmt::print(stderr, "linear_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
