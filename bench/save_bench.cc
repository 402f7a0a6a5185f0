// How long an asynchronous save stops training, against copying the same bytes in memory.
//
//   save_bench [--mib N] [--rounds N] [--dir FOLDER]
//
// State of N MiB in 24 tensors; alternates a plain parallel memcpy of it with
// CheckpointWriter::begin. Prints one JSON line of medians; `ratio` is to be below 1.5.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "skein/checkpoint/save/checkpoint_writer.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int64_t mib = 512;
  int rounds = 7;
  std::string dir;
};

double seconds_of_copy(const std::vector<char>& from, std::vector<char>& to) {
  const auto start = Clock::now();
  const size_t half = from.size() / 2;
  std::thread other([&] { std::memcpy(to.data() + half, from.data() + half, from.size() - half); });
  std::memcpy(to.data(), from.data(), half);
  other.join();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

int run(const Options& options) {
  const fs::path dir = options.dir.empty()
                           ? fs::temp_directory_path() / fmt::format("skein-save-{}", ::getpid())
                           : fs::path(options.dir);
  constexpr int64_t kTensors = 24;
  const int64_t elements = (options.mib << 20) / 4 / kTensors;
  std::vector<char> state(static_cast<size_t>(elements * 4 * kTensors), 1);
  std::vector<char> copy(state.size(), 2);
  std::vector<TensorSpec> specs;
  std::vector<View> views;
  for (int64_t i = 0; i < kTensors; ++i) {
    specs.push_back(TensorSpec::whole(fmt::format("tensor.{}", i), DType::kF32, Shape{elements}));
    views.push_back(
        View::contiguous(state.data() + i * elements * 4, DType::kF32, Shape{elements}));
  }
  std::vector<double> copies, stalls;
  {
    CheckpointWriter writer(dir, {.retention = {.keep = 1}}, specs);
    for (int round = 0; round < options.rounds; ++round) {
      copies.push_back(seconds_of_copy(state, copy));
      TrainingState training;
      training.step = round + 1;
      stalls.push_back(writer.begin(std::move(training), views));
      writer.wait();
      while (auto saved = writer.poll()) saved->value();
    }
  }
  fs::remove_all(dir);
  fmt::print(
      "{{\"state_mib\": {}, \"copy_ms\": {:.1f}, \"stall_ms\": {:.1f}, \"ratio\": {:.3f}}}\n",
      options.mib, median(copies) * 1e3, median(stalls) * 1e3, median(stalls) / median(copies));
  return 0;
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  CLI::App app("The stall of an asynchronous save");
  skein::Options options;
  app.add_option("--mib", options.mib)->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds)->check(CLI::PositiveNumber);
  app.add_option("--dir", options.dir, "where to save; a new temporary folder");
  CLI11_PARSE(app, argc, argv);
  return skein::run(options);
}
