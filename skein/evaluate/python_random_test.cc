// testdata/python_random.json is made by scripts/goldens/python_random.py.
#include "skein/evaluate/python_random.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "skein/base/error.h"
#include "skein/base/text/json.h"

namespace skein {
namespace {

Json drawn_by(PythonRandom& random, const Json& call) {
  const auto argument = [&](size_t i) { return call.at(i).get<int64_t>(); };
  const std::string name = call.at(0);
  if (name == "sample") return random.sample(argument(1), argument(2));
  if (name == "choices") return random.choices(argument(1), argument(2));
  if (name == "shuffled") return random.shuffled(argument(1));
  if (name == "getrandbits") return random.getrandbits(static_cast<int>(argument(1)));
  return random.random();
}

TEST(PythonRandom, DrawsWhatPythonDraws) {
  const Json cases = read_json(
      (std::filesystem::path(__FILE__).parent_path() / "testdata/python_random.json").string());
  ASSERT_EQ(cases.size(), 8U);
  for (const Json& one : cases) {
    PythonRandom random(one.at("seed").get<uint64_t>());
    for (const Json& step : one.at("calls")) {
      EXPECT_EQ(drawn_by(random, step.at("call")), step.at("result"))
          << one.at("seed") << " " << step.at("call");
    }
  }
}

TEST(PythonRandom, RefusesWhatCannotBeDrawn) {
  PythonRandom random(1);
  EXPECT_THROW(random.sample(3, 4), Error);
  EXPECT_THROW(random.randbelow(0), Error);
  EXPECT_THROW(random.randbelow(int64_t{1} << 32), Error);
}

}  // namespace
}  // namespace skein
