// A source of weights: a Hugging Face folder, a checkpoint, or a run, which means its newest good
// checkpoint.
//
// Errors  Error{kUsage | kNotFound | kInvalid} naming the folder and what was expected in it
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/checkpoint/find/reader.h"
#include "skein/checkpoint/hugging_face/hugging_face.h"
#include "skein/model/decoder.h"
#include "skein/runtime/executor.h"

namespace skein {

// Throws Error{kUsage} where model.init_from is not a folder.
void require_init_from(const std::string& path);

class ModelSource {
 public:
  explicit ModelSource(const fs::path& named);
  // Opens a source that another rank has opened and verified already, so its checksums are not read
  // again.
  static ModelSource opened_elsewhere(const fs::path& path) { return {path, IsVerified()}; }

  const fs::path& path() const { return path_; }
  const DecoderConfig& config() const { return config_; }
  DType dtype() const { return dtype_; }  // of the stored weights
  // The path of its tokenizer; empty where there is none.
  const fs::path& tokenizer() const { return tokenizer_; }
  // The path of its generation_config.json; empty where there is none.
  fs::path generation_config() const;

  bool is_hugging_face() const { return hugging_face_ != nullptr; }  // else a checkpoint

  // The names of its weights, sorted, without a checkpoint's optimizer state; as Skein has them
  // (source_names.h).
  std::vector<std::string> tensor_names() const;
  bool has(const std::string& name) const;
  std::string stored_dtype(const std::string& name) const;  // the safetensors name

  // Throws where the tensor is missing or has another shape.
  void check_shape(const std::string& name, const Shape& expected) const;

  // Reads a box of a parameter into `target`, converted to `dtype`. Throws Error{kInvalid} where it
  // holds a NaN or an infinity.
  void read(const std::string& name, const Box& box, DType dtype,
            std::span<std::byte> target) const;

  // Fills every parameter of `model` and its master copy. The model must have this source's sizes.
  void load_parameters(const DecoderConfig& model, Executor& executor) const;

 private:
  struct IsVerified {};
  ModelSource(const fs::path& path, IsVerified);

  void open_checkpoint(const fs::path& folder);
  void open_newest_checkpoint(const fs::path& run_or_checkpoints);
  void open_hugging_face(const fs::path& folder, bool is_first);
  [[noreturn]] void refuse_not_finite(const std::string& name) const;

  fs::path path_;
  fs::path tokenizer_;
  DecoderConfig config_;
  DType dtype_ = DType::kF32;
  std::unique_ptr<CheckpointReader> checkpoint_;
  std::unique_ptr<HuggingFaceFolder> hugging_face_;
};

// The model of a source as a Hugging Face config.json, without opening its weights.
Json source_model_json(const fs::path& folder);

// The path of a source's tokenizer, likewise; "" where it has none.
std::string source_tokenizer(const fs::path& folder);

// The path of a source's generation_config.json, likewise.
fs::path source_generation_config(const fs::path& folder);

}  // namespace skein
