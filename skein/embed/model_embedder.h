// Embeds texts, which are given as tokens: runs the model over batches of texts of like length and
// pools their hidden states.
//
// Order    texts are sorted by length, and each batch takes as many as its program has rows
// Bits     on CPUs an embedding depends on the text's tokens alone (compile/embedding_programs.h)
// Threads  those of the device; one caller at a time
// Errors   kInvalid for a text that is empty, longer than max_positions, or has an id outside the
//          vocabulary
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "skein/compile/embedding_programs.h"
#include "skein/embed/pooling.h"
#include "skein/runtime/executor.h"
#include "skein/weights/model_source.h"

namespace skein {

struct EmbedderOptions {
  DType compute_dtype = DType::kF32;
  Pooling pooling = Pooling::kMean;
  bool normalize = true;
  int64_t dim = 0;  // the first elements alone; 0: all
  int64_t max_positions = 0;
  int64_t max_tokens = 2048;  // of a program
};

class ModelEmbedder {
 public:
  ModelEmbedder(const ModelSource& source, Device& device, const EmbedderOptions& options);

  int64_t dim() const { return dim_; }

  // Gives [texts, dim] row by row. `on_tokens` (may be empty) is called after each batch with its
  // tokens, without padding.
  std::vector<float> embed(std::span<const std::vector<int32_t>> texts,
                           const std::function<void(int64_t)>& on_tokens = {});

 private:
  void check(std::span<const int32_t> text) const;
  void run(std::span<const std::span<const int32_t>> texts, int64_t length);
  void take(std::span<const int32_t> text, int64_t row, int64_t length, std::span<float> out) const;

  EmbedderOptions options_;
  EmbeddingLayout layout_;
  std::vector<int64_t> lengths_;
  int64_t vocab_size_, hidden_, dim_;
  ProgramSet programs_;
  Executor executor_;
  std::vector<float> states_;  // of the newest batch
};

}  // namespace skein
