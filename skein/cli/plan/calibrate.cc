#include "skein/cli/plan/calibrate.h"

#include <omp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/machine/clock.h"
#include "skein/base/text/units.h"
#include "skein/base/threads/batch_scheduling.h"
#include "skein/compile/program_runs.h"
#include "skein/launch/node/worker_cores.h"
#include "skein/model/decoder.h"
#include "skein/ops/matmul/matmul_ceiling.h"
#include "skein/plan/this_machine.h"
#include "skein/runtime/copy_rate.h"
#include "skein/runtime/op_clocks.h"
#include "skein/schedule/estimate.h"
#include "skein/train/loop/step_runner.h"
#include "skein/train/start/consensus.h"
#include "skein/weights/initialize.h"

namespace skein {
namespace {

constexpr int64_t kLargestModelBytes = int64_t{2} << 30;
constexpr double kProfileSeconds = 2;
constexpr double kProfileSecondsIfBusy = 8;
constexpr int64_t kLeastSteps = 5;
constexpr int64_t kUndisturbedRuns = 3;       // of each kind of op, if time allows
constexpr int64_t kProfiledMicroBatches = 4;  // at most: the first one does not add to gradients

// The step to profile: some micro-batches on one rank.
StepSpec profiled_spec(const Config& config, DecoderConfig model) {
  constexpr int64_t kBytesPerParameter = 16;
  while (model.num_hidden_layers > 2 &&
         num_parameters(model) * kBytesPerParameter > kLargestModelBytes) {
    model.num_hidden_layers = std::max<int64_t>(2, model.num_hidden_layers / 2);
  }
  Config one = config;
  const int64_t micro = config.batch.micro_sequences;
  one.batch.ramp.clear();
  one.batch.global_sequences =
      std::clamp(config.batch.global_sequences / micro, int64_t{1}, kProfiledMicroBatches) * micro;
  return step_spec(one, model, {});
}

Batch made_up_batch(const StepSpec& spec) {
  Batch batch(0, spec.micro_batches * spec.micro_sequences, spec.sequence_length);
  uint32_t state = 1;
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    const auto draw = [&] { return (state = state * 1664525 + 1013904223) >> 8; };
    batch.tokens[i] = static_cast<int32_t>(draw() % static_cast<uint32_t>(spec.model.vocab_size));
    batch.labels[i] = static_cast<int32_t>(draw() % static_cast<uint32_t>(spec.model.vocab_size));
    batch.positions[i] = static_cast<int32_t>(i % static_cast<size_t>(spec.sequence_length));
    batch.attention_starts[i] = 0;
  }
  batch.num_label_tokens = static_cast<int64_t>(batch.labels.size());
  return batch;
}

bool is_product(std::string_view op) { return op.starts_with("linear"); }

// The same for runs of ops that take equally long: alike in all but where their operands lie.
std::string kind_of(const OpSpan& span) {
  const Cost cost = span.cost();
  std::string kind = fmt::format("{} x {} {} {}", span.calls, span.instruction->op->name,
                                 cost.flops, cost.bytes_read + cost.bytes_written);
  for (const auto* operands : {&span.instruction->inputs, &span.instruction->outputs}) {
    for (const Operand& operand : *operands) {
      kind += fmt::format(" {}{}", dtype_name(operand.dtype), operand.shape.to_string());
    }
  }
  return kind;
}

// Seconds of one step, by op. A run of an op takes the time that passes, but no more than its
// threads computed and waking them costs: the rest, other programs had. Ops of a kind share what
// was observed of them: on a busy machine few runs are undisturbed, and more steps are observed.
std::map<std::string, OpTime> profile_step(StepRunner& runner, const Batch& batch,
                                           double launch_s) {
  OpClocks clocks;
  runner.executor().start_profile([&](bool begins) { clocks.at_op(begins); });
  std::map<std::string, std::vector<OpObservation>> observed;  // by kind
  const auto all_undisturbed = [&] {
    return std::ranges::all_of(observed, [](const auto& kind) {
      return std::ranges::count_if(kind.second, [](const OpObservation& run) {
               return !run.disturbed();
             }) >= kUndisturbedRuns;
    });
  };
  std::vector<OpSpan> spans;
  int64_t steps = 0;
  for (const auto start = Clock::now();
       steps < kLeastSteps || seconds_since(start) < kProfileSeconds ||
       (seconds_since(start) < kProfileSecondsIfBusy && !all_undisturbed());) {
    runner.train(batch, 2 + steps++, 1e-4f);
    spans = runner.executor().take_spans();
    std::vector<OpObservation> runs = clocks.take();
    for (size_t i = 0; i < spans.size(); ++i) {
      runs[i].seconds = std::min(spans[i].end - spans[i].start,
                                 runs[i].seconds + static_cast<double>(spans[i].calls) * launch_s);
      observed[kind_of(spans[i])].push_back(runs[i]);
    }
  }
  runner.executor().stop_profile();
  std::map<std::string, OpTime> result;
  for (const OpSpan& span : spans) {  // of the last step
    const Cost cost = span.cost();
    OpTime& time = result[std::string(span.instruction->op->name)];
    time.calls += span.calls;
    time.seconds += undisturbed_seconds(observed[kind_of(span)]);
    time.flops += cost.flops;
    time.bytes += static_cast<double>(cost.bytes_read + cost.bytes_written);
  }
  return result;
}

// Fills in the rate of products and the factors of the other ops.
void profile_ops(const Config& config, const DecoderConfig& model, Hardware& hardware) {
  const StepSpec spec = profiled_spec(config, model);
  const auto device = training_device(config);
  const ProgramSet programs = plan_training(training_graphs(spec), spec, device->kernels());
  StepRunner runner(*device, programs, spec);
  initialize_parameters(runner.executor(), spec.model, {});
  const Batch batch = made_up_batch(spec);
  runner.train(batch, 1, 1e-4f);
  const std::map<std::string, OpTime> profile = profile_step(runner, batch, hardware.launch_s);

  const DType dtype = compute_dtype(spec.update.precision);
  MatmulRate& rate = dtype == DType::kBF16 ? hardware.bf16 : hardware.f32;
  const auto seconds_of = [&](const OpTime& time) {
    return std::max(1e-9, time.seconds - static_cast<double>(time.calls) * hardware.launch_s);
  };
  double flops = 0, seconds = 0;
  for (const auto& [op, time] : profile) {
    if (!is_product(op)) continue;
    flops += time.flops;
    seconds += seconds_of(time);
  }
  if (flops > 0) rate.flops_per_s = std::min(flops / seconds, rate.peak_flops_per_s);

  HardwareRates rates = rates_of(hardware, dtype);
  rates.launch_s = 0;
  std::map<std::string, double, std::less<>> ideal;
  for (const auto& [name, times] : program_runs(spec, programs)) {
    for (const Instruction& instruction : programs.program(name).instructions) {
      ideal[std::string(instruction.op->name)] +=
          static_cast<double>(times) * estimate_seconds(instruction, rates);
    }
  }
  for (const auto& [op, time] : profile) {
    if (ideal[op] > 0) hardware.op_factors[op] = seconds_of(time) / ideal[op];
  }
}

// The cost of starting an op: waking its threads and joining them. The best of many short attempts:
// who has slept for a moment is seldom made to wait by other programs.
double measure_launch_s() {
  constexpr int kAttempts = 200, kRounds = 20;
  double best = 1;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    Clock::time_point start;
    for (int round = -1; round < kRounds; ++round) {
      if (round == 0) start = Clock::now();  // the first one wakes threads that slept
#pragma omp parallel
      { std::atomic_signal_fence(std::memory_order_seq_cst); }
    }
    best = std::min(best, seconds_since(start) / kRounds);
  }
  return best;
}

