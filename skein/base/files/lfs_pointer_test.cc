#include "skein/base/files/lfs_pointer.h"

#include <gtest/gtest.h>

#include "skein/base/text/json.h"
#include "tests/error_of.h"

namespace skein {
namespace {

const std::string kPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 26982594\n";

TEST(LfsPointer, IsKnownByItsFirstLine) {
  EXPECT_TRUE(is_lfs_pointer(kPointer));
  EXPECT_FALSE(is_lfs_pointer("version 1\n"));
  EXPECT_FALSE(is_lfs_pointer(""));
  const fs::path file = fs::path(testing::TempDir()) / "lfs_pointer";
  write_file_atomic(file, kPointer);
  EXPECT_TRUE(is_lfs_pointer_file(file));
  write_file_atomic(file, kPointer + std::string(2000, ' '));  // larger than a pointer may be
  EXPECT_FALSE(is_lfs_pointer_file(file));
  fs::remove(file);
  EXPECT_FALSE(is_lfs_pointer_file(file));
}

TEST(LfsPointer, IsNamedWhereJsonIsRead) {
  EXPECT_EQ(test::error_of([] { parse_json(kPointer, "hf/config.json"); }),
            "hf/config.json: a Git LFS pointer, not the file: `git lfs pull` in its repository "
            "brings it");
}

}  // namespace
}  // namespace skein
