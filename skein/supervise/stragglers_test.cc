#include "skein/supervise/stragglers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

StoreView with_work(const std::vector<std::vector<int64_t>>& hosts) {
  StoreView view;
  GenerationRecord newest{.number = 3};
  for (const std::vector<int64_t>& work : hosts) {
    HostRecord host;
    host.host = std::string(1, static_cast<char>('a' + view.hosts.size()));
    host.joined = 3;
    host.work_us = work;
    newest.members.push_back({host.host, 2});
    view.hosts.change().push_back(host);
  }
  view.newest = newest;
  return view;
}

TEST(WorkMeter, IsTheMeanOverAWindowOncePerWindow) {
  WorkMeter meter(2);
  EXPECT_FALSE(meter.add(0, 5, 1'000, 1));
  EXPECT_FALSE(meter.add(0, 9, 9'000, 10'000));
  EXPECT_TRUE(meter.add(0, 10, 11'000, 10'001));
  EXPECT_THAT(meter.us_per_step(), IsEmpty()) << "the other worker is not known yet";
  meter.add(1, 5, 0, 1);
  EXPECT_FALSE(meter.add(1, 5, 0, 20'000)) << "no step, no figure";
  EXPECT_TRUE(meter.add(1, 6, 7'000, 20'001));
  EXPECT_THAT(meter.us_per_step(), ElementsAre(2'000, 7'000));
  EXPECT_TRUE(meter.add(0, 11, 14'000, 20'001));
  EXPECT_THAT(meter.us_per_step(), ElementsAre(3'000, 7'000));
}

TEST(Stragglers, ARankThatIsSlowForAWhileIsNamedOnce) {
  Stragglers stragglers(1);
  const StoreView view = with_work({{1'000, 1'100}, {900, 1'500}});
  EXPECT_THAT(stragglers.find(view, 1), IsEmpty());
  EXPECT_THAT(stragglers.find(view, 60'000), IsEmpty());
  const std::vector<Straggler> found = stragglers.find(view, 60'001);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].rank, 3);
  EXPECT_EQ(found[0].host, "b");
  EXPECT_EQ(found[0].median_us, 1'000);
  EXPECT_THAT(straggler_text(found[0]), HasSubstr("rank 3 on b is slow"));
  EXPECT_THAT(stragglers.find(view, 200'000), IsEmpty());
}

TEST(Stragglers, WhoCatchesUpBeginsAnew) {
  Stragglers stragglers(1);
  const StoreView slow = with_work({{1'000, 1'000}, {1'000, 1'400}});
  stragglers.find(slow, 1);
  stragglers.find(with_work({{1'000, 1'000}, {1'000, 1'300}}), 30'000);
  EXPECT_THAT(stragglers.find(slow, 60'001), IsEmpty());
  EXPECT_THAT(stragglers.find(slow, 119'999), IsEmpty());
  EXPECT_EQ(stragglers.find(slow, 120'001).size(), 1u);
}

TEST(Stragglers, OtherStagesAreNoPeers) {
  const StoreView view = with_work({{1'000, 1'000}, {2'000, 2'000}});
  Stragglers of_two_stages(2);
  of_two_stages.find(view, 1);
  EXPECT_THAT(of_two_stages.find(view, 100'000), IsEmpty());
}

TEST(Stragglers, NothingIsSaidWhileAHostIsSilent) {
  StoreView view = with_work({{1'000, 1'000}, {1'000, 5'000}});
  Stragglers stragglers(1);
  stragglers.find(view, 1);
  view.hosts.change()[0].work_us.clear();
  EXPECT_THAT(stragglers.find(view, 50'000), IsEmpty());
  view = with_work({{1'000, 1'000}, {1'000, 5'000}});
  EXPECT_THAT(stragglers.find(view, 60'001), IsEmpty());
}

}  // namespace
}  // namespace skein
