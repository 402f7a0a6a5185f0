#include "skein/store/signed_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "skein/base/error.h"
#include "tests/error_of.h"
#include "tests/store/store_kinds.h"

namespace skein {
namespace {

using test::error_of;
using test::TempFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

const JobSecret kOurs("0123456789abcdef", "ours"), kTheirs("fedcba9876543210", "theirs");

class SignedStores : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<StoreRoot> root(const JobSecret& secret) const {
    return signed_root(kind_->root(), secret);
  }
  const std::unique_ptr<test::StoreKind> kind_ = test::store_kind(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Kinds, SignedStores, testing::Values("folder", "etcd"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_P(SignedStores, WhoKnowsTheSecretReadsWhatWasWritten) {
  const auto a = root(kOurs)->open("start-0001"), b = root(kOurs)->open("start-0001");
  a->write("one", "1\n");
  EXPECT_TRUE(b->create("two", ""));
  EXPECT_EQ(b->read("one"), "1\n");
  EXPECT_THAT(a->entries("t"), ElementsAre(Pair("two", "")));
}

// Two runs with one name, and a machine with a wrong secret: refused before they write anything.
TEST_P(SignedStores, APlaceOfAnotherRunIsRefused) {
  root(kOurs)->open("start-0001");
  EXPECT_THAT(error_of([&] { root(kTheirs)->open("start-0001"); }),
              AllOf(HasSubstr("start-0001"), HasSubstr("another secret"), HasSubstr("theirs"),
                    HasSubstr("launch.secret_file")));
  EXPECT_THAT(kind_->root()->open("start-0001")->names(""), ElementsAre("run"));
}

TEST_P(SignedStores, RecordsThatTheRunDidNotWriteAreNone) {
  const auto ours = root(kOurs)->open("start-0001"), later = root(kOurs)->open("start-0002");
  const auto raw = kind_->root()->open("start-0001");
  ours->write("host-a", "a");
  const std::string right = *raw->read("host-a");
  later->write("host-e", "e");
  kind_->write_raw("start-0001", "host-b", "{\"host\": \"b\"}");    // not signed
  kind_->write_raw("start-0001", "host-c", right);                  // of another name
  kind_->write_raw("start-0001", "host-d", "A" + right.substr(1));  // changed
  kind_->write_raw("start-0001", "host-e", *kind_->root()->open("start-0002")->read("host-e"));
  kind_->write_raw("start-0001", "host-f", right.substr(0, right.size() - 1));  // torn
  EXPECT_THAT(ours->entries("host-"), ElementsAre(Pair("host-a", "a")));
  for (const char* name : {"host-b", "host-c", "host-d", "host-e", "host-f"}) {
    EXPECT_THAT(error_of([&] { ours->read(name); }), HasSubstr("not signed")) << name;
  }
}

// The folder was removed while it was in use, and a machine that came later has made it anew.
TEST_P(SignedStores, APlaceThatWasMadeAnewIsSaidToBe) {
  const auto ours = root(kOurs)->open("start-0001");
  kind_->write_raw("start-0001", "host-b", "{}");
  EXPECT_TRUE(ours->entries("host-").empty());
  kind_->write_raw("start-0001", "run", "skein");
  EXPECT_THAT(error_of([&] { ours->entries("host-"); }),
              AllOf(HasSubstr("start-0001 was made again"), HasSubstr("from ours"),
                    HasSubstr("Stop `skein train` on every machine")));
}

TEST_P(SignedStores, APlaceWithoutARunsRecordIsNone) {
  kind_->write_raw("start-0001", "host-b", "{}");
  const auto raw = kind_->root()->open("start-0001");
  EXPECT_THAT(error_of([&] { root(kOurs)->open("start-0001"); }), HasSubstr("no start"));
}

TEST(JobSecret, IsKnownByItsSignatures) {
  const JobSecret::Signature once = kOurs.sign({"a", "bc"});
  EXPECT_NE(once, kOurs.sign({"ab", "c"}));
  EXPECT_NE(once, kTheirs.sign({"a", "bc"}));
  EXPECT_TRUE(kOurs.is_signed({once.data(), once.size()}, {"a", "bc"}));
  EXPECT_FALSE(kOurs.is_signed({once.data(), once.size() - 1}, {"a", "bc"}));
}

class JobSecretFile : public testing::Test {
 protected:
  void TearDown() override { ::unsetenv("SKEIN_JOB_SECRET"); }
  bool same(const JobSecret& a, const JobSecret& b) const { return a.sign({"x"}) == b.sign({"x"}); }
  fs::path file(const std::string& text, mode_t mode) const {
    const fs::path path = folder_ / "given";
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
  const TempFolder folder_;
  const fs::path made_ = folder_ / "rendezvous/secret";
};

TEST_F(JobSecretFile, IsMadeOnceAndForItsUserAlone) {
  const JobSecret first = JobSecret::find("", made_);
  struct stat status {};
  ASSERT_EQ(::stat(made_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_TRUE(same(first, JobSecret::find("", made_)));
  EXPECT_FALSE(same(first, JobSecret::find("", folder_ / "other/secret")));
}

TEST_F(JobSecretFile, TheVariableGoesBeforeTheKeyAndBothBeforeTheFile) {
  const fs::path given = file("0123456789abcdef\n", 0600);
  EXPECT_TRUE(same(JobSecret::find(given, made_), kOurs));
  ::setenv("SKEIN_JOB_SECRET", "fedcba9876543210", 1);
  EXPECT_TRUE(same(JobSecret::find(given, made_), kTheirs));
  EXPECT_FALSE(fs::exists(made_));
}

TEST_F(JobSecretFile, WhatIsNoSecretIsRefused) {
  const auto refusal = [&](const fs::path& path) {
    return error_of([&] { JobSecret::find(path, made_); });
  };
  EXPECT_THAT(refusal(file("0123456789abcdef", 0644)),
              AllOf(HasSubstr("given"), HasSubstr("0644"), HasSubstr("0600")));
  EXPECT_THAT(refusal(file("short", 0600)), AllOf(HasSubstr("5 bytes"), HasSubstr("at least 16")));
  EXPECT_THAT(refusal(folder_ / "missing"), HasSubstr("missing"));
}

}  // namespace
}  // namespace skein
