#include "skein/launch/jobs/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::vector<std::string>> sweep(const std::vector<std::string>& swept) {
  return sweep_settings(swept);
}

TEST(Sweep, IsEveryCombinationTheLastKeyFastest) {
  EXPECT_THAT(sweep({}), ElementsAre(ElementsAre()));
  EXPECT_THAT(sweep({"run.seed=1,2", "optimizer.learning_rate=1e-3,3e-4"}),
              ElementsAre(ElementsAre("run.seed=1", "optimizer.learning_rate=1e-3"),
                          ElementsAre("run.seed=1", "optimizer.learning_rate=3e-4"),
                          ElementsAre("run.seed=2", "optimizer.learning_rate=1e-3"),
                          ElementsAre("run.seed=2", "optimizer.learning_rate=3e-4")));
}

TEST(Sweep, RefusesWhatIsNoList) {
  for (const char* wrong : {"", "seed", "run.seed", "seed=1", ".seed=1", "=1.0"}) {
    EXPECT_THAT(error_of([&] { sweep({wrong}); }), HasSubstr("expected section.key=V1,V2"))
        << wrong;
  }
  EXPECT_THAT(error_of([] { sweep({"run.seed="}); }), HasSubstr("a value is empty"));
  EXPECT_THAT(error_of([] { sweep({"run.seed=1,"}); }), HasSubstr("a value is empty"));
  EXPECT_THAT(error_of([] { sweep({"run.seed=1,2,1"}); }), HasSubstr("1 stands there twice"));
  EXPECT_THAT(error_of([] {
                sweep({"run.seed=1", "run.seed=2"});
              }),
              HasSubstr("names run.seed twice"));
}

TEST(Sweep, HasAnEnd) {
  std::string many = "run.seed=0";
  for (int i = 1; i < 200; ++i) many += fmt::format(",{}", i);
  const std::string others = "data.seed" + many.substr(8);
  EXPECT_EQ(sweep({many}).size(), 200u);
  EXPECT_THAT(error_of([&] { sweep({many, others}); }), HasSubstr("40000 runs or more"));
}

}  // namespace
}  // namespace skein
