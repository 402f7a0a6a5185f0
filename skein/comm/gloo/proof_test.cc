#include "skein/comm/gloo/proof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

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

TEST(Proof, WhoKnowsTheSecretTakesPart) { expect_of_barrier("the secret of a test", IsEmpty()); }

}  // namespace
}  // namespace skein::comm_test
