#include "skein/weights/source_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skein/base/text/json.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

const DecoderConfig& model() {
  static const DecoderConfig model = parse_decoder({{"hidden_size", 8},
                                                    {"intermediate_size", 8},
                                                    {"num_hidden_layers", 1},
                                                    {"num_attention_heads", 2},
                                                    {"vocab_size", 8}},
                                                   "test");
  return model;
}

std::vector<std::string> own_names() {
  std::vector<std::string> names;
  for (const ParameterSpec& spec : parameter_specs(model())) names.push_back(spec.name);
  return names;
}

using Change = std::string (*)(const std::string&);

std::vector<std::string> changed(Change change) {
  std::vector<std::string> names = own_names();
  for (std::string& name : names) name = change(name);
  return names;
}

TEST(SourceNames, AreReadAsWrappersSaveThem) {
  EXPECT_TRUE(source_names(own_names()).renamed.empty());
  EXPECT_EQ(source_names(own_names()).note, "");
  const struct {
    const char* words;
    Change change;
  } wrappers[] = {
      {"begin with _orig_mod. (torch.compile)", [](auto& name) { return "_orig_mod." + name; }},
      {"begin with module. (a data-parallel", [](auto& name) { return "module." + name; }},
      {"_orig_mod.", [](auto& name) { return "module._orig_mod." + name; }},
      {"base_model.model. (PEFT)", [](auto& name) { return "base_model.model." + name; }},
      {"begin with model. (a module that holds", [](auto& name) { return "model." + name; }},
      {"names of tensors hold _orig_mod.",
       [](const std::string& name) {
         const size_t at = name.find("layers.0.");
         return at == name.npos ? name : std::string(name).insert(at + 9, "_orig_mod.");
       }},
      {"no `model.` before their names",
       [](const std::string& name) { return name.starts_with("model.") ? name.substr(6) : name; }},
      {"no `model.` before their names",
       [](const std::string& name) {
         return "_orig_mod." + (name.starts_with("model.") ? name.substr(6) : name);
       }},
  };
  for (const auto& wrapper : wrappers) {
    const std::vector<std::string> names = changed(wrapper.change);
    const SourceNames found = source_names(names);
    EXPECT_THAT(found.note, HasSubstr(wrapper.words));
    for (size_t i = 0; i < names.size(); ++i) {
      const auto renamed = found.renamed.find(names[i]);
      EXPECT_EQ(renamed == found.renamed.end() ? names[i] : renamed->second, own_names()[i]);
    }
  }
}

// A prefix of some names alone tells nothing.
TEST(SourceNames, OfAnotherKindAreLeft) {
  EXPECT_TRUE(source_names({"module.a", "b"}).renamed.empty());
  EXPECT_TRUE(source_names({"model.a", "model.b"}).renamed.empty());
  EXPECT_TRUE(source_names({"my_orig_mod.a"}).renamed.empty());
  EXPECT_TRUE(source_names({}).renamed.empty());
}

std::string refusal(const std::vector<std::string>& missing,
                    const std::vector<std::string>& unknown) {
  return error_of([&] { refuse_tensors("hf", model(), missing, unknown, true); });
}

TEST(SourceNames, RefusalsTellWhatTheWeightsAre) {
  EXPECT_THAT(
      refusal({"lm_head.weight"}, {}),
      AllOf(HasSubstr("lm_head.weight is missing, and tie_word_embeddings is false"),
            HasSubstr("`--set model.tie_word_embeddings=true`"), HasSubstr("hf/config.json")));
  const std::vector<std::string> missing = {"model.layers.0.self_attn.q_proj.weight"};
  EXPECT_THAT(refusal(missing, {"transformer.h.0.attn.c_attn.weight"}),
              HasSubstr("those of a gpt2 model, which Skein does not have"));
  EXPECT_THAT(refusal(missing, {"gpt_neox.layers.0.attention.query_key_value.weight"}),
              HasSubstr("those of a gpt_neox model, which Skein does not have"));
  EXPECT_THAT(refusal(missing, {"model.layers.0.self_attn.qkv_proj.weight"}),
              HasSubstr("those of a phi3 model"));
  EXPECT_THAT(refusal(missing, {"layers.0.attention.wq.weight"}),
              HasSubstr("convert_llama_weights_to_hf"));
  EXPECT_THAT(refusal({}, {"model.layers.0.self_attn.q_proj.qweight"}), HasSubstr("GPTQ or AWQ"));
  EXPECT_THAT(refusal({}, {"base_model.model.x.lora_A.weight"}), HasSubstr("LoRA adapter"));
  EXPECT_THAT(
      refusal({"a", "b"}, {"x", "y", "z"}),
      HasSubstr("a tensor 'x' and 2 more that the model has no place for, and no tensor 'a' "
                "and 1 more, which it needs"));
  EXPECT_THAT(refusal({"a"}, {}), HasSubstr("no tensor 'a', which the model needs"));
}

TEST(SourceNames, BuffersAreNoWeights) {
  EXPECT_TRUE(is_buffer("model.layers.0.self_attn.rotary_emb.inv_freq", "F32"));
  EXPECT_TRUE(is_buffer("model.rotary_emb.inv_freq", "F32"));
  EXPECT_TRUE(is_buffer("model.layers.0.self_attn.masked_bias", "F32"));
  EXPECT_TRUE(is_buffer("model.layers.0.self_attn.bias", "BOOL"));
  EXPECT_FALSE(is_buffer("model.layers.0.self_attn.bias", "F32"));
  EXPECT_FALSE(is_buffer("model.layers.0.self_attn.q_proj.bias", "F32"));
}

}  // namespace
}  // namespace skein
