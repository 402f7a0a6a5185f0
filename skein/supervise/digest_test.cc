// Who reads what, and who takes the lead: digest.h.
#include "skein/supervise/digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/text/json.h"
#include "skein/supervise/membership.h"
#include "skein/supervise/rendezvous_store.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Shelf {  // what all hosts see
  std::map<std::string, HostRecord> hosts;
  std::map<int64_t, GenerationRecord> generations;
  std::optional<HostDigest> digest;
  std::shared_ptr<const DigestList> list;
  std::string fails;  // reading it
  std::vector<std::string> calls;

  void call(const std::string& what) {
    calls.push_back(what);
    if (what == fails) fail(ErrorCode::kIo, "{}: EIO", what);
  }
};

class ShelfRecords : public RecordStore {
 public:
  explicit ShelfRecords(Shelf& shelf) : shelf_(shelf) {}
  const std::string& text() const override { return text_; }
  void write(const HostRecord& record) override {
    shelf_.call("write " + record.host);
    shelf_.hosts[record.host] = record;
  }
  void remove(const std::string& host) override { shelf_.hosts.erase(host); }
  std::vector<HostRecord> hosts(const std::set<std::string>& known, std::set<std::string>& unread,
                                const std::function<void()>& after_each) override {
    std::vector<HostRecord> hosts;
    for (const auto& [name, record] : shelf_.hosts) {
      if (known.contains(name)) continue;
      if (name == shelf_.fails) unread.insert(name);
      if (name == shelf_.fails) continue;
      shelf_.call("read " + name);
      hosts.push_back(record);
      after_each();
    }
    return hosts;
  }
  int64_t newest_number() override { return std::ssize(shelf_.generations); }
  SharedGeneration generation(int64_t number) override {
    shelf_.call("generation");
    return shelf_.generations.at(number);
  }
  bool create(const GenerationRecord& generation) override {
    return shelf_.generations.emplace(generation.number, generation).second;
  }
  std::optional<HostDigest> digest() override {
    shelf_.call("digest");
    return shelf_.digest;
  }
  void write(const HostDigest& digest) override {
    shelf_.call("write digest");
    shelf_.digest = digest;
  }
  std::shared_ptr<const DigestList> digest_list() override {
    shelf_.call("list");
    return shelf_.list;
  }
  void write(std::shared_ptr<const DigestList> list) override {
    shelf_.call("write list");
    shelf_.list = std::move(list);
  }

 private:
  Shelf& shelf_;
  const std::string text_ = "the shelf";
};

HostRecord host(const std::string& name, int64_t beat = 1) {
  HostRecord record;
  record.host = name;
  record.beat = beat;
  record.workers = 2;
  record.checked = kNeedsNoCheck;
  return record;
}

MembershipOptions two_hosts() {
  MembershipOptions options;
  options.min_hosts = options.max_hosts = 2;
  return options;
}

// A host: its store, and what it concludes.
struct Machine {
  Machine(Shelf& shelf, const std::string& name)
      : name(name),
        store(digest_store(std::make_unique<ShelfRecords>(shelf))),
        membership(two_hosts(), name) {}
  void exchange(Millis now) {
    HostRecord record = host(name, ++beat);
    membership.update(store->exchange({record, true, membership.role(), now}), now);
  }

  const std::string name;
  const std::unique_ptr<RendezvousStore> store;
  Membership membership;
  int64_t beat = 0;
};

class Digests : public testing::Test {
 protected:
  std::vector<std::string> take_calls() { return std::exchange(shelf_.calls, {}); }

  Shelf shelf_;
  Machine a_{shelf_, "a"}, b_{shelf_, "b"};
};

