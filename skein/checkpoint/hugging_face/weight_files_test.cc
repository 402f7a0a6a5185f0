#include "skein/checkpoint/hugging_face/weight_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/error_of.h"
#include "tests/temp_folder.h"

namespace skein {
namespace {

using test::error_of;
using test::TempFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class WeightFilesOf : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& text = "") const {
    std::ofstream(folder_ / name) << text;
  }
  WeightFiles find() const { return find_weight_files(folder_.path()); }
  std::string error() const {
    return error_of([&] { find(); });
  }

  TempFolder folder_;
};

TEST_F(WeightFilesOf, OrderIsThatOfTransformers) {
  put("pytorch_model.bin");
  EXPECT_THAT(find().files, ElementsAre("pytorch_model.bin"));
  put("model.safetensors.index.json", R"({"weight_map": {"a": "pytorch_model.bin"}})");
  EXPECT_THAT(error(), HasSubstr("expected the name of a .safetensors file"));
  put("model.safetensors.index.json", R"({"weight_map": {"a": "x.safetensors"}})");
  EXPECT_THAT(error(), HasSubstr("1 of 1 files that it names is missing: x.safetensors"));
  put("x.safetensors");
  EXPECT_THAT(find().files, ElementsAre("x.safetensors"));
  EXPECT_EQ(find().note, "");
  put("model.safetensors.index.json",
      R"({"metadata": {}, "weight_map": {"a": "x.safetensors"}, "weight_scales": {}})");
  EXPECT_THAT(find().note, HasSubstr("does not know the key 'weight_scales'"));
  put("model.safetensors");
  EXPECT_THAT(find().files, ElementsAre("model.safetensors"));
}

TEST_F(WeightFilesOf, ShardsWithoutTheirIndexAreReadIfAllAreThere) {
  put("model-00002-of-00003.safetensors");
  EXPECT_THAT(error(), AllOf(HasSubstr("model.safetensors.index.json is missing, and so are 2 of 3 "
                                       "shards: model-00001-of-00003.safetensors, "
                                       "model-00003-of-00003.safetensors")));
  put("model-00001-of-00003.safetensors");
  put("model-00003-of-00003.safetensors");
  EXPECT_EQ(find().files.size(), 3u);
  EXPECT_THAT(find().note, HasSubstr("model.safetensors.index.json is missing; all 3 shards"));
  put("model-00001-of-00002.safetensors");
  EXPECT_THAT(error(), HasSubstr("belong to two sets of shards"));
}

TEST_F(WeightFilesOf, OtherFormatsAreNamed) {
  const struct {
    const char* file;
    std::vector<std::string> words;
  } formats[] = {
      {"consolidated.00.pth", {"Meta's own format", "convert_llama_weights_to_hf"}},
      {"consolidated.safetensors", {"Mistral's own format"}},
      {"model-q4.gguf", {"llama.cpp", "gguf_file='model-q4.gguf'"}},
      {"tf_model.h5", {"TensorFlow"}},
      {"last.ckpt", {"training checkpoint of another program"}},
      {"other.safetensors", {"expected model.safetensors", "found other.safetensors"}},
      {"notes.txt", {"is not a Hugging Face model folder"}},
  };
  for (const auto& format : formats) {
    const TempFolder folder;
    std::ofstream(folder / format.file) << "x";
    const std::string error = error_of([&] { find_weight_files(folder.path()); });
    for (const std::string& word : format.words) EXPECT_THAT(error, HasSubstr(word));
    EXPECT_THAT(error, HasSubstr(folder.path().string()));
  }
}

TEST_F(WeightFilesOf, AnAdapterIsNamed) {
  put("adapter_config.json",
      R"({"peft_type": "LORA", "base_model_name_or_path": "meta-llama/Llama-2-7b-hf", "r": 8})");
  put("adapter_model.safetensors");
  EXPECT_THAT(error(),
              AllOf(HasSubstr("a LoRA adapter of meta-llama/Llama-2-7b-hf: merge it first"),
                    HasSubstr("merge_and_unload().save_pretrained(")));
  put("model.safetensors");
  EXPECT_THAT(error(), HasSubstr("if the weights beside it hold it already, remove"));
  put("adapter_config.json", R"({"peft_type": "PROMPT_TUNING"})");
  EXPECT_THAT(error(), AllOf(HasSubstr("an adapter of PEFT (PROMPT_TUNING) of a model that it"),
                             HasSubstr("cannot be merged")));
}

TEST_F(WeightFilesOf, WeightsWithoutAConfigurationAreNamed) {
  put("model.safetensors");
  EXPECT_THAT(error_of([&] { refuse_weights_alone(folder_.path()); }),
              HasSubstr("holds weights (model.safetensors), but no config.json"));
}

}  // namespace
}  // namespace skein
