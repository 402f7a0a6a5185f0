// The language of a document, told by a fastText model that the user names.
//
// Formula  the text with blanks for newlines is one line to fastText; a document stays if a wanted
//          language has a probability of more than the threshold, as in datatrove
// Memory   the model's, shared by all threads: lid.176.bin 130 MB, lid.176.ftz 8 MB; a detector's
//          18 MB at most
// Cost     docs/cleaning.md has figures
// Threads  a model any number at once, a detector one
// Errors   Error{kNotFound | kInvalid} for a file that is no model
// Source   Joulin et al., "Bag of tricks for efficient text classification", 2017; https://fasttext.cc
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/files/file.h"

namespace skein {

class FastTextClassifier;

class LanguageModel {
 public:
  explicit LanguageModel(const fs::path& path);

  // Throws Error{kUsage} for languages that the model does not know.
  void check(const std::vector<std::string>& languages) const;

 private:
  friend class LanguageDetector;

  fs::path path_;
  std::shared_ptr<const FastTextClassifier> classifier_;
  std::vector<std::string> languages_;  // of its labels
};

class LanguageDetector {
 public:
  explicit LanguageDetector(std::shared_ptr<const LanguageModel> model);
  ~LanguageDetector();

  struct Prediction {
    std::string language;  // as the model's labels are named, without their "__label__"
    double probability = 0;
  };
  // Of all languages that are not quite impossible, the most probable first.
  std::vector<Prediction> predict(std::string_view text);

  // Whether one of `languages` has a probability of more than `threshold`.
  bool is_in(std::string_view text, const std::vector<std::string>& languages, double threshold);

 private:
  struct State;

  std::shared_ptr<const LanguageModel> model_;
  std::unique_ptr<State> state_;
};

}  // namespace skein
