#include "skein/data/learn/write_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "tests/temp_folder.h"

namespace skein {
namespace {

using testing::UnorderedElementsAre;

using Files = std::map<std::string, std::string>;

const Files kOld = {{"tokenizer.json", "old"}, {"chat_template.jinja", "of the old one"}};
const Files kNew = {{"special_tokens_map.json", "new"},
                    {"tokenizer_config.json", "new"},
                    {"tokenizer.model", std::string(1 << 20, 'n')}};

Files files_of(const fs::path& folder) {
  Files files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) files[entry.path().filename().string()] = read_file(entry.path());
  }
  return files;
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

// A process that is killed while it writes the model: by the signal of a limit on the size of
// files.
void write_and_be_killed(const fs::path& folder) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_DFL);
    const struct rlimit limit = {100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const struct rlimit no_core = {0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    write_tokenizer(folder, kNew);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << status;
}

TEST(WriteTokenizer, AKillLeavesTheOldOneWhole) {
  const test::TempFolder folder;
  const fs::path out = folder / "tok";
  write_tokenizer(out, kOld);
  EXPECT_EQ(files_of(out), kOld);
  write_and_be_killed(out);
  EXPECT_EQ(files_of(out), kOld);
  EXPECT_EQ(names_in(folder.path()).size(), 2u);  // and what the killed one wrote
  fs::permissions(out, fs::perms::owner_all);
  write_tokenizer(out, kNew);
  EXPECT_EQ(files_of(out), kNew);
  EXPECT_EQ(fs::status(out).permissions(), fs::perms::owner_all);
  EXPECT_THAT(names_in(folder.path()), UnorderedElementsAre("tok"));
}

// Beside files that are not a tokenizer's, the folder stays.
TEST(WriteTokenizer, AKillLeavesTheOldOneWholeBesideOtherFiles) {
  const test::TempFolder folder;
  const fs::path out = folder / "tok";
  fs::create_directory(out);
  write_file_atomic(out / "notes.txt", "mine");
  Files with_notes = kOld;
  with_notes["notes.txt"] = "mine";
  write_tokenizer(out, kOld);
  EXPECT_EQ(files_of(out), with_notes);
  write_and_be_killed(out);
  EXPECT_EQ(files_of(out), with_notes);
  write_tokenizer(out, kNew);
  Files wanted = kNew;
  wanted["notes.txt"] = "mine";
  EXPECT_EQ(files_of(out), wanted);
  EXPECT_EQ(names_in(out).size(), wanted.size());
}

TEST(WriteTokenizer, ALinkStaysALink) {
  const test::TempFolder folder;
  write_tokenizer(folder / "tok", kOld);
  fs::create_directory_symlink("tok", folder / "link");
  write_tokenizer(folder / "link/", kNew);
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(files_of(folder / "tok"), kNew);
}

}  // namespace
}  // namespace skein