// The lower decile: a rank that other programs keep waiting keeps all others waiting.
double usual_seconds(Communicator& world, CollectiveKind kind, int64_t bytes, int rounds) {
  const int64_t ranks = world.size(), elements = bytes / 4;
  std::vector<float> input(static_cast<size_t>(elements), 1), output(input.size(), 1);
  Collective call{.kind = kind, .dtype = DType::kF32};
  call.parts.push_back({.input = input.data(), .output = output.data(), .elements = elements});
  if (kind != CollectiveKind::kAllReduce) call.parts[0].share = (elements + ranks - 1) / ranks;
  std::vector<char> scratch(static_cast<size_t>(collective_scratch_bytes(call, world.size()) + 64));
  call.scratch = scratch.data();
  world.run(call);
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    world.run(call);
    times.push_back(seconds_since(start));
  }
  std::nth_element(times.begin(), times.begin() + rounds / 10, times.end());
  return times[static_cast<size_t>(rounds / 10)];
}

// Solves the formulas of skein/schedule/collective_seconds.h for latency and rate.
Link measure_link(Communicator& world) {
  const auto n = static_cast<double>(world.size());
  const double hops = 1 + std::bit_width(static_cast<unsigned>(world.size() - 1));
  Link link;
  link.latency_s = usual_seconds(world, CollectiveKind::kAllReduce, 8, 300) / hops;
  double bytes = 0, seconds = 0;
  for (const int64_t mib : {1, 8}) {
    const auto whole = static_cast<double>(mib << 20);
    for (const CollectiveKind kind :
         {CollectiveKind::kReduceScatter, CollectiveKind::kAllGather, CollectiveKind::kAllReduce}) {
      const bool both = kind == CollectiveKind::kAllReduce;
      bytes += (both ? 2 : 1) * (n - 1) / n * whole / static_cast<double>(mib);
      seconds += (usual_seconds(world, kind, mib << 20, 30) - hops * link.latency_s / 2) /
                 static_cast<double>(mib);
    }
  }
  link.bytes_per_s = bytes / std::max(seconds, 1e-9);
  return link;
}