TEST_F(Digests, TheFirstWhoFindsNoneLeadsAndTheOthersReadWhatItFound) {
  b_.exchange(0);
  EXPECT_EQ(b_.membership.role(), StoreRole::kLead);
  a_.exchange(10);
  EXPECT_FALSE(a_.membership.view().is_direct);
  b_.exchange(1'000);
  a_.exchange(1'010);
  ASSERT_NE(a_.membership.view().host("b"), nullptr);
  EXPECT_EQ(a_.membership.view().host("b")->workers, 2);
  take_calls();
  // It is a's turn, so a takes over, and b follows.
  a_.exchange(2'000);
  EXPECT_TRUE(a_.membership.view().is_direct);
  b_.exchange(2'010);
  b_.exchange(3'000);
  EXPECT_FALSE(b_.membership.view().is_direct);
  EXPECT_EQ(b_.membership.role(), StoreRole::kFollow);
  a_.exchange(3'000);
  take_calls();
  b_.exchange(4'000);
  EXPECT_THAT(take_calls(), ElementsAre("write b", "digest"));
  a_.exchange(4'000);
  EXPECT_THAT(take_calls(), ElementsAre("write a", "digest", "read a", "read b", "write digest"));
}

TEST_F(Digests, AFollowerBeginsNoGeneration) {
  Membership b(two_hosts(), "b");
  StoreView view{.hosts = {host("b", 0), host("c", 0)}, .is_direct = false, .leader = "c"};
  view.leader_moved = true;
  b.update(view, 0);
  EXPECT_TRUE(b.is_my_turn());
  EXPECT_FALSE(b.next_generation(0));
  EXPECT_EQ(b.role(), StoreRole::kLead);
  view.is_direct = true;
  b.update(view, 100);
  EXPECT_TRUE(b.next_generation(100));
}

TEST_F(Digests, ALeaderThatIsGoneIsFollowedByTheNextInTurn) {
  for (Millis now = 0; now < 5'000; now += 1'000) {
    a_.exchange(now);
    b_.exchange(now);
  }
  EXPECT_EQ(b_.membership.role(), StoreRole::kFollow);
  for (Millis now = 5'000; now < 8'000; now += 1'000) b_.exchange(now);
  EXPECT_EQ(b_.membership.role(), StoreRole::kHeir);
  for (Millis now = 8'000; now < 14'000; now += 1'000) b_.exchange(now);
  EXPECT_EQ(b_.membership.role(), StoreRole::kHeir) << "a may still live";
  b_.exchange(14'000);
  EXPECT_EQ(b_.membership.role(), StoreRole::kLead);
  b_.exchange(15'000);
  EXPECT_EQ(shelf_.digest->key, (DigestKey{2, "b"}));
}

// A silent list of all members is not enough: this host has not looked itself.
TEST_F(Digests, TheFenceCountsOnlyWhatIsReadDirectly) {
  Membership c(two_hosts(), "c");
  GenerationRecord generation{.number = 1, .members = {{"a", 2}, {"b", 2}}};
  const std::map<std::string, Millis> quiet = {{"a", 500'000}, {"b", 500'000}};
  StoreView view{.hosts = {host("a"), host("b"), host("c")}, .newest = generation};
  view.is_direct = false;
  view.leader = "d";
  view.quiet = std::make_shared<const std::map<std::string, Millis>>(quiet);
  Millis now = 0;
  for (; now < 300'000; now += 1'000) c.update(view, now);
  EXPECT_TRUE(c.is_silent("a"));
  EXPECT_TRUE(c.is_over(generation)) << "it should check itself";
  EXPECT_FALSE(c.next_generation(now));
  view.is_direct = true;
  const Millis from = now;
  for (; now < from + 120'000; now += 1'000) {
    c.update(view, now);
    EXPECT_FALSE(c.is_over(generation)) << now - from;
  }
  c.update(view, now);
  EXPECT_TRUE(c.is_over(generation));
}

TEST_F(Digests, ADigestThatCannotBeReadIsAFailureAndThenWrittenAgain) {
  a_.exchange(0);
  b_.exchange(0);
  shelf_.fails = "digest";
  EXPECT_THROW(b_.exchange(1'000), Error);
  Millis now = 1'000;
  while (shelf_.digest->key.writer == "a" && now < 60'000) {
    try {
      b_.exchange(now += 500);
    } catch (const Error&) {
    }
  }
  EXPECT_EQ(shelf_.digest->key.writer, "b");
  EXPECT_GE(now, 11'000);
}

// It was silent for long, and says something at last: not to have read it is no silence.
TEST_F(Digests, ARecordThatCannotBeReadIsNotSilent) {
  Membership c(two_hosts(), "c");
  GenerationRecord generation{.number = 1, .members = {{"a", 2}}};
  StoreView view{.hosts = {host("a"), host("c")}, .newest = generation};
  for (Millis now = 0; now < 121'000; now += 1'000) c.update(view, now);
  EXPECT_TRUE(c.is_over(generation));
  view.unread = {"a"};
  c.update(view, 121'000);
  EXPECT_FALSE(c.is_over(generation));
}

TEST_F(Digests, AMemberThatWasSilentForLongIsReadAtEachLook) {
  Machine c(shelf_, "c");
  b_.exchange(0);
  shelf_.generations[1] = GenerationRecord{.number = 1, .members = {{"c", 2}}};
  int64_t beat = 0;
  const auto look = [&](Millis now) {
    take_calls();
    c.store->exchange({host("c", ++beat), true, StoreRole::kLead, now});
    return std::ranges::count(take_calls(), "read b");
  };
  for (Millis now = 0; now < 60'000; now += 1'000) EXPECT_EQ(look(now), 1) << now;
  int64_t seldom = 0;
  for (Millis now = 60'000; now < 100'000; now += 1'000) seldom += look(now);
  EXPECT_EQ(seldom, 4);
  shelf_.generations[2] = GenerationRecord{.number = 2, .members = {{"b", 2}}};
  for (Millis now = 100'000; now < 120'000; now += 1'000) EXPECT_EQ(look(now), 1) << now;
}

// One machine alone may be unable to read it, or a former leader's may lie there.
TEST_F(Digests, AFollowerWithoutTheListReadsTheRecordsItself) {
  b_.exchange(0);
  shelf_.fails = "list";
  Millis now = 0;
  for (; now <= 2'000; now += 500) a_.exchange(now);
  EXPECT_FALSE(a_.membership.view().is_direct);
  b_.exchange(now);
  a_.exchange(now);
  EXPECT_TRUE(a_.membership.view().is_direct);
  ASSERT_NE(a_.membership.view().host("b"), nullptr);
}

TEST_F(Digests, ALeaderThatCannotWriteTheDigestSeesTheOthers) {
  a_.exchange(0);
  shelf_.fails = "write list";
  b_.exchange(100);
  a_.exchange(1'000);
  ASSERT_NE(a_.membership.view().host("b"), nullptr);
  EXPECT_EQ(a_.membership.role(), StoreRole::kLead);
}

TEST_F(Digests, AHostWhoseOwnRecordIsLostIsOutOfTouch) {
  a_.exchange(0);
  a_.exchange(1'000);
  shelf_.fails = "a";
  EXPECT_THROW(a_.exchange(2'000), Error);
}

// To have been unable to read a record is no sign that its host is silent.
TEST_F(Digests, ARecordThatCannotBeReadDoesNotGrowOld) {
  Membership c(two_hosts(), "c");
  StoreView view{.hosts = {host("a"), host("c")}};
  view.unread = {"a"};
  Millis now = 0;
  for (; now < 100'000; now += 1'000) c.update(view, now);
  EXPECT_FALSE(c.is_silent("a"));
  view.unread = {};
  for (const Millis from = now; now <= from + 10'000; now += 1'000) c.update(view, now);
  EXPECT_TRUE(c.is_silent("a"));
}

// The list said that a stood still, and is old: it is asked again before anybody believes it.
TEST_F(Digests, WhatAListSaidOfSilenceIsLookedAtBeforeItCounts) {
  const std::map<std::string, Millis> quiet = {{"a", 4'000}};
  StoreView listed{.hosts = {host("a", 0), host("b", 0), host("c", 0)}, .is_direct = false};
  listed.leader = "b";
  listed.leader_moved = true;
  listed.quiet = std::make_shared<const std::map<std::string, Millis>>(quiet);
  const auto heir = [&](int64_t beats_a_look) {
    Membership c(two_hosts(), "c");
    c.update(listed, 0);
    listed.leader_moved = false;
    Millis now = 1'000;
    for (; now < 10'000; now += 1'000) c.update(listed, now);
    EXPECT_TRUE(c.is_silent("a")) << "by the list";
    StoreView view{.hosts = {host("a", 50), host("b", 7), host("c", 1)}};
    view.quiet = listed.quiet;
    std::vector<bool> silent;
    for (int64_t beat = 50; silent.size() < 4; now += 1'000, beat += beats_a_look) {
      view.hosts = {host("a", beat), host("b", 7), host("c", 1)};
      c.update(view, now);
      silent.push_back(c.is_silent("a"));
    }
    return silent;
  };
  EXPECT_THAT(heir(1), ElementsAre(false, false, false, false));
  EXPECT_THAT(heir(0), ElementsAre(false, false, true, true));
}

TEST_F(Digests, ARecordThatCannotBeReadForAMomentStaysAsItWas) {
  a_.exchange(0);
  b_.exchange(0);
  a_.exchange(1'000);
  shelf_.fails = "b";
  a_.exchange(2'000);
  ASSERT_NE(a_.membership.view().host("b"), nullptr);
}

TEST_F(Digests, RecordsOfHostsThatAreGoneAreNotReadAgain) {
  b_.exchange(0);
  HostRecord gone = host("b", 7);
  gone.gone = true;
  shelf_.hosts["b"] = gone;
  Machine c(shelf_, "c");
  c.store->exchange({host("c"), true, StoreRole::kLead, 0});
  take_calls();
  const StoreView view = c.store->exchange({host("c", 2), true, StoreRole::kLead, 1'000});
  EXPECT_THAT(take_calls(), ElementsAre("write c", "digest", "read c", "write digest"));
  ASSERT_NE(view.host("b"), nullptr);
  EXPECT_TRUE(view.host("b")->gone);
}

TEST(DigestText, HoldsWhatItSays) {
  const HostDigest digest{.key = {3, "b"}, .beat = 7, .host_beat = 9, .list = 2, .generation = 4};
  const HostDigest read = digest_from_json(Json::parse(digest_to_json(digest).dump()), "digest");
  EXPECT_EQ(read.key, digest.key);
  EXPECT_EQ(read.beat, 7);
  EXPECT_EQ(read.host_beat, 9);
  EXPECT_EQ(read.list, 2);
  EXPECT_EQ(read.generation, 4);
  HostRecord ended = host("a");
  ended.joined = ended.ended = 3;
  ended.ending = Ending::kHung;
  ended.message = "rank 1 made no progress";
  const DigestList list{.key = {3, "b"},
                        .number = 2,
                        .hosts = {ended, host("b")},
                        .quiet = std::make_shared<const std::map<std::string, Millis>>(
                            std::map<std::string, Millis>{{"b", 4'000}})};
  const DigestList again =
      digest_list_from_json(Json::parse(digest_list_to_json(list).dump()), "list");
  ASSERT_EQ(again.hosts.size(), 2u);
  ended.beat = 1;
  EXPECT_EQ(again.hosts[0], ended);
  EXPECT_EQ(again.quiet->at("b"), 4'000);
  EXPECT_THROW(digest_from_json(Json::parse("{}"), "digest"), Error);
  EXPECT_THROW(digest_list_from_json(Json::parse("[]"), "list"), Error);
}

}  // namespace
}  // namespace skein
