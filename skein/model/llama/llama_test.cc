#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "skein/base/files/file.h"
#include "skein/model/decoder.h"
#include "tests/places.h"

namespace skein {
namespace {

const fs::path kSource = kSourceFolder;

Json small() {
  return {{"hidden_size", 48},        {"num_hidden_layers", 2},  {"num_attention_heads", 6},
          {"num_key_value_heads", 2}, {"intermediate_size", 64}, {"vocab_size", 97}};
}

// Reads tensor names and shapes from the header of a safetensors file.
void add_stored_shapes(const fs::path& path, std::map<std::string, std::string>& shapes) {
  const std::string bytes = read_file(path);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  const Json header = parse_json(std::string_view(bytes).substr(8, header_bytes), path);
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    shapes[name] = Shape(tensor.at("shape").get<std::vector<int64_t>>()).to_string();
  }
}

TEST(LlamaParameters, AreThoseThatTransformersSaves) {
  int num_cases = 0;
  for (const auto& entry : fs::directory_iterator(kSource / "tests/goldens/llama")) {
    if (!entry.is_directory()) continue;
    SCOPED_TRACE(entry.path());
    std::map<std::string, std::string> saved, listed;
    for (const auto& file : fs::directory_iterator(entry.path())) {
      const std::string name = file.path().filename();
      if (name.starts_with("model") && name.ends_with(".safetensors")) {
        add_stored_shapes(file.path(), saved);
      }
    }
    const std::string path = entry.path() / "config.json";
    for (const ParameterSpec& spec : parameter_specs(parse_decoder(read_json(path), path))) {
      listed[spec.name] = spec.shape.to_string();
    }
    EXPECT_EQ(listed, saved);
    ++num_cases;
  }
  EXPECT_EQ(num_cases, 10);
}

// The published parameter counts.
TEST(LlamaParameters, CountTheCommittedModels) {
  const std::pair<const char*, int64_t> kCounts[] = {
      {"llama2-7b", 6738415616},     {"llama2-13b", 13015864320}, {"llama2-70b", 68976648192},
      {"llama3-8b", 8030261248},     {"llama3-70b", 70553706496}, {"llama3.1-8b", 8030261248},
      {"llama3.1-70b", 70553706496}, {"demo-10m", 10130304}};
  for (const auto& [name, count] : kCounts) {
    const std::string path = kSource / "configs/models" / (std::string(name) + ".json");
    EXPECT_EQ(num_parameters(parse_decoder(read_json(path), path)), count) << name;
  }
}

TEST(LlamaParameters, AreNamedAndShapedAsInHuggingFace) {
  Json json = small();
  json["head_dim"] = 20;
  json["attention_bias"] = json["mlp_bias"] = true;
  const std::string kSplits[] = {"whole", "rows", "kv rows", "columns"};
  const std::string kInits[] = {"", " residual", " ones", " zeros"};
  std::string listing;
  for (const ParameterSpec& spec : parameter_specs(parse_decoder(json, "biased"))) {
    if (spec.layer == 0) continue;
    listing += fmt::format(
        "{} {} {} {}\n", spec.name, spec.shape.to_string(),
        kSplits[static_cast<int>(spec.split)] + kInits[static_cast<int>(spec.init)], spec.layer);
  }
  EXPECT_EQ(listing,
            "model.embed_tokens.weight [97, 48] rows -1\n"
            "model.layers.1.self_attn.q_proj.weight [120, 48] rows 1\n"
            "model.layers.1.self_attn.q_proj.bias [120] rows zeros 1\n"
            "model.layers.1.self_attn.k_proj.weight [40, 48] kv rows 1\n"
            "model.layers.1.self_attn.k_proj.bias [40] kv rows zeros 1\n"
            "model.layers.1.self_attn.v_proj.weight [40, 48] kv rows 1\n"
            "model.layers.1.self_attn.v_proj.bias [40] kv rows zeros 1\n"
            "model.layers.1.self_attn.o_proj.weight [48, 120] columns residual 1\n"
            "model.layers.1.self_attn.o_proj.bias [48] whole zeros 1\n"
            "model.layers.1.mlp.gate_proj.weight [64, 48] rows 1\n"
            "model.layers.1.mlp.gate_proj.bias [64] rows zeros 1\n"
            "model.layers.1.mlp.up_proj.weight [64, 48] rows 1\n"
            "model.layers.1.mlp.up_proj.bias [64] rows zeros 1\n"
            "model.layers.1.mlp.down_proj.weight [48, 64] columns residual 1\n"
            "model.layers.1.mlp.down_proj.bias [48] whole zeros 1\n"
            "model.layers.1.input_layernorm.weight [48] whole ones 1\n"
            "model.layers.1.post_attention_layernorm.weight [48] whole ones 1\n"
            "model.norm.weight [48] whole ones -1\n"
            "lm_head.weight [97, 48] rows -1\n");
}

TEST(LlamaParameters, TiedEmbeddingsHaveNoHead) {
  Json json = small();
  json["tie_word_embeddings"] = true;
  const auto specs = parameter_specs(parse_decoder(json, "tied"));
  EXPECT_EQ(specs.size(), 1 + 2 * 9 + 1);
  EXPECT_EQ(specs.back().name, "model.norm.weight");
}

TEST(LlamaParameters, FlopsCountMatricesAndCausalAttention) {
  const DecoderConfig config = parse_decoder(small(), "small");
  const double layer = 48 * 48 * 2 + 48 * 16 * 2 + 3 * 48 * 64;
  EXPECT_EQ(training_flops_per_token(config, 32), 6 * (2 * layer + 48 * 97) + 12 * 2 * 48 * 32 / 2);
}

}  // namespace
}  // namespace skein
