// Runs every seed of tests/fuzz/TARGET/ through its fuzz target, compiled as everything else is. A
// target that finds its invariant broken aborts; the last name printed is that of the input.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "skein/base/files/file.h"
#include "tests/places.h"

#define FUZZER(name) extern "C" int name(const uint8_t* data, size_t size);
#include "fuzzers.inc"
#undef FUZZER

namespace skein {
namespace {

namespace fs = std::filesystem;

struct Fuzzer {
  std::string name;
  int (*run)(const uint8_t*, size_t);
};
void PrintTo(const Fuzzer& fuzzer, std::ostream* out) { *out << fuzzer.name; }

const Fuzzer kFuzzers[] = {
#define FUZZER(name) {#name, name},
#include "fuzzers.inc"
#undef FUZZER
};

class FuzzSeeds : public testing::TestWithParam<Fuzzer> {};

TEST_P(FuzzSeeds, PassTheirTarget) {
  int num_seeds = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(kSourceFolder) / "tests/fuzz" / GetParam().name)) {
    const std::string seed = read_file(entry.path());
    fmt::print("{}\n", entry.path().filename().string());
    std::fflush(stdout);
    EXPECT_EQ(GetParam().run(reinterpret_cast<const uint8_t*>(seed.data()), seed.size()), 0);
    ++num_seeds;
  }
  EXPECT_GT(num_seeds, 0);
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzSeeds, testing::ValuesIn(kFuzzers),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace skein
