#include "skein/comm/gloo/proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "skein/base/error.h"
#include "skein/comm/gloo/gloo_communicator.h"
#include "tests/comm/rank_threads.h"
#include "tests/error_of.h"

namespace skein::comm_test {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

// What each of two ranks says to a barrier; both connect, whatever they know.
void expect_of_barrier(const std::string& secret_of_rank_1,
                       const testing::Matcher<std::string>& expected) {
  run_rank_threads(2, [&](WorldOptions options) {
    if (options.rank == 1) options.secret = std::make_shared<JobSecret>(secret_of_rank_1, "test");
    EXPECT_THAT(error_of([&] { make_world(options)->run({}); }), expected);
  });
}

TEST(Proof, WhoDoesNotKnowTheSecretIsNamed) {
  expect_of_barrier("the secret of another",
                    AllOf(HasSubstr("does not know this run's secret"), HasSubstr("as rank")));
}

// Rank 1 believes who connects and proves nothing: it stands for a stranger that only listens.
TEST(Proof, NothingIsSentBeforeIt) {
  run_rank_threads(2, [](WorldOptions options) {
    const bool is_root = options.rank == 0;
    // Only the root loses patience: the stranger still listens when it does.
    options.timeout_s = options.start_timeout_s = is_root ? 1 : 60;
    if (!is_root) options.secret = nullptr;
    std::vector<float> data(1024, is_root ? 1.F : 0.F);
    const std::string problem = error_of([&] {
      make_world(options)->run({.kind = CollectiveKind::kBroadcast,
                                .parts = {{.input = is_root ? data.data() : nullptr,
                                           .output = data.data(),
                                           .elements = std::ssize(data)}}});
    });
    EXPECT_THAT(problem, is_root ? HasSubstr("did not prove to rank 0") : HasSubstr("rank 0"));
    EXPECT_THAT(data, testing::Each(is_root ? 1.F : 0.F));
  });
}

TEST(Proof, WhoKnowsTheSecretTakesPart) { expect_of_barrier("the secret of a test", IsEmpty()); }

}  // namespace
}  // namespace skein::comm_test
