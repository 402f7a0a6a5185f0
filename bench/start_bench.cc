// What one of thousands of ranks opens when it starts and says when it saves, and what rank 0
// joins: a checkpoint of a Llama 2 70B by made-up ranks, without the bytes of its tensors. And how
// long these ranks take to meet: made-up files of all but two.
//
//   start_bench [--pp N] [--dp N] [--tp N] [--dir FOLDER]       4 x 128 x 8 = 4,096 ranks
//
// Prints a table: seconds, seconds of a CPU, and the most memory beyond what the process had; for
// rank 0 that is mostly what the others wrote, mapped.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <ctime>
#include <fstream>
#include <thread>

#include "skein/base/text/units.h"
#include "skein/checkpoint/save/join_parts.h"
#include "skein/comm/gloo/rendezvous.h"
#include "tests/checkpoint/made_up_ranks.h"

namespace skein {
namespace {

using test::MadeUpRanks;

struct Options {
  int64_t pp = 4, dp = 128, tp = 8;
  std::string dir;
};

template <typename Work>
void measure(const std::string& what, const Work& work) {
  double seconds = 0, cpu_seconds = 0;
  const int64_t bytes = test::peak_bytes([&] {
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t cpu_start = std::clock();
    work();
    cpu_seconds = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  });
  fmt::print("{:<58} {:>8.3f} s {:>8.3f} s {:>10}\n", what, seconds, cpu_seconds,
             format_bytes(std::max<int64_t>(bytes, 0)));
  std::fflush(stdout);
}

void print_size(const std::string& what, const fs::path& path) {
  fmt::print("{:<58} {:>32}\n", what, format_bytes(static_cast<int64_t>(fs::file_size(path))));
}

fs::path part_path(const fs::path& dir, int64_t rank) {
  return dir / fmt::format("part-{:05d}.bin", rank);
}

void write(const fs::path& path, const std::string& bytes, const FileOps& ops) {
  const FileDescriptor file = ops.create(path);
  ops.write(file.get(), std::as_bytes(std::span(bytes)), path);
  ops.sync(file.get(), path);
}

// Two of so many ranks meet in a folder where the files of the others are; then one finds the
// addresses of 512 data ranks, 8 tensor ranks and two pipeline neighbours.
void measure_meeting(const fs::path& dir, int num_ranks) {
  const std::string folder = (dir / "meeting").string(), alone = (dir / "alone").string();
  fs::create_directories(folder);
  const auto options = [&](int rank) {
    return WorldOptions{
        .rank = rank, .size = num_ranks, .rendezvous = folder, .start_timeout_s = 300};
  };
  Rendezvous({.rank = 0, .size = 1, .rendezvous = alone}).arrive();
  std::string said;
  std::getline(std::ifstream(alone + "/arrived-00000"), said);
  said = fmt::format("{}{}", num_ranks, said.substr(1));
  for (int rank = 1; rank < num_ranks - 1; ++rank) {
    std::ofstream(folder + fmt::format("/arrived-{:05d}", rank)) << said;
  }
  std::thread last([&] { Rendezvous(options(num_ranks - 1)).arrive(); });
  Rendezvous first(options(0));
  measure("a start: rank 0 hears of all ranks and tells them", [&] { first.arrive(); });
  last.join();
  const int peers = std::min(521, num_ranks - 2);
  const std::vector<char> address(136, 'a');
  for (int peer = 1; peer <= peers; ++peer) {
    Rendezvous(options(peer)).publish_addresses({{0, address}});
  }
  measure(fmt::format("a start: a rank finds {} addresses", peers), [&] {
    for (int peer = 1; peer <= peers; ++peer) {
      if (first.address_of(peer) != address) throw std::runtime_error("no address");
    }
  });
}

int run(const Options& options) {
  const fs::path dir = options.dir.empty()
                           ? fs::temp_directory_path() / fmt::format("skein-start-{}", ::getpid())
                           : fs::path(options.dir);
  fs::create_directories(dir);
  const FileOps ops;
  const MadeUpRanks ranks(Mesh::standard(options.pp, options.dp, 1, options.tp), {});
  const int64_t some = ranks.num_ranks() / 2 + 1;
  fmt::print("{} ranks (pp {} x dp {} x tp {})\n", ranks.num_ranks(), options.pp, options.dp,
             options.tp);
  measure_meeting(dir, static_cast<int>(ranks.num_ranks()));
  for (int64_t rank = 1; rank < ranks.num_ranks(); ++rank) {
    if (rank != some) std::ofstream(part_path(dir, rank)) << part_bytes(ranks.stored(rank));
  }
  const Manifest own = ranks.stored(some);
  measure("a save: what a rank says of its files, made and written",
          [&] { write(part_path(dir, some), part_bytes(own), ops); });
  print_size("  its size", part_path(dir, some));
  Manifest manifest;
  measure("a save: rank 0 joins what all say, and checks it", [&] {
    std::vector<SavePart> parts;
    parts.emplace_back(ranks.stored(0));
    for (int64_t rank = 1; rank < ranks.num_ranks(); ++rank) {
      parts.emplace_back(MappedFile(part_path(dir, rank)));
    }
    manifest = join_parts(std::move(parts), dir / kIndexName, ops);
    write(dir / "manifest.json", manifest_text(manifest), ops);
  });
  print_size("  manifest.json", dir / "manifest.json");
  print_size("  index.bin", dir / kIndexName);
  for (const int64_t rank : {int64_t{0}, some}) {
    MadeUpRanks::Found found;
    measure(fmt::format("a start: rank {} opens it and finds what it reads", rank), [&] {
      const CheckpointReader reader(dir);
      found = ranks.find_what_a_rank_reads(reader, rank);
    });
    if (found.near < found.needed) throw std::runtime_error("not all was found");
  }
  if (options.dir.empty()) fs::remove_all(dir);
  return 0;
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  skein::Options options;
  CLI::App app("What a rank opens and says at scale");
  app.add_option("--pp", options.pp);
  app.add_option("--dp", options.dp);
  app.add_option("--tp", options.tp);
  app.add_option("--dir", options.dir);
  CLI11_PARSE(app, argc, argv);
  return skein::run(options);
}
