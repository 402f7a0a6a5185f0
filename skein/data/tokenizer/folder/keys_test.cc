#include "skein/data/tokenizer/folder/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "skein/data/tokenizer/tokenizer.h"
#include "tests/error_of.h"
#include "tests/places.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using test::error_of;
using test::TempFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A copy of a byte-level tokenizer with another tokenizer_config.json. What transformers 5.24 does
// with add_prefix_space was tried on this one: "the cat" is 268 276 300 where a space is put
// before it, by these two classes, and 291 68 276 300 by all others.
class TokenizerKeys : public testing::Test {
 protected:
  TokenizerKeys() {
    const fs::path good =
        fs::path(kSourceFolder) / "skein/data/tokenizer/testdata/byte_level/llama3";
    fs::copy_file(good / "tokenizer.json", folder_ / "tokenizer.json");
  }
  void configure(const std::string& json) const {
    std::ofstream(folder_ / "tokenizer_config.json") << json;
  }
  std::string error() const {
    return error_of([&] { Tokenizer::load(folder_.path()); });
  }

  TempFolder folder_;
};

TEST_F(TokenizerKeys, ASpaceBeforeTextsIsRefusedWhereTransformersPutsOne) {
  for (const char* kind : {"GPT2Tokenizer", "Qwen2TokenizerFast"}) {
    configure(R"({"add_prefix_space": true, "tokenizer_class": ")" + std::string(kind) + "\"}");
    EXPECT_THAT(error(), HasSubstr("add_prefix_space true, as which transformers' "));
    configure(R"({"add_prefix_space": false, "tokenizer_class": ")" + std::string(kind) + "\"}");
    EXPECT_EQ(error(), "");
  }
  configure(R"({"add_prefix_space": true, "tokenizer_class": "PreTrainedTokenizerFast"})");
  EXPECT_EQ(error(), "");
}

TEST_F(TokenizerKeys, KeysOfNoTableAreNamed) {
  configure(R"({"model_max_length": 8, "do_lower_case": true})");
  EXPECT_THAT(unknown_tokenizer_keys(Tokenizer::load(folder_.path())->files()), IsEmpty());
  configure(R"({"model_max_length": 8, "reverses_texts": true})");
  EXPECT_THAT(unknown_tokenizer_keys(Tokenizer::load(folder_.path())->files()),
              ElementsAre(HasSubstr("tokenizer_config.json: Skein does not know the key "
                                    "'reverses_texts'")));
}

}  // namespace
}  // namespace skein
