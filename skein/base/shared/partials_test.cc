#include "skein/base/shared/partials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "skein/base/error.h"
#include "skein/base/text/log.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

TEST(Partials, OfAProcessThatWasKilledIsFoundAndNoOther) {
  const test::TempFolder folder;
  const fs::path out = folder / "model", file = unique_partial(out), tree = unique_partial(out);
  const fs::path held = unique_partial(out), others = unique_partial(folder / "model2");
  for (const fs::path& path : {held, others, folder / "model.partial", folder / "model.x.partial",
                               folder / "model.0123456789abcdeg.partial"}) {
    std::ofstream(path) << "x";
  }
  ASSERT_EQ(::mkfifo((folder / "model.0123456789abcdef.partial").c_str(), 0600), 0);
  const FileDescriptor lock = hold_partial(held);
  const pid_t child = ::fork();
  if (child == 0) {  // writes both, and is killed
    std::ofstream(file) << "half";
    fs::create_directories(tree / "inside");
    std::ofstream(tree / "inside" / "a") << "half";
    const FileDescriptor first = hold_partial(file), second = hold_partial(tree);
    ::usleep(200'000);
    ::raise(SIGKILL);
  }
  while (!fs::exists(tree / "inside" / "a")) ::usleep(1000);
  ::usleep(50'000);
  EXPECT_THAT(dead_partials(out), testing::IsEmpty());  // it writes
  ::waitpid(child, nullptr, 0);
  EXPECT_THAT(dead_partials(out), UnorderedElementsAre(file, tree));
  testing::internal::CaptureStderr();
  log::start();
  remove_dead_partials(out);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr("removed " + tree.string()));
  EXPECT_THAT(told, HasSubstr("removed " + file.string()));
  EXPECT_FALSE(fs::exists(tree) || fs::exists(file));
  EXPECT_TRUE(fs::exists(held) && fs::exists(others));
}

TEST(Partials, NamesAreExchanged) {
  const test::TempFolder folder;
  fs::create_directory(folder / "a");
  fs::create_directory(folder / "b");
  std::ofstream(folder / "b" / "of_b") << "x";
  const bool can = exchange_names(folder / "a", folder / "b");
  EXPECT_EQ(fs::exists(folder / "a" / "of_b"), can);
  EXPECT_THROW(exchange_names(folder / "a", folder / "none"), Error);
}

}  // namespace
}  // namespace skein
