#include "skein/base/machine/program_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kAnswer = "SKEIN_TEST_ANSWER";      // the file that a started test writes to
constexpr const char* kStartAgain = "SKEIN_TEST_AGAIN";   // it first starts itself again
constexpr const char* kLoseItself = "SKEIN_TEST_REMOVE";  // it first removes its own file

fs::path own_file() { return fs::read_symlink("/proc/self/exe"); }

std::string own_hash() { return xxh3_128_hex(MappedFile(own_file()).bytes()); }

// The loader that this program asks for.
std::string loader_of_this() {
  std::string name;
  const auto look = [](dl_phdr_info* object, size_t, void* to) {
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = object->dlpi_phdr[i];
      if (part.p_type != PT_INTERP) continue;
      const uintptr_t address = object->dlpi_addr + part.p_vaddr;
      *static_cast<std::string*>(to) = reinterpret_cast<const char*>(address);
    }
    return 1;  // the first object is the program
  };
  dl_iterate_phdr(look, &name);
  return name;
}

void execute(const char* file, std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(file, arguments.data());
  _exit(127);
}

// What SaysWhereItLies says in another process, which `words` start, in which `variable` is set.
std::vector<std::string> answer_of(std::vector<std::string> words, const char* variable) {
  const test::TempFolder folder;
  words.emplace_back("--gtest_filter=ProgramPath.SaysWhereItLies");
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setenv(kAnswer, (folder / "answer").c_str(), 1);
    if (variable != nullptr) ::setenv(variable, "1", 1);
    execute(words.front().c_str(), words);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  std::ifstream file(folder / "answer");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Not a test by itself: what the others start.
TEST(ProgramPath, SaysWhereItLies) {
  const char* answer = std::getenv(kAnswer);
  if (answer == nullptr) return;
  const std::string filter = "--gtest_filter=ProgramPath.SaysWhereItLies";
  if (std::getenv(kStartAgain) != nullptr) {
    ::unsetenv(kStartAgain);
    std::vector<std::string> words = words_to_start_again("again");
    words.push_back(filter);
    execute(kProgramToStart, words);
  }
  std::ofstream file(answer);
  if (std::getenv(kLoseItself) != nullptr) fs::remove(program_path());
  try {
    file << program_path().string() << '\n';
    file << xxh3_128_hex(map_program().bytes()) << '\n';
    for (const std::string& word : words_to_start_again("me")) file << word << '\n';
  } catch (const Error& error) {
    file << error.what() << '\n';
  }
}

TEST(ProgramPath, IsThatOfTheProgram) {
  EXPECT_EQ(program_path(), own_file());
  EXPECT_THAT(program_words(), ElementsAre(own_file().string()));
  EXPECT_THAT(words_to_start_again("me"), ElementsAre("me"));
  EXPECT_EQ(xxh3_128_hex(map_program().bytes()), own_hash());
}

TEST(ProgramPath, AProgramThatIsReplacedIsItselfStill) {
  const test::TempFolder folder;
  const fs::path copy = fs::canonical(folder.path()) / "copy";
  fs::copy_file(own_file(), copy);
  EXPECT_THAT(answer_of({copy}, kLoseItself), ElementsAre(copy.string(), own_hash(), "me"));
}

TEST(ProgramPath, UnderALoaderItIsStillThatOfTheProgram) {
  const std::string file = own_file().string(), loader = loader_of_this();
  const std::string resolved = fs::canonical(loader).string();
  EXPECT_THAT(answer_of({loader, file}, nullptr), ElementsAre(file, own_hash(), resolved, file));
  EXPECT_THAT(answer_of({loader, "--library-path", "/no/such", "--inhibit-cache", file}, nullptr),
              ElementsAre(file, own_hash(), resolved, "--library-path", "/no/such",
                          "--inhibit-cache", file));
  EXPECT_THAT(answer_of({loader, "--argv0", "you", file}, nullptr),
              ElementsAre(file, own_hash(), resolved, "--argv0", "me", file));
}

TEST(ProgramPath, UnderALoaderItIsStartedAgainUnderIt) {
  const std::string file = own_file().string(), loader = loader_of_this();
  const std::string resolved = fs::canonical(loader).string();
  EXPECT_THAT(answer_of({loader, "--library-path", "/no/such", file}, kStartAgain),
              ElementsAre(file, own_hash(), resolved, "--library-path", "/no/such", file));
  EXPECT_THAT(answer_of({file}, kStartAgain), ElementsAre(file, own_hash(), "me"));
}

TEST(ProgramPath, UnderALoaderAProgramThatIsGoneIsNotStartedAgain) {
  const test::TempFolder folder;
  const fs::path copy = fs::canonical(folder.path()) / "copy";
  fs::copy_file(own_file(), copy);
  EXPECT_THAT(answer_of({loader_of_this(), copy}, kLoseItself),
              ElementsAre(copy.string(), HasSubstr("copy was replaced or removed since")));
}

TEST(ProgramPath, MappingsAreReadAsTheKernelWritesThem) {
  constexpr std::string_view kMaps =
      "5000-6000 r--p 00000000 fe:00 12      /opt/a b/skein\n"
      "6000-8000 r-xp 00001000 fe:00 12      /opt/a b/skein\n"
      "8000-9000 rw-p 00000000 00:00 0       [heap]\n"
      "9000-a000 r-xp 00000000 fe:00 13      /opt/line\\012feed (deleted)\n"
      "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n";
  EXPECT_EQ(mapped_file(kMaps, 0x6000), "/opt/a b/skein");
  EXPECT_EQ(mapped_file(kMaps, 0x7fff), "/opt/a b/skein");
  EXPECT_EQ(mapped_file(kMaps, 0x8000), "");
  EXPECT_EQ(mapped_file(kMaps, 0x9000), "/opt/line\nfeed (deleted)");
  EXPECT_EQ(mapped_file(kMaps, 0x7f0000000000), "");
  EXPECT_EQ(mapped_file(kMaps, 0x4fff), "");
  EXPECT_EQ(mapped_file("", 0x6000), "");
}

TEST(ProgramPath, TheLoadersOptionsEndWithTheProgram) {
  const auto words = [](std::string_view line) { return loader_words(line); };
  using namespace std::string_view_literals;
  EXPECT_THAT(words("ld.so\0./skein\0train\0--set\0a=b\0"sv), ElementsAre("ld.so"));
  EXPECT_THAT(words("ld.so\0--argv0\0--x\0--inhibit-cache\0skein\0plan\0"sv),
              ElementsAre("ld.so", "--argv0", "--x", "--inhibit-cache"));
  EXPECT_THAT(words("ld.so\0--list\0"sv), ElementsAre());
  EXPECT_THAT(words(""sv), ElementsAre());
}

TEST(ProgramPath, AnArchiveIsStartedByItsLauncher) {
  const test::TempFolder folder;
  const fs::path program = folder / "libexec/skein", launcher = folder / "bin/skein";
  EXPECT_EQ(path_to_start(program), program);
  fs::create_directories(launcher.parent_path());
  std::ofstream(launcher) << "launcher";
  EXPECT_EQ(path_to_start(program), program);  // it cannot be executed
  fs::permissions(launcher, fs::perms::owner_all);
  EXPECT_EQ(path_to_start(program), launcher);
  EXPECT_EQ(path_to_start(folder / "build/skein"), folder / "build/skein");
}

}  // namespace
}  // namespace skein
