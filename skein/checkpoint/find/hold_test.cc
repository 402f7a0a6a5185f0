#include "skein/checkpoint/find/hold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>

#include "skein/checkpoint/find/checkpoint_folder.h"
#include "tests/error_of.h"
#include "tests/sanitizers.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using test::error_of;
using testing::HasSubstr;

class Holds : public testing::Test {
 protected:
  Holds() {
    fs::create_directory(checkpoint_);
    std::ofstream(manifest_) << "{}";
  }
  bool may_be_removed() const { return claim_for_removal(checkpoint_).has_value(); }

  const test::TempFolder folder_;
  const fs::path checkpoint_ = folder_ / "step-00000001", manifest_ = checkpoint_ / "manifest.json";
};

TEST_F(Holds, ACheckpointThatIsReadStays) {
  EXPECT_TRUE(may_be_removed());
  {
    const CheckpointHold hold(checkpoint_);
    EXPECT_FALSE(may_be_removed());
    EXPECT_FALSE(remove_checkpoint({1, checkpoint_}, FileOps()));
  }
  EXPECT_TRUE(may_be_removed());
}

// Somebody may be reading it: whether is what could not be found out.
TEST_F(Holds, OneThatCannotBeLookedAtStays) {
  if (kHasAddressSanitizer) GTEST_SKIP() << "the sanitizers open files of their own";
  const CheckpointHold hold(checkpoint_);
  struct rlimit former {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &former), 0);
  const struct rlimit none = {3, former.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string error = error_of([&] { may_be_removed(); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &former), 0);
  EXPECT_THAT(error, HasSubstr(manifest_.string() + ": Too many open files"));
  fs::rename(manifest_, checkpoint_ / "aside");
  fs::create_symlink("manifest.json", manifest_);
  EXPECT_THAT(error_of([&] {
                remove_checkpoint({1, checkpoint_}, FileOps());
              }),
              HasSubstr(manifest_.string() + ": Too many levels"));
  EXPECT_TRUE(fs::exists(checkpoint_ / "aside"));
}

TEST_F(Holds, WithoutAManifestThereIsNobodyToReadIt) {
  fs::remove(manifest_);
  EXPECT_TRUE(may_be_removed());
  ASSERT_EQ(::mkfifo(manifest_.c_str(), 0666), 0);
  EXPECT_TRUE(may_be_removed());
  EXPECT_THAT(error_of([&] { const CheckpointHold hold(checkpoint_); }),
              HasSubstr(manifest_.string() + " is not a regular file"));
}

}  // namespace
}  // namespace skein
