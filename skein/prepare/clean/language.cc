#include "skein/prepare/clean/language.h"

#include <fasttext/fasttext.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "skein/base/error.h"
#include "skein/base/nearest.h"

namespace skein {
namespace {

constexpr std::string_view kLabel = "__label__";
constexpr int32_t kAllLabels = -1;

std::string language_of(std::string_view label) {
  if (label.starts_with(kLabel)) label.remove_prefix(kLabel.size());
  return std::string(label);
}

}  // namespace

struct LanguageModel::Model {
  fasttext::FastText fasttext;
  std::vector<std::string> languages;
};

LanguageModel::LanguageModel(const fs::path& path)
    : path_(path), model_(std::make_unique<Model>()) {
  if (!fs::is_regular_file(path)) {
    fail(ErrorCode::kNotFound, "--language-model {}: there is no such file", path.string());
  }
  try {
    model_->fasttext.loadModel(path.string());
  } catch (const std::exception& error) {
    fail(ErrorCode::kInvalid,
         "--language-model {}: {}; expected a model of fastText, such as lid.176.bin from "
         "https://fasttext.cc/docs/en/language-identification.html",
         path.string(), error.what());
  }
  const auto dictionary = model_->fasttext.getDictionary();
  for (int32_t i = 0; i < dictionary->nlabels(); ++i) {
    model_->languages.push_back(language_of(dictionary->getLabel(i)));
  }
}

LanguageModel::~LanguageModel() = default;

void LanguageModel::check(const std::vector<std::string>& languages) const {
  std::vector<std::string_view> known(model_->languages.begin(), model_->languages.end());
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

std::vector<LanguageModel::Prediction> LanguageModel::predict(std::string_view text) const {
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  std::istringstream stream(line);
  std::vector<std::pair<fasttext::real, std::string>> found;
  model_->fasttext.predictLine(stream, found, kAllLabels, 0);
  std::vector<Prediction> predictions;
  for (const auto& [probability, label] : found) {
    predictions.push_back({language_of(label), static_cast<double>(probability)});
  }
  return predictions;
}

bool LanguageModel::is_in(std::string_view text, const std::vector<std::string>& languages,
                          double threshold) const {
  const std::vector<Prediction> predictions = predict(text);
  return std::any_of(predictions.begin(), predictions.end(), [&](const Prediction& each) {
    return each.probability > threshold &&
           std::find(languages.begin(), languages.end(), each.language) != languages.end();
  });
}

}  // namespace skein
