#include "skein/store/key_value_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "skein/base/error.h"
#include "skein/base/text/log.h"
#include "tests/error_of.h"
#include "tests/store/store_kinds.h"

namespace skein {
namespace {

using test::error_of;
using test::EtcdServer;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

class Stores : public testing::TestWithParam<const char*> {
 protected:
  const std::unique_ptr<test::StoreKind> kind_ = test::store_kind(GetParam());
  const std::unique_ptr<StoreRoot> root_ = kind_->root();
};
INSTANTIATE_TEST_SUITE_P(Kinds, Stores, testing::Values("folder", "etcd"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_P(Stores, ARecordIsReadAsItWasWrittenLast) {
  const auto a = root_->open("start-0001"), b = kind_->root()->open("start-0001");
  EXPECT_EQ(a->read("one"), std::nullopt);
  a->write("one", "1");
  EXPECT_EQ(b->read("one"), "1");
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i);
  for (size_t length : {0, 1, 2, 3, 1000}) {
    b->write("one", bytes.substr(0, length));
    EXPECT_EQ(a->read("one"), bytes.substr(0, length));
  }
  a->remove("one");
  EXPECT_EQ(b->read("one"), std::nullopt);
}

TEST_P(Stores, RecordsAreListedByTheBeginningOfTheirNames) {
  const auto store = root_->open("start-0001"), other = root_->open("start-0002");
  for (const char* name : {"host-b", "host-a", "generation-1", "hosts"}) store->write(name, name);
  other->write("host-c", "");
  EXPECT_THAT(store->names("host-"), ElementsAre("host-a", "host-b"));
  EXPECT_THAT(store->entries("host-", {"host-a"}), ElementsAre(Pair("host-b", "host-b")));
  EXPECT_THAT(root_->places(), ElementsAre("start-0001", "start-0002"));
}

TEST_P(Stores, ARecordIsCreatedOnceWhoeverTries) {
  std::atomic<int> winners = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back(
        [&, i] { winners += kind_->root()->open("start-0001")->create("one", std::to_string(i)); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
}

TEST_P(Stores, APlaceGoesAsAWhole) {
  const auto store = root_->open("start-0001-g1"), other = root_->open("start-0001");
  store->write("one", "1");
  other->write("two", "2");
  store->remove_all();
  EXPECT_THAT(root_->places(), ElementsAre("start-0001"));
  EXPECT_EQ(root_->open("start-0001-g1")->read("one"), std::nullopt);
  EXPECT_EQ(other->read("two"), "2");
}

TEST(FolderStore, OnlyWhatIsNotThereIsAbsent) {
  const test::TempFolder folder;
  const auto store = folder_store(folder / "start-0001");
  store->write("host-a", "1");
  EXPECT_EQ(store->read("host-b"), std::nullopt);
  fs::create_symlink("host-c", folder / "start-0001/host-c");
  ASSERT_EQ(::mkfifo((folder / "start-0001/host-d").c_str(), 0600), 0);
  EXPECT_THAT(error_of([&] { store->read("host-c"); }), HasSubstr("host-c: Too many levels"));
  EXPECT_THAT(error_of([&] { store->read("host-d"); }), HasSubstr("found a FIFO of"));
  testing::internal::CaptureStderr();
  log::start();
  EXPECT_EQ(store->entries("host-").size(), 1u);
  EXPECT_EQ(store->entries("host-").size(), 1u);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, AllOf(HasSubstr("passed over"), HasSubstr("host-c"), HasSubstr("host-d")));
  EXPECT_EQ(said.find("host-c: "), said.rfind("host-c: ")) << said;  // once
  struct rlimit former {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &former), 0);
  const struct rlimit none = {3, former.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string error = error_of([&] { store->read("host-a"); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &former), 0);
  EXPECT_THAT(error, HasSubstr("Too many open files"));
  EXPECT_EQ(store->read("host-a"), "1");
  fs::remove_all(folder / "start-0001");
  EXPECT_EQ(store->read("host-a"), std::nullopt);
}

TEST(FolderStore, ItsRecordsAreForThisUserAlone) {
  const test::TempFolder folder;
  const auto store = folder_store(folder.path());
  const mode_t former = ::umask(0);
  store->write("host-a", "1");
  store->create("generation-00000001", "1");
  ::umask(former);
  for (const char* name : {"host-a", "generation-00000001"}) {
    EXPECT_EQ(fs::status(folder / name).permissions(), fs::perms(0600)) << name;
  }
}

TEST(FolderStore, AFolderThatIsGoneIsNamedWithWhatToDo) {
  const test::TempFolder folder;
  const auto store = folder_store(folder / "start-0001");
  fs::remove_all(folder / "start-0001");
  EXPECT_THAT(error_of([&] { store->write("one", "1"); }),
              AllOf(HasSubstr("start-0001 is there no more"), HasSubstr("start it again")));
}

TEST(Etcd, WhatItHeldIsThereWhenItComesBack) {
  EtcdServer server;
  const auto store = store_root(server.address("demo"))->open("start-0001");
  store->write("one", "1");
  server.stop();
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THAT(error_of([&] { store->write("one", "2"); }),
              AllOf(HasSubstr("etcd does not answer"), HasSubstr(server.endpoint())));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
  server.start();
  EXPECT_EQ(store->read("one"), "1");
  store->write("one", "3");
  EXPECT_EQ(store->read("one"), "3");
}

TEST(Etcd, AnEndpointThatDoesNotAnswerIsPassedOver) {
  EtcdServer server;
  const std::string dead = fmt::format("127.0.0.1:{}", test::free_port());
  const auto root = store_root("etcd://" + dead + "," + server.endpoint() + "/demo");
  root->open("start-0001")->write("one", "1");
  EXPECT_EQ(root->open("start-0001")->read("one"), "1");
}

// A socket that takes connections and never says a word.
TEST(Etcd, ACallHasADeadline) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(socket.get(), at, length), 0);
  ASSERT_EQ(::listen(socket.get(), 8), 0);
  ASSERT_EQ(::getsockname(socket.get(), at, &length), 0);
  const auto root = store_root(fmt::format("etcd://127.0.0.1:{}/demo", ntohs(address.sin_port)));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THAT(error_of([&] { root->places(); }), HasSubstr("imeout"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
}

TEST(Etcd, WhatADeadRunLeftVanishesWithItsLease) {
  EtcdServer server;
  EtcdClient client({server.endpoint()});
  const auto root = store_root(server.address("demo"));
  root->open("start-0001")->write("one", "1");
  const auto lease = client.get("demo/start-0001/lease");
  ASSERT_TRUE(lease);
  client.revoke_lease(std::stoll(*lease));  // as it ends by itself after a week
  EXPECT_TRUE(client.range("demo/start-0001/records/", true).empty());
  EXPECT_THAT(error_of([&] { root->open("start-0001"); }), HasSubstr("is over"));
  EXPECT_THAT(root->places(), ElementsAre("start-0001"));  // no other start takes its name
}

TEST(Etcd, AKeyOfSomebodyElseIsNamed) {
  EtcdServer server;
  EtcdClient({server.endpoint()}).put("demo/start-0001/lease", "hello", 0);
  EXPECT_THAT(error_of([&] { store_root(server.address("demo"))->open("start-0001"); }),
              AllOf(HasSubstr("demo/start-0001/lease"), HasSubstr("\"hello\""),
                    HasSubstr("another prefix")));
}

TEST(Etcd, AnAddressIsCheckedBeforeItIsUsed) {
  for (const char* wrong : {"etcd://", "etcd://host", "etcd://host:1", "etcd://host:1/",
                            "etcd://host:0/a", "etcd://host:65536/a", "etcd://host:1,/a",
                            "etcd://host:1//a", "etcd://host:1/a b", "redis://host:1/a"}) {
    EXPECT_THAT(error_of([&] { store_root(wrong); }),
                AllOf(HasSubstr(wrong), HasSubstr("etcd://host:port")));
  }
  EXPECT_THAT(error_of([] { store_root("etcd://user:hidden@host:1/a"); }),
              AllOf(HasSubstr("launch.etcd_password_file"), Not(HasSubstr("hidden"))));
  for (const char* right :
       {"etcd://host:1/a", "etcd://host-0.a:2379,[::1]:2379/team/run-7", "/shared/folder"}) {
    EXPECT_EQ(store_root(right)->text(), right);
  }
}

}  // namespace
}  // namespace skein
