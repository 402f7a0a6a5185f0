// Collectives between 2 and 4 ranks of this host: through shared memory, and over Gloo on the
// loopback interface.
//
//   comm_bench [--ranks N] [--seconds S] [--transport shared|network]
//
// Forks the ranks; rank 0 prints a table. `GB/s` is what one rank sends, over the median time;
// `cpu` is the time of all its threads, which an overlapped collective takes from computing.
#include <fmt/format.h>
#include <omp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "skein/base/error.h"
#include "skein/comm/communicator.h"
#include "skein/comm/tree_sum.h"
#include "skein/store/job_secret.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

double cpu_seconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return t.tv_sec + t.tv_usec * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Times {
  double wall_s;
  double cpu_s;
};

// Of one run, as rank 0 sees it; all ranks do the same number of runs.
Times time_of(Communicator& world, const Collective& call, double seconds) {
  constexpr int kFewest = 5, kMost = 2000;
  world.run(call);
  world.run({});
  const auto start = Clock::now();
  world.run(call);
  int32_t rounds = std::clamp(
      static_cast<int>(seconds / std::chrono::duration<double>(Clock::now() - start).count()),
      kFewest, kMost);
  Collective agree{.kind = CollectiveKind::kBroadcast, .dtype = DType::kI32};
  agree.parts.push_back({.input = &rounds, .output = &rounds, .elements = 1});
  world.run(agree);
  std::vector<double> times;
  const double cpu_start = cpu_seconds();
  for (int round = 0; round < rounds; ++round) {
    const auto begin = Clock::now();
    world.run(call);
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return {median(times), (cpu_seconds() - cpu_start) / rounds};
}

void measure(Communicator& world, CollectiveKind kind, DType dtype, int64_t bytes, double seconds) {
  const int64_t elements = bytes / size_of(dtype), n = world.size();
  std::vector<char> input(bytes, 1), output(bytes, 1);
  Collective call{.kind = kind, .dtype = dtype};
  call.parts.push_back({.input = input.data(), .output = output.data(), .elements = elements});
  if (kind != CollectiveKind::kAllReduce) call.parts[0].share = (elements + n - 1) / n;
  std::vector<char> scratch(collective_scratch_bytes(call, world.size()), 1);
  call.scratch = scratch.data();
  const Times time = time_of(world, call, seconds);
  if (world.rank() != 0) return;
  const auto sent = static_cast<double>(collective_sent_bytes(call, 0, world.size()));
  fmt::print("{:<6} {:<15} {:<5} {:>12} {:>12.1f} {:>12.1f} {:>8.2f}\n", n, collective_name(kind),
             dtype_name(dtype), bytes, time.wall_s * 1e6, time.cpu_s * 1e6,
             sent / time.wall_s / 1e9);
  std::fflush(stdout);
}

void run_rank(const WorldOptions& options, double seconds) {
  omp_set_num_threads(std::max(1, omp_get_num_procs() / options.size));
  const auto world = make_world(options);
  if (options.rank == 0) {
    fmt::print("{:<6} {:<15} {:<5} {:>12} {:>12} {:>12} {:>8}\n", "ranks", "collective", "dtype",
               "bytes", "us", "cpu us", "GB/s");
  }
  const Times barrier = time_of(*world, {}, seconds);
  if (options.rank == 0)
    fmt::print("{:<6} {:<34} {:>12.1f} {:>12.1f}\n", options.size, "barrier", barrier.wall_s * 1e6,
               barrier.cpu_s * 1e6);
  using Kind = CollectiveKind;
  for (const int64_t bytes : {int64_t{8}, int64_t{4} << 10, int64_t{64} << 10}) {
    measure(*world, Kind::kAllReduce, DType::kF32, bytes, seconds);
  }
  for (const Kind kind : {Kind::kReduceScatter, Kind::kAllGather, Kind::kAllReduce}) {
    for (const int64_t mib : {1, 16, 64}) measure(*world, kind, DType::kF32, mib << 20, seconds);
  }
  measure(*world, Kind::kReduceScatter, DType::kBF16, int64_t{64} << 20, seconds);
}

// True if all ranks ended well.
bool run_ranks(int size, double seconds, const std::string& transport) {
  fmt::print("transport: {}\n", transport);
  std::fflush(stdout);
  setenv("SKEIN_SHARED_MEMORY", transport == "shared" ? "on" : "off", 1);
  std::string folder = (std::filesystem::temp_directory_path() / "skein-comm-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) fail(ErrorCode::kIo, "cannot make {}", folder);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < size; ++rank) {
    pids.push_back(fork());
    if (pids.back() != 0) continue;
    int code = 0;
    try {
      run_rank({.rank = rank,
                .size = size,
                .rendezvous = folder,
                .secret = std::make_shared<JobSecret>("the secret of a benchmark", "comm_bench")},
               seconds);
    } catch (const std::exception& error) {
      fmt::print(stderr, "comm_bench: rank {}: {}\n", rank, error.what());
      code = 1;
    }
    std::fflush(nullptr);
    _exit(code);
  }
  bool well = true;
  for (const pid_t pid : pids) {
    int status = 0;
    well = waitpid(pid, &status, 0) == pid && status == 0 && well;
  }
  std::filesystem::remove_all(folder);
  return well;
}

// The sum alone, in memory: what a reduction cannot be faster than.
void print_tree_sum(DType dtype, int terms) {
  constexpr int64_t kBytes = int64_t{16} << 20;
  std::vector<std::vector<char>> memory(terms, std::vector<char>(kBytes, 1));
  std::vector<const void*> pointers;
  for (const auto& term : memory) pointers.push_back(term.data());
  std::vector<double> times;
  for (int round = 0; round < 20; ++round) {
    const auto begin = Clock::now();
    tree_sum(dtype, pointers, memory[0].data(), kBytes / size_of(dtype));
    times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  fmt::print("sum of {} terms, {}: {:.1f} GB/s read\n", terms, dtype_name(dtype),
             static_cast<double>(terms * kBytes) / median(times) / 1e9);
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  CLI::App app{"collectives between forked ranks"};
  int ranks = 0;
  double seconds = 0.5;
  app.add_option("--ranks", ranks, "2 and 4 where it is not given");
  std::string transport;
  app.add_option("--seconds", seconds, "for each row")->capture_default_str();
  app.add_option("--transport", transport, "both where it is not given")
      ->check(CLI::IsMember({"shared", "network"}));
  CLI11_PARSE(app, argc, argv);
  // Before the sums: a process that had threads must not fork.
  bool well = true;
  std::vector<std::string> transports = {"shared", "network"};
  if (!transport.empty()) transports = {transport};
  for (const int size : ranks > 0 ? std::vector<int>{ranks} : std::vector<int>{2, 4}) {
    for (const std::string& each : transports) {
      well = skein::run_ranks(size, seconds, each) && well;
    }
  }
  for (const int terms : {2, 4, 8}) skein::print_tree_sum(skein::DType::kF32, terms);
  for (const int terms : {2, 4, 8}) skein::print_tree_sum(skein::DType::kBF16, terms);
  return well ? 0 : 1;
}