double mean_over_ranks(Communicator& world, double value) {
  return sum_over_ranks(world, value) / world.size();
}

Hardware measure(const Config& config, const DecoderConfig& model, const WorkerCores& cores,
                 Communicator& world) {
  omp_set_num_threads(static_cast<int>(cores.threads));
  Hardware hardware;
  hardware.name = fmt::format("this machine, {} of {}", counted(world.size(), "worker"),
                              counted(cores.threads, "thread"));
  hardware.devices_per_node = world.size();
  hardware.concurrent_devices = cores.concurrent;
  hardware.unified_memory = true;
  hardware.memory_bytes =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE) / world.size();
  hardware.overlap = 0;
  wait_for_all(world, "computing begins");
  if (world.rank() < cores.concurrent) {
    hardware.launch_s = measure_launch_s();
    hardware.memory_bytes_per_s = measure_copy_bytes_per_s(0.3);
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const double peak = measure_matmul_ceiling_flops(dtype, 0.4);
      (dtype == DType::kBF16 ? hardware.bf16 : hardware.f32) = {peak, peak};
    }
    profile_ops(config, model, hardware);
  }
  wait_for_all(world, "computing is done");
  if (world.size() > 1) hardware.intra_node = measure_link(world);
  hardware.intra_node.latency_s = mean_over_ranks(world, hardware.intra_node.latency_s);
  hardware.intra_node.bytes_per_s = mean_over_ranks(world, hardware.intra_node.bytes_per_s);
  return hardware;
}

[[noreturn]] void become_worker(const WorldOptions& options,
                                const std::function<void(Communicator&)>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const BatchScheduling scheduling(BatchScheduling::kComputes);
  const BoundToCores bound(cores_of_worker(usable_cores(), options.rank, options.size));
  int code = 0;
  try {
    body(*make_world(options));
  } catch (const std::exception& error) {
    fmt::print(stderr, "calibrate: worker {}: {}\n", options.rank, error.what());
    code = 1;
  }
  std::fflush(nullptr);
  _exit(code);
}

void run_workers(int size, const fs::path& folder, const std::function<void(Communicator&)>& body) {
  std::vector<pid_t> pids;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      become_worker({.rank = rank, .size = size, .rendezvous = (folder / "meet").string()}, body);
    }
    pids.push_back(pid);
  }
  bool well = true;
  for (const pid_t pid : pids) {
    int status = 0;
    well = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 && well;
  }
  if (!well) fail(ErrorCode::kInternal, "calibrate: a worker failed; its reason is above");
}

}  // namespace

Hardware calibrate(const Config& config, const DecoderConfig& model, int64_t workers) {
  std::string name = (fs::temp_directory_path() / "skein-calibrate-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) fail(ErrorCode::kIo, "cannot make the folder {}", name);
  const fs::path folder = name;
  const fs::path result = folder / "hardware.toml";
  const WorkerCores cores = share_cores(config, workers);
  try {
    run_workers(static_cast<int>(workers), folder, [&](Communicator& world) {
      const Hardware hardware = measure(config, model, cores, world);
      if (world.rank() == 0) write_file_atomic(result, hardware_text(hardware));
    });
    const Hardware hardware = load_hardware(result);
    fs::remove_all(folder);
    return hardware;
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    throw;
  }
}

}  // namespace skein
