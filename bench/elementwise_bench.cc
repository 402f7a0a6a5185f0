// The memory-bound ops, against copying as many bytes: prints GB/s of each kernel (the bytes of its
// cost rule), GB/s of a memcpy that reads and writes as much, run in alternation, and their ratio.
// The fastest run of each counts, so that a busy machine slows neither; threads as OMP_NUM_THREADS
// says.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "skein/base/philox.h"
#include "skein/ir/graph.h"
#include "skein/ops/ops.h"

namespace skein {
namespace {

constexpr DType kB = DType::kBF16, kF = DType::kF32, kI = DType::kI32, kD = DType::kF64;

struct Input {
  DType dtype;
  Shape shape;  // rank 0: absent
  int64_t id_limit = 1;
};

struct BenchCase {
  std::string name;
  std::string op;
  Attrs attrs;
  std::vector<Input> inputs;
  int num_outputs = 1;
};

using Memory = std::unique_ptr<uint8_t, decltype(&std::free)>;

Memory allocate(int64_t num_bytes) {
  const int64_t padded = (num_bytes + 63) / 64 * 64 + 64;
  Memory memory(static_cast<uint8_t*>(std::aligned_alloc(64, padded)), &std::free);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < padded; i += 4096)
    std::memset(memory.get() + i, 0, std::min<int64_t>(4096, padded - i));
  return memory;
}

void fill(const View& view, int64_t id_limit) {
  const Philox random(1, RandomPurpose::kInitialize, 0, 0);
  const int64_t count = view.shape.num_elements();
  for (int64_t i = 0; i < count; ++i) {
    const float value = count == 1 ? 1.0f : random.to_uniform(random.word(i % 65536)) - 0.5f;
    if (view.dtype == kF) view.as<float>()[i] = std::abs(value);
    if (view.dtype == kB) view.as<bfloat16>()[i] = bfloat16(value);
    if (view.dtype == kD) view.as<double>()[i] = value;
    if (view.dtype == kI) view.as<int32_t>()[i] = count == 1 ? 1 : random.word(i) % id_limit;
  }
}

// One op bound to memory, and a copy of as many bytes.
class Bound {
 public:
  explicit Bound(const BenchCase& bench) : graph_(Mesh::standard(1, 1, 1, 1)) {
    std::vector<ValueId> ids;
    for (const Input& input : bench.inputs) {
      ids.push_back(kNoValue);
      if (input.shape.rank() == 0) continue;
      ids.back() =
          graph_.add_input(Role::kInput, "in" + std::to_string(ids.size()),
                           TensorType::replicated(input.dtype, input.shape, graph_.mesh()));
    }
    std::vector<std::string> names;
    for (int i = 0; i < bench.num_outputs; ++i) names.push_back("out" + std::to_string(i));
    const OpDef* op = find_op(all_ops(), bench.op);
    graph_.add(*op, ids, bench.attrs, names);
    const Node& node = graph_.nodes()[0];
    const Cost cost = op->cost(graph_.call(node));
    num_bytes_ = cost.bytes_read + cost.bytes_written;

    call_.attrs = bench.attrs;
    for (size_t i = 0; i < ids.size(); ++i) {
      call_.inputs.push_back(ids[i] == kNoValue ? View{} : make_view(ids[i]));
      if (ids[i] != kNoValue) fill(call_.inputs[i], bench.inputs[i].id_limit);
    }
    call_.outputs.resize(node.outputs.size());
    if (op->layout != nullptr) {
      for (const Alias& alias : op->layout(graph_.call(node)).aliases) {
        call_.outputs[alias.output] = call_.inputs[alias.input];
      }
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (call_.outputs[i].data == nullptr) call_.outputs[i] = make_view(node.outputs[i]);
    }
    kernel_ = cpu_kernels().at(bench.op);
    if (kernel_.prepare != nullptr) call_.state = kernel_.prepare(call_);
    if (kernel_.scratch_bytes != nullptr) {
      memory_.push_back(allocate(kernel_.scratch_bytes(call_)));
      call_.scratch = memory_.back().get();
    }
    memory_.push_back(allocate(num_bytes_));
    copy_ = memory_.back().get();
  }

  int64_t num_bytes() const { return num_bytes_; }
  void run() const { kernel_.run(call_); }
  void copy() const {
    const int64_t half = num_bytes_ / 2;
#pragma omp parallel
    {
      const int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
      const int64_t begin = half * thread / threads, end = half * (thread + 1) / threads;
      std::memcpy(copy_ + half + begin, copy_ + begin, end - begin);
    }
  }

 private:
  View make_view(ValueId id) {
    const TensorType& type = graph_.type(id);
    View view = View::contiguous(nullptr, type.dtype, type.shape);
    memory_.push_back(allocate(view.num_bytes()));
    view.data = memory_.back().get();
    return view;
  }

