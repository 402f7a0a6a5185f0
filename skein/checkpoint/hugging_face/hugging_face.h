// Hugging Face model folders: the tensors of their files of weights (weight_files.h), by name.
//
// Errors   Error{kNotFound | kInvalid} naming the folder, file or tensor and what was expected.
// Threads  a HuggingFaceFolder may be read by several threads.
// Source   https://huggingface.co/docs/safetensors and transformers' save_pretrained
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/checkpoint/format/boxes.h"
#include "skein/checkpoint/format/file_ops.h"
#include "skein/checkpoint/hugging_face/weight_file.h"
#include "skein/checkpoint/hugging_face/weight_files.h"

namespace skein {

class HuggingFaceFolder {
 public:
  explicit HuggingFaceFolder(const fs::path& path);

  const fs::path& path() const { return path_; }
  const std::string& note() const { return note_; }             // for people; else empty
  std::vector<std::string> tensor_names() const;                // sorted
  const SafetensorsEntry* find(std::string_view tensor) const;  // nullptr if there is none

  // Gives tensors other names: those of the file -> those that find() and read() take from now on.
  // Throws where two would have the same.
  void rename(const std::map<std::string, std::string>& names);

  // Fills `target` with the tensor, or a box of it, as `dtype` (kF32 or kBF16 from F32, BF16, F16
  // and F64; other dtypes only unchanged).
  void read(std::string_view tensor, DType dtype, std::span<std::byte> target) const;
  void read(std::string_view tensor, const Box& box, DType dtype,
            std::span<std::byte> target) const;

 private:
  struct TensorPlace {
    size_t file;
    const SafetensorsEntry* entry;
  };
  const TensorPlace& place(std::string_view tensor) const;
  void add(const std::string& tensor, TensorPlace place);

  fs::path path_;
  std::string note_;
  std::vector<WeightFile> files_;
  std::map<std::string, TensorPlace, std::less<>> places_;
};

struct ExportTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::function<void(std::span<std::byte>)> fill;  // called once, when its bytes are needed
};

struct HuggingFaceExport {
  std::vector<ExportTensor> tensors;
  std::map<std::string, std::string> texts;  // file name -> content: config.json, ...
  std::vector<fs::path> copies;              // files to copy unchanged: tokenizer.model, ...
  int64_t max_shard_bytes = 5'000'000'000;
};

// Writes the folder durably under a unique name (unique_partial) and renames it; those that killed
// processes left of the same folder are removed, and logged. Refuses a folder that exists and is
// not empty. Memory: the largest tensor.
void write_hugging_face(const fs::path& folder, const HuggingFaceExport& contents,
                        const FileOps& ops = FileOps());

}  // namespace skein
