#include "skein/prepare/clean/language/language.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "skein/base/error.h"
#include "skein/base/text/nearest.h"
#include "skein/prepare/clean/language/text_embedder.h"

namespace skein {
namespace {

constexpr std::string_view kLabel = "__label__";

std::string language_of(std::string_view label) {
  if (label.starts_with(kLabel)) label.remove_prefix(kLabel.size());
  return std::string(label);
}

// A threshold for labels' own probabilities that loses none above `threshold`. fastText adds 1e-5
// to each probability on the way to a label, of which there are less than 100, before it multiplies
// them, so that labels that it cuts off could come to 0.1 % more.
float safely_below(double threshold) {
  return static_cast<float>(std::max(0.0, 0.99 * threshold - 1e-4));
}

}  // namespace

LanguageModel::LanguageModel(const fs::path& path) : path_(path) {
  if (!fs::is_regular_file(path)) {
    fail(ErrorCode::kNotFound, "--language-model {}: there is no such file", path.string());
  }
  try {
    classifier_ = std::make_shared<const FastTextClassifier>(path);
  } catch (const std::exception& error) {
    fail(ErrorCode::kInvalid,
         "--language-model {}: {}; expected a model of fastText, such as lid.176.bin from "
         "https://fasttext.cc/docs/en/language-identification.html",
         path.string(), error.what());
  }
  for (int32_t i = 0; i < classifier_->num_labels(); ++i) {
    languages_.push_back(language_of(classifier_->label(i)));
  }
}

void LanguageModel::check(const std::vector<std::string>& languages) const {
  std::vector<std::string_view> known(languages_.begin(), languages_.end());
  for (const std::string& language : languages) {
    if (std::find(known.begin(), known.end(), language) != known.end()) continue;
    const std::string_view nearest = nearest_name(language, known);
    std::sort(known.begin(), known.end());
    if (known.size() > 10) known.resize(10);
    fail(ErrorCode::kUsage, "--language {}: {} does not know it{}; its languages begin with {}",
         language, path_.string(),
         nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest),
         fmt::join(known, ", "));
  }
}

struct LanguageDetector::State {
  explicit State(const std::shared_ptr<const FastTextClassifier>& classifier)
      : classifier(classifier), embedder(classifier), model(classifier->new_state()) {}

  // The labels of `text`: all that have a probability of `threshold`, maybe more.
  const fasttext::Predictions& predict(std::string_view text, float threshold) {
    predictions.clear();
    if (embedder.embed(text, model.hidden)) classifier->predict(threshold, model, predictions);
    return predictions;
  }

  const std::shared_ptr<const FastTextClassifier> classifier;
  TextEmbedder embedder;
  fasttext::Model::State model;
  fasttext::Predictions predictions;
};

LanguageDetector::LanguageDetector(std::shared_ptr<const LanguageModel> model)
    : model_(std::move(model)), state_(std::make_unique<State>(model_->classifier_)) {}

LanguageDetector::~LanguageDetector() = default;

std::vector<LanguageDetector::Prediction> LanguageDetector::predict(std::string_view text) {
  std::vector<Prediction> predictions;
  for (const auto& [logarithm, label] : state_->predict(text, 0)) {
    predictions.push_back({model_->languages_[label], std::exp(logarithm)});
  }
  return predictions;
}

bool LanguageDetector::is_in(std::string_view text, const std::vector<std::string>& languages,
                             double threshold) {
  const fasttext::Predictions& predictions = state_->predict(text, safely_below(threshold));
  return std::any_of(predictions.begin(), predictions.end(), [&](const auto& each) {
    return std::exp(each.first) > threshold &&
           std::find(languages.begin(), languages.end(), model_->languages_[each.second]) !=
               languages.end();
  });
}

}  // namespace skein
