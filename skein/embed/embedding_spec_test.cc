#include "skein/embed/embedding_spec.h"

#include <gmock/gmock.h>

#include <fstream>

#include "skein/base/error.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using testing::HasSubstr;

// A folder of sentence-transformers; files are replaced by tests.
class Folder {
 public:
  Folder() {
    modules({"base.modules.transformer.Transformer", "sentence_transformer.modules.pooling.Pooling",
             "base.modules.normalize.Normalize"});
    write("1_Pooling/config.json",
          R"({"embedding_dimension": 8, "pooling_mode": "lasttoken", "include_prompt": true})");
  }
  void modules(const std::vector<std::string>& types) const {
    const char* paths[] = {"", "1_Pooling", "2_Normalize", "3_More"};
    std::string text;
    for (size_t i = 0; i < types.size(); ++i) {
      text += (i == 0 ? "[" : ", ") + std::string("{\"idx\": ") + std::to_string(i) +
              ", \"path\": \"" + paths[i] + "\", \"type\": \"sentence_transformers." + types[i] +
              "\"}";
    }
    write("modules.json", text + "]");
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path() / name).parent_path());
    std::ofstream(path() / name) << text;
  }
  std::string refusal() const {
    try {
      read_embedding_spec(path(), 8);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  fs::path path() const { return temporary_.path(); }

 private:
  test::TempFolder temporary_;
};

TEST(EmbeddingSpec, IsReadFromTheFilesOfSentenceTransformers) {
  const Folder folder;
  folder.write("sentence_bert_config.json", R"({"max_seq_length": 256, "do_lower_case": false})");
  folder.write("config_sentence_transformers.json",
               R"({"prompts": {"query": "Query: "}, "default_prompt_name": "query",
                   "similarity_fn_name": "dot", "truncate_dim": 4})");
  const auto spec = read_embedding_spec(folder.path(), 8);
  ASSERT_TRUE(spec.has_value());
  EXPECT_EQ(spec->pooling, Pooling::kLast);
  EXPECT_TRUE(spec->normalize);
  EXPECT_EQ(spec->max_tokens, 256);
  EXPECT_EQ(spec->dim, 4);
  EXPECT_EQ(spec->similarity, "dot");
  EXPECT_EQ(spec->prompts.at(spec->default_prompt), "Query: ");
}

TEST(EmbeddingSpec, ReadsOlderFlagsAndAFolderWithoutModules) {
  const Folder folder;
  folder.modules({"models.Transformer", "models.Pooling"});
  folder.write("1_Pooling/config.json",
               R"({"word_embedding_dimension": 8, "pooling_mode_cls_token": false,
                   "pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": false})");
  const auto spec = read_embedding_spec(folder.path(), 8);
  EXPECT_EQ(spec->pooling, Pooling::kMean);
  EXPECT_FALSE(spec->normalize);
  fs::remove(folder.path() / "modules.json");
  EXPECT_FALSE(read_embedding_spec(folder.path(), 8).has_value());
}

TEST(EmbeddingSpec, RefusesWhatItDoesNotKnow) {
  const Folder folder;
  folder.write("1_Pooling/config.json", R"({"embedding_dimension": 9, "pooling_mode": "mean"})");
  EXPECT_THAT(folder.refusal(),
              HasSubstr("embedding_dimension is 9, and the model's hidden_size 8"));
  folder.write("1_Pooling/config.json", R"({"pooling_mode": "weightedmean"})");
  EXPECT_THAT(folder.refusal(), HasSubstr("pooling_mode is \"weightedmean\": expected \"cls\""));
  folder.write("1_Pooling/config.json",
               R"({"pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": true})");
  EXPECT_THAT(folder.refusal(), HasSubstr("pooling_mode_mean_tokens"));
  folder.write("1_Pooling/config.json", R"({"pooling_mode": "mean"})");
  folder.modules({"models.Transformer", "models.Pooling", "models.Dense"});
  EXPECT_THAT(folder.refusal(), HasSubstr("has the modules Transformer Pooling Dense"));
}

}  // namespace
}  // namespace skein
