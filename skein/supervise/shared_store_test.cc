#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "skein/base/error.h"
#include "skein/store/signed_store.h"
#include "skein/supervise/rendezvous_store.h"
#include "tests/store/store_kinds.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class SharedStore : public testing::TestWithParam<const char*> {
 protected:
  static HostRecord host(const std::string& name, const std::string& succeeds = "") {
    HostRecord record;
    record.host = name;
    record.succeeds = succeeds;
    record.workers = 2;
    return record;
  }
  static GenerationRecord generation(int64_t number, const std::string& member) {
    GenerationRecord record;
    record.number = number;
    record.members = {{member, 2}};
    return record;
  }
  void write(const std::string& name, const std::string& text) const {
    kind_->write_raw("start-0001/machines", name, text);
  }
  std::unique_ptr<KeyValueStore> open() const { return kind_->root()->open("start-0001/machines"); }
  std::string refusal() {
    try {
      a_->exchange({host("a")});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  const std::unique_ptr<test::StoreKind> kind_ = test::store_kind(GetParam());
  std::unique_ptr<RendezvousStore> a_ = shared_store(open());
  std::unique_ptr<RendezvousStore> b_ = shared_store(open());
};
INSTANTIATE_TEST_SUITE_P(Kinds, SharedStore, testing::Values("folder", "etcd"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_P(SharedStore, EachSeesWhatTheOthersWroteLast) {
  EXPECT_EQ(a_->exchange({host("a")}).hosts.size(), 1u);
  HostRecord b = host("b");
  b.step = 7;
  EXPECT_EQ(b_->exchange({b}).hosts.size(), 2u);
  b.step = 8;
  b_->exchange({b});
  const StoreView view = a_->exchange({host("a")});
  ASSERT_NE(view.host("b"), nullptr);
  EXPECT_EQ(view.host("b")->step, 8);
  EXPECT_FALSE(view.newest);
}

TEST_P(SharedStore, AGenerationIsCreatedOnce) {
  EXPECT_TRUE(a_->create(generation(1, "a")));
  EXPECT_FALSE(b_->create(generation(1, "b")));
  EXPECT_TRUE(b_->create(generation(2, "b")));
  const StoreView view = a_->exchange({host("a")});
  ASSERT_TRUE(view.newest);
  EXPECT_EQ(view.newest->number, 2);
  EXPECT_EQ(view.newest->members.at(0).host, "b");
  EXPECT_EQ(newest_generation(open())->number, 2);
}

TEST_P(SharedStore, OfManyThatCreateAtOnceOneWins) {
  std::atomic<int> winners = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back(
        [&, i] { winners += shared_store(open())->create(generation(1, std::to_string(i))); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
}

TEST_P(SharedStore, ARecordThatReplacesAnotherRemovesIt) {
  a_->exchange({host("a1")});
  const StoreView view = b_->exchange({host("a2", "a1")});
  ASSERT_EQ(view.hosts.size(), 1u);
  EXPECT_EQ(view.hosts[0].succeeds, "a1");
}

TEST_P(SharedStore, ForeignAndTornRecordsArePassedOver) {
  write("host-b.json", "{\"host\": \"b\"");
  write("host-c.json", host_to_json(host("b")).dump());  // under another's name
  write("host-d.json", "[]");
  write("generation-1.json", "{}");
  write("notes.txt", "hello");
  write("host-e.json.123.partial", "{");
  const StoreView view = a_->exchange({host("a")});
  EXPECT_EQ(view.hosts.size(), 1u);
  EXPECT_THAT(view.unread, testing::IsEmpty());  // nothing that will be there at another look
  EXPECT_FALSE(view.newest);
}

// A file server's crash leaves such: the host stands still from here on.
TEST_P(SharedStore, ARecordThatIsTornLaterStandsStill) {
  b_->exchange({host("b")});
  a_->exchange({host("a")});
  write("host-b.json", "");
  const StoreView view = a_->exchange({host("a")});
  ASSERT_NE(view.host("b"), nullptr);
  EXPECT_THAT(view.unread, testing::IsEmpty());
}

// As the machines of a run meet. What is not signed will not be at the next look either.
TEST_P(SharedStore, ARecordWithoutASignatureIsNoneThatCannotBeReadNow) {
  const JobSecret secret("0123456789abcdef", "the test");
  const auto a = shared_store(signed_root(kind_->root(), secret)->open("start-0002/machines"));
  a->exchange({host("a")});
  kind_->write_raw("start-0002/machines", "host-b.json", host_to_json(host("b")).dump());
  const StoreView view = a->exchange({host("a")});
  EXPECT_EQ(view.hosts.size(), 1u);
  EXPECT_THAT(view.unread, testing::IsEmpty());
}

TEST_P(SharedStore, AGenerationThatCannotBeReadIsAnError) {
  write("generation-00000003.json", "{\"number\": 3");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("generation-00000003.json"), HasSubstr("not valid JSON")));
  write("generation-00000003.json", generation_to_json(generation(4, "a")).dump());
  EXPECT_THAT(refusal(), AllOf(HasSubstr("number is 4"), HasSubstr("expected that of its name")));
}

TEST_P(SharedStore, ARendezvousThatIsGoneIsAnError) {
  a_->exchange({host("a")});
  kind_->root()->open("start-0001/machines")->remove_all();
  EXPECT_NE(refusal(), "");
}

TEST_P(SharedStore, AFollowerReadsWhatTheLeaderFound) {
  a_->exchange({host("a")});
  b_->exchange({host("b"), true, StoreRole::kFollow});
  a_->exchange({host("a")});
  a_->create(generation(1, "a"));
  const StoreView view = b_->exchange({host("b"), true, StoreRole::kFollow});
  EXPECT_FALSE(view.is_direct);
  EXPECT_EQ(view.leader, "a");
  EXPECT_EQ(view.hosts.size(), 2u);
  ASSERT_TRUE(view.newest);
  EXPECT_EQ(view.newest->number, 1);
}

TEST_P(SharedStore, ADigestThatIsNoneIsPassedOver) {
  write("digest.json", "{\"term\": ");
  EXPECT_TRUE(b_->exchange({host("b"), true, StoreRole::kFollow}).leader.empty());
  a_->exchange({host("a")});
  EXPECT_EQ(b_->exchange({host("b"), true, StoreRole::kFollow}).leader, "a");
}

TEST_P(SharedStore, AGenerationThatVanishedIsAnError) {
  a_->create(generation(3, "a"));
  a_->exchange({host("a")});
  open()->remove("generation-00000003.json");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("generation 3"), HasSubstr("no more")));
}

}  // namespace
}  // namespace skein
