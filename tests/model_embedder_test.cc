// Embeddings beside transformers' hidden states, and their bits in any company.
#include "skein/embed/model_embedder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "skein/backends/backend.h"
#include "tests/golden_training.h"
#include "tests/safetensors_file.h"

namespace skein {
namespace {

using Texts = std::vector<std::vector<int32_t>>;

const fs::path kFolder = kGoldens / "eurobert/grouped_query_documents";

Texts texts() { return read_json(kFolder / "texts.json").get<Texts>(); }

std::vector<float> embedded(const Texts& texts, const EmbedderOptions& asked, int threads = 2) {
  EmbedderOptions options = asked;
  options.max_positions = 100;
  const auto device = make_device({.kind = "cpu", .threads = threads});
  return ModelEmbedder(ModelSource(kFolder), *device, options).embed(texts);
}

TEST(ModelEmbedder, PoolsTheHiddenStatesOfTransformers) {
  const test::SafetensorsFile file(kFolder / "hidden.safetensors");
  for (const Pooling pooling : {Pooling::kFirst, Pooling::kLast, Pooling::kMean, Pooling::kMax}) {
    for (const bool is_normalized : {false, true}) {
      const std::vector<float> found =
          embedded(texts(), {.pooling = pooling, .normalize = is_normalized});
      for (const SafetensorsEntry& entry : file.entries()) {
        const auto* states = reinterpret_cast<const float*>(file.bytes(entry).data());
        const auto size = static_cast<size_t>(entry.shape.cols());
        std::vector<float> expected(size);
        pool(pooling, {states, static_cast<size_t>(entry.shape.num_elements())}, entry.shape.cols(),
             expected);
        if (is_normalized) normalize(expected);
        for (size_t i = 0; i < size; ++i) {
          EXPECT_NEAR(found[std::stoull(entry.name) * size + i], expected[i], 1e-5)
              << pooling_name(pooling) << " of text " << entry.name;
        }
      }
    }
  }
}

TEST(ModelEmbedder, GivesATextTheSameBitsInAnyCompany) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    Texts all = texts();
    for (int32_t length = 1; length <= 100; length += 3) {
      all.emplace_back(static_cast<size_t>(length), length % 90);
      for (int32_t i = 0; i < length; ++i)
        all.back()[static_cast<size_t>(i)] = (i * 7 + length) % 97;
    }
    const std::vector<float> together = embedded(all, {.compute_dtype = dtype});
    EXPECT_EQ(together, embedded(all, {.compute_dtype = dtype}, 1)) << "of one thread";
    EXPECT_EQ(together, embedded(all, {.compute_dtype = dtype, .max_tokens = 300}));
    std::vector<float> alone;
    for (const std::vector<int32_t>& text : all) {
      const std::vector<float> one = embedded({text}, {.compute_dtype = dtype, .max_tokens = 100});
      alone.insert(alone.end(), one.begin(), one.end());
    }
    EXPECT_EQ(together, alone);
  }
}

TEST(ModelEmbedder, KeepsTheFirstElements) {
  const std::vector<float> whole = embedded(texts(), {.normalize = false});
  const std::vector<float> part = embedded(texts(), {.normalize = false, .dim = 8});
  for (size_t text = 0; text < texts().size(); ++text) {
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(part[text * 8 + i], whole[text * 48 + i]);
  }
}

TEST(ModelEmbedder, RefusesWhatItCannotRead) {
  for (const Texts& wrong : {Texts{{}}, Texts{std::vector<int32_t>(101, 1)}, Texts{{100}}}) {
    EXPECT_THROW(embedded(wrong, {}), Error);
  }
}

}  // namespace
}  // namespace skein
