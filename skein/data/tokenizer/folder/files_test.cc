// Which file of a folder is the vocabulary; a copy of the files found is the same tokenizer.
#include "skein/data/tokenizer/folder/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "skein/base/text/json.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "tests/error_of.h"
#include "tests/places.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using test::error_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const fs::path kTestData = fs::path(kSourceFolder) / "skein/data/tokenizer/testdata";
const fs::path kLlama = kTestData / "models/llama/tokenizer.model";
const fs::path kGpt2 = kTestData / "forms/gpt2/tokenizer.json";
const fs::path kSeeds = fs::path(kSourceFolder) / "tests/fuzz/tokenizer_sources_fuzz";

void write(const fs::path& file, std::string_view text) { std::ofstream(file) << text; }

std::vector<std::string> names_of(const std::vector<fs::path>& files) {
  std::vector<std::string> names;
  for (const fs::path& file : files) names.push_back(file.filename().string());
  return names;
}

// Copied as a run keeps it.
std::string hash_of_copy(const Tokenizer& tokenizer) {
  const test::TempFolder copy;
  for (const fs::path& file : tokenizer.files()) {
    fs::copy_file(file, copy / kept_tokenizer_name(file));
  }
  return Tokenizer::load(copy.path())->content_hash();
}

TEST(TokenizerFiles, AFileThatIsNamedIsTheVocabulary) {
  const test::TempFolder folder;
  fs::copy_file(kLlama, folder / "tokenizer.model");
  fs::copy_file(kGpt2, folder / "tokenizer.json");
  fs::copy_file(kSeeds / "tekken.json", folder / "tekken.json");
  fs::copy_file(kSeeds / "tekken.json", folder / "tekken_240718.json");
  fs::copy_file(kGpt2, folder / "mine.json");
  write(folder / "tokenizer_config.json", R"({"eos_token": "<|end|>"})");
  for (const auto& [name, expected] :
       std::map<std::string, std::string>{{"tokenizer.json", "tokenizer.json"},
                                          {"tekken_240718.json", "tekken.json"},
                                          {"mine.json", "tokenizer.json"}}) {
    SCOPED_TRACE(name);
    if (name.starts_with("tekken")) write(folder / "tokenizer_config.json", "{}");
    if (name == "tokenizer.json")
      write(folder / "tokenizer_config.json", R"({"eos_token": "<|end|>"})");
    const auto tokenizer = Tokenizer::load(folder / name);
    EXPECT_EQ(tokenizer->files().front(), folder / name);
    EXPECT_EQ(kept_tokenizer_name(folder / name), expected);
    EXPECT_EQ(hash_of_copy(*tokenizer), tokenizer->content_hash());
  }
  EXPECT_THAT(names_of(find_tokenizer_files(folder / "tokenizer.json").all),
              ElementsAre("tokenizer.json", "tokenizer_config.json"));
  EXPECT_THAT(names_of(find_tokenizer_files(folder / "tekken_240718.json").all),
              ElementsAre("tekken_240718.json"));
  EXPECT_THAT(names_of(find_tokenizer_files(folder / "tokenizer.model").all),
              ElementsAre("tokenizer.model", "tokenizer_config.json"));
}

TEST(TokenizerFiles, TheFolderSaysWhichItIs) {
  const test::TempFolder folder;
  fs::copy_file(kSeeds / "tekken.json", folder / "tekken.json");
  EXPECT_THAT(names_of(find_tokenizer_files(folder.path()).all), ElementsAre("tekken.json"));
  fs::copy_file(kGpt2, folder / "tokenizer.json");
  EXPECT_THAT(names_of(find_tokenizer_files(folder.path()).all), ElementsAre("tokenizer.json"));
  // tiktoken's, which transformers does not read either.
  fs::copy_file(kSeeds / "few.tiktoken", folder / "tokenizer.model");
  EXPECT_THAT(names_of(find_tokenizer_files(folder.path()).all), ElementsAre("tokenizer.json"));
  fs::copy_file(kLlama, folder / "tokenizer.model", fs::copy_options::overwrite_existing);
  EXPECT_THAT(names_of(find_tokenizer_files(folder.path()).all),
              ElementsAre("tokenizer.model", "tokenizer.json"));
}

TEST(TokenizerFiles, SeveralThatAreAsGoodAreRefusedByName) {
  const test::TempFolder folder;
  fs::copy_file(kSeeds / "few.tiktoken", folder / "a.tiktoken");
  fs::copy_file(kSeeds / "few.tiktoken", folder / "b.tiktoken");
  EXPECT_THAT(error_of([&] { find_tokenizer_files(folder.path()); }),
              AllOf(HasSubstr("a.tiktoken, b.tiktoken"), HasSubstr("the file by its name")));
  EXPECT_EQ(find_tokenizer_files(folder / "b.tiktoken").vocabulary, folder / "b.tiktoken");
}

}  // namespace
}  // namespace skein
