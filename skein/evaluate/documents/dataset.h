// Finds the documents of a task on this machine: a data set and its splits, as the task's file
// names them. Nothing is fetched.
//
// Where     for `dataset_path: cais/mmlu` and `dataset_name: anatomy`, below each folder of
//           `data_folders`, the first of cais/mmlu/anatomy, cais/mmlu, mmlu/anatomy, mmlu that is
//           there; then Hugging Face's caches (HF_DATASETS_CACHE, HF_HUB_CACHE, HF_HOME, ~/.cache),
//           as `datasets` and `huggingface_hub` lay them out
//           `dataset_path: json | parquet | arrow | csv`: the files of dataset_kwargs.data_files,
//           relative to a data folder or to the working directory; dataset_kwargs.data_dir: a
//           folder instead of dataset_path
// A split   SPLIT/ (save_to_disk), or SPLIT.jsonl, SPLIT-00000-of-00002.parquet, NAME-SPLIT.arrow
//           and the like, here or in data/
// Errors    Error{kNotFound}: what was looked for, where, and which splits are there
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "skein/evaluate/documents/documents.h"
#include "skein/jinja/values/value.h"

namespace skein {

struct DatasetName {
  std::string path, name;  // dataset_path and dataset_name of a task
  jinja::Value kwargs;     // dataset_kwargs, a dict or undefined
};

class Dataset {
 public:
  Dataset(DatasetName name, const std::vector<std::filesystem::path>& data_folders);

  // Read when first asked for.
  Documents split(const std::string& name) const;
  // "anatomy of cais/mmlu", for messages.
  std::string title() const;

 private:
  std::vector<std::filesystem::path> files_of(const std::string& split) const;

  DatasetName name_;
  std::vector<std::filesystem::path> roots_;  // where data_files are looked for
  std::filesystem::path folder_;              // empty: data_files name the files
};

// The folders of Hugging Face's caches that exist.
std::vector<std::filesystem::path> hugging_face_caches();

}  // namespace skein
