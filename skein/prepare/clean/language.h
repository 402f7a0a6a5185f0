// The language of a document, told by a fastText model that the user names.
//
// Formula  the text with blanks for newlines is one line to fastText; a document stays if a wanted
//          language has a probability of more than the threshold, as in datatrove
// Memory   the model's: lid.176.bin 130 MB, shared by all threads
// Cost     some 6 MB/s a core: by far the most of all filters
// Threads  any number at once
// Errors   Error{kNotFound | kInvalid} for a file that is no model
// Source   Joulin et al., "Bag of tricks for efficient text classification", 2017; https://fasttext.cc
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/file.h"

namespace skein {

class LanguageModel {
 public:
  explicit LanguageModel(const fs::path& path);
  ~LanguageModel();

  struct Prediction {
    std::string language;  // as the model's labels are named, without their "__label__"
    double probability = 0;
  };
  // Of all languages that are not quite impossible, the most probable first.
  std::vector<Prediction> predict(std::string_view text) const;

  // Whether one of `languages` has a probability of more than `threshold`.
  bool is_in(std::string_view text, const std::vector<std::string>& languages,
             double threshold) const;

  // Throws Error{kUsage} for languages that the model does not know.
  void check(const std::vector<std::string>& languages) const;

 private:
  struct Model;

  fs::path path_;
  std::unique_ptr<Model> model_;
};

}  // namespace skein
