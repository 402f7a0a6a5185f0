#include "skein/base/exception.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <stdexcept>

namespace skein {
namespace {

template <typename Body>
Error error_of(Body&& body) {
  try {
    body();
  } catch (const std::exception& exception) {
    return to_error(exception);
  }
  return Error(ErrorCode::kInternal, "nothing was thrown");
}

TEST(ToError, FilesystemErrorsNameWhatFailedAndWhere) {
  const Error error =
      error_of([] { std::filesystem::create_directories("/proc/self/status/x/y"); });
  EXPECT_EQ(error.code(), ErrorCode::kIo);
  EXPECT_STREQ(error.what(),
               "cannot create directories /proc/self/status/x/y: Not a directory (20)");
  const Error missing = error_of([] { (void)std::filesystem::file_size("/nowhere/x"); });
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_STREQ(missing.what(), "cannot get file size /nowhere/x: No such file or directory (2)");
  const Error two = error_of([] { std::filesystem::rename("/nowhere/x", "/nowhere/y"); });
  EXPECT_STREQ(two.what(),
               "cannot rename /nowhere/x and /nowhere/y: No such file or directory (2)");
}

TEST(ToError, TheOthers) {
  const Error own = error_of([] { fail(ErrorCode::kBusy, "busy"); });
  EXPECT_EQ(own.code(), ErrorCode::kBusy);
  EXPECT_STREQ(own.what(), "busy");
  const Error memory = error_of([] { throw std::bad_alloc(); });
  EXPECT_EQ(memory.code(), ErrorCode::kNoSpace);
  EXPECT_STREQ(memory.what(), "out of memory");
  const Error other = error_of([] { throw std::runtime_error("what?"); });
  EXPECT_EQ(other.code(), ErrorCode::kInternal);
  EXPECT_STREQ(other.what(), "internal error: what?");
}

}  // namespace
}  // namespace skein