  Graph graph_;
  KernelCall call_;
  Kernel kernel_;
  std::vector<Memory> memory_;
  uint8_t* copy_ = nullptr;
  int64_t num_bytes_ = 0;
};

double seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double fastest(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

void run_bench(benchmark::State& state, const BenchCase& bench) {
  const Bound bound(bench);
  std::vector<double> kernel_s, copy_s;
  for (auto _ : state) {
    copy_s.push_back(seconds([&] { bound.copy(); }));
    kernel_s.push_back(seconds([&] { bound.run(); }));
    state.SetIterationTime(kernel_s.back());
  }
  const double gigabytes = bound.num_bytes() * 1e-9;
  state.counters["MB"] = gigabytes * 1e3;
  state.counters["GB/s"] = gigabytes / fastest(kernel_s);
  state.counters["copy_GB/s"] = gigabytes / fastest(copy_s);
  state.counters["ratio"] = fastest(copy_s) / fastest(kernel_s);
}

Attrs adamw_attrs(bool stochastic) {
  return {{"beta1", 0.9},
          {"beta2", 0.95},
          {"epsilon", 1e-5},
          {"weight_decay", 0.1},
          {"stochastic_rounding", stochastic},
          {"seed", int64_t{1}},
          {"stream", int64_t{7}}};
}

std::vector<BenchCase> model_cases(int64_t tokens, int64_t hidden, int64_t mlp,
                                   int64_t vocabulary) {
  const Shape x = {tokens, hidden}, wide = {tokens, mlp}, rows = {tokens}, w = {hidden};
  const Shape logits = {1024, vocabulary}, table = {vocabulary, hidden};
  const Attrs epsilon = {{"epsilon", 1e-5}}, bf16 = {{"gradient_dtype", std::string("bf16")}};
  std::vector<BenchCase> cases = {
      {"add", "add", {}, {{kB, x}, {kB, x}}, 1},
      {"rms_norm", "rms_norm", epsilon, {{kB, x}, {kB, x}, {kB, w}}, 3},
      {"rms_norm_backward",
       "rms_norm_backward",
       {},
       {{kB, x}, {kB, x}, {kB, x}, {kF, rows}, {kB, w}, {kF, w}},
       2},
      {"swiglu", "swiglu", {}, {{kB, wide}, {kB, wide}}, 1},
      {"swiglu_backward", "swiglu_backward", {}, {{kB, wide}, {kB, wide}, {kB, wide}}, 2},
      {"embedding", "embedding", {}, {{kI, rows, vocabulary}, {kB, table}}, 1},
      {"embedding_dw", "embedding_dw", {}, {{kI, rows, vocabulary}, {kB, x}, {kF, table}}, 1},
      {"softmax_cross_entropy",
       "softmax_cross_entropy",
       bf16,
       {{kB, logits}, {kI, {1024}, vocabulary}},
       2},
      {"sum_squares", "sum_squares", {}, {{kF, table}}, 1},
  };
  for (BenchCase& one : cases) {
    one.name += fmt::format("/T{}_D{}_F{}_V{}", tokens, hidden, mlp, vocabulary);
  }
  return cases;
}

std::vector<BenchCase> adamw_cases(int64_t count) {
  const Shape p = {count}, one = {1};
  const Input scalar{kF, one}, step{kI, one}, none{kF, {}};
  const auto inputs = [&](DType w, DType m, Input master) {
    return std::vector<Input>{{w, p}, {kF, p}, {m, p}, {m, p}, master, scalar, scalar, step};
  };
  const std::string suffix = fmt::format("/{}", count);
  return {{"adamw_fp32" + suffix, "adamw", adamw_attrs(false), inputs(kF, kF, none), 4},
          {"adamw_bf16" + suffix, "adamw", adamw_attrs(false), inputs(kB, kF, none), 4},
          {"adamw_bf16_sr" + suffix, "adamw", adamw_attrs(true), inputs(kB, kF, none), 4},
          {"adamw_bf16_sr_moments" + suffix, "adamw", adamw_attrs(true), inputs(kB, kB, none), 4},
          {"adamw_mixed" + suffix, "adamw", adamw_attrs(false), inputs(kB, kF, {kF, p}), 5}};
}

void register_all() {
  std::vector<BenchCase> cases = model_cases(8192, 512, 1408, 4096);
  const auto more = [&cases](std::vector<BenchCase> others) {
    cases.insert(cases.end(), others.begin(), others.end());
  };
  more(model_cases(1024, 512, 1408, 4096));
  more(model_cases(1024, 768, 2048, 32000));
  more(adamw_cases(512 * 1408));
  more(adamw_cases(32000 * 768));
  for (const BenchCase& bench : cases) {
    benchmark::RegisterBenchmark(bench.name.c_str(), run_bench, bench)
        ->UseManualTime()
        ->MinTime(0.1)
        ->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  skein::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
