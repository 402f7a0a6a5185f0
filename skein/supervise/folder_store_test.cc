#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "skein/base/error.h"
#include "skein/supervise/store.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using test::TempFolder;
using testing::AllOf;
using testing::HasSubstr;

class FolderStore : public testing::Test {
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
    std::ofstream(folder_.path() / name) << text;
  }
  std::string refusal() {
    try {
      a_->exchange(host("a"));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  TempFolder folder_;
  std::unique_ptr<RendezvousStore> a_ = folder_store(folder_.path());
  std::unique_ptr<RendezvousStore> b_ = folder_store(folder_.path());
};

TEST_F(FolderStore, EachSeesWhatTheOthersWroteLast) {
  EXPECT_EQ(a_->exchange(host("a")).hosts.size(), 1u);
  HostRecord b = host("b");
  b.step = 7;
  EXPECT_EQ(b_->exchange(b).hosts.size(), 2u);
  b.step = 8;
  b_->exchange(b);
  const StoreView view = a_->exchange(host("a"));
  ASSERT_NE(view.host("b"), nullptr);
  EXPECT_EQ(view.host("b")->step, 8);
  EXPECT_FALSE(view.newest);
}

TEST_F(FolderStore, AGenerationIsCreatedOnce) {
  EXPECT_TRUE(a_->create(generation(1, "a")));
  EXPECT_FALSE(b_->create(generation(1, "b")));
  EXPECT_TRUE(b_->create(generation(2, "b")));
  const StoreView view = a_->exchange(host("a"));
  ASSERT_TRUE(view.newest);
  EXPECT_EQ(view.newest->number, 2);
  EXPECT_EQ(view.newest->members.at(0).host, "b");
  EXPECT_EQ(newest_generation(folder_.path())->number, 2);
}

TEST_F(FolderStore, OfManyThatCreateAtOnceOneWins) {
  std::atomic<int> winners = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      winners += folder_store(folder_.path())->create(generation(1, std::to_string(i)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
}

TEST_F(FolderStore, ARecordThatReplacesAnotherRemovesIt) {
  a_->exchange(host("a1"));
  const StoreView view = b_->exchange(host("a2", "a1"));
  ASSERT_EQ(view.hosts.size(), 1u);
  EXPECT_EQ(view.hosts[0].succeeds, "a1");
}

TEST_F(FolderStore, ForeignFilesAndTornRecordsArePassedOver) {
  write("host-b.json", "{\"host\": \"b\"");
  write("host-c.json", host_to_json(host("b")).dump());  // under another's name
  write("host-d.json", "[]");
  write("generation-1.json", "{}");
  write("notes.txt", "hello");
  write("host-e.json.123.partial", "{");
  const StoreView view = a_->exchange(host("a"));
  EXPECT_EQ(view.hosts.size(), 1u);
  EXPECT_FALSE(view.newest);
}

TEST_F(FolderStore, AGenerationThatCannotBeReadIsAnError) {
  write("generation-00000003.json", "{\"number\": 3");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("generation-00000003.json"), HasSubstr("not valid JSON")));
  write("generation-00000003.json", generation_to_json(generation(4, "a")).dump());
  EXPECT_THAT(refusal(), AllOf(HasSubstr("number is 4"), HasSubstr("expected that of its name")));
}

TEST_F(FolderStore, AFolderThatIsGoneIsAnError) {
  a_->exchange(host("a"));
  fs::remove_all(folder_.path());
  EXPECT_THAT(refusal(), HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace skein
