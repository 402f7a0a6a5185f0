#include "skein/train/explain/document_effects.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

namespace skein {
namespace {

// Row `segment.row` of the batch, in which only the segment's tokens have labels.
void take_labels_of(const RowSegment& segment, const Batch& batch, Batch& row) {
  const auto copy = [&](const std::vector<int32_t>& from, std::vector<int32_t>& to) {
    const auto of_row = batch.row(from, segment.row);
    to.assign(of_row.begin(), of_row.end());
  };
  copy(batch.tokens, row.tokens);
  copy(batch.labels, row.labels);
  copy(batch.positions, row.positions);
  copy(batch.attention_starts, row.attention_starts);
  std::fill(row.labels.begin(), row.labels.begin() + segment.begin, kNoLabel);
  std::fill(row.labels.begin() + segment.end, row.labels.end(), kNoLabel);
  row.num_label_tokens = std::count_if(row.labels.begin(), row.labels.end(),
                                       [](int32_t label) { return label != kNoLabel; });
}

// The same row with the segment's tokens in random order. The first stays: it may be the one with
// which documents begin.
void shuffle_tokens(const RowSegment& segment, Batch& row) {
  std::mt19937_64 random(0);
  for (auto i = segment.end - 1; i > segment.begin + 1; --i) {
    const auto other = segment.begin + 1 + static_cast<int64_t>(random() % (i - segment.begin));
    std::swap(row.tokens[static_cast<size_t>(i)], row.tokens[static_cast<size_t>(other)]);
  }
  for (auto i = segment.begin; i + 1 < segment.end; ++i) {
    row.labels[static_cast<size_t>(i)] = row.tokens[static_cast<size_t>(i) + 1];
  }
}

// Where nearly all documents are alike, what differs a little from them does not stand out: norms
// of clean ones differ by a factor of 1.4 anyway.
constexpr double kLeastOfSums = 0.1;
constexpr double kLeastOfNorms = 0.35;

double bytes_of(const DocumentEffect& document) {
  return static_cast<double>(std::max<size_t>(document.text.size(), 1));
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// How far each value lies above the median, in robust standard deviations of at least `least`.
// Values that are not finite are infinitely far.
std::vector<double> deviations(const std::vector<double>& values, double least) {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
               [](double value) { return std::isfinite(value); });
  std::vector<double> result(values.size(), std::numeric_limits<double>::infinity());
  if (finite.empty()) return result;
  const double median = median_of(finite);
  for (double& value : finite) value = std::abs(value - median);
  const double scale = std::max(1.4826 * median_of(finite), least);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) result[i] = (values[i] - median) / scale;
  }
  return result;
}

// Ranks from 1 by falling value; NaN counts as the largest.
template <typename Value, typename Rank>
void fill_in_ranks(std::vector<DocumentEffect>& documents, Value value, Rank rank) {
  std::vector<DocumentEffect*> order;
  for (DocumentEffect& document : documents) order.push_back(&document);
  const auto key = [&](const DocumentEffect* document) {
    const double number = document->*value;
    return std::isnan(number) ? std::numeric_limits<double>::infinity() : number;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const auto* a, const auto* b) { return key(a) > key(b); });
  for (size_t i = 0; i < order.size(); ++i) order[i]->*rank = static_cast<int64_t>(i) + 1;
}

}  // namespace

std::vector<DocumentEffect> document_effects(StepRunner& one_row, const Batch& batch,
                                             std::span<const RowSegment> segments,
                                             const Tokenizer& tokenizer,
                                             const std::function<void()>& restore) {
  std::vector<DocumentEffect> documents;
  Batch row(batch.first_lane, 1, batch.sequence_length);
  for (const RowSegment& segment : segments) {
    take_labels_of(segment, batch, row);
    if (row.num_label_tokens == 0) continue;
    // A learning rate of 0 leaves the weights as they are, but for 0 times a gradient that is NaN.
    const StepResult result = one_row.train(row, 1, 0.0f);
    documents.push_back(
        {.place = segment,
         .num_labels = row.num_label_tokens,
         .text = tokenizer.decode(
             std::span(row.tokens).subspan(segment.begin, segment.end - segment.begin)),
         .loss = result.loss,
         .grad_norm = result.grad_norm});
    if (!std::isfinite(result.grad_norm) || !std::isfinite(result.param_norm)) {
      restore();
    } else {
      shuffle_tokens(segment, row);
      documents.back().shuffled_loss = one_row.train(row, 1, 0.0f).loss;
    }
  }
  rank_documents(documents);
  return documents;
}

void rank_documents(std::vector<DocumentEffect>& documents) {
  double loss_sum = 0, shuffled_sum = 0, num_labels = 0, num_bytes = 0;
  for (const DocumentEffect& document : documents) {
    if (!std::isfinite(document.loss) || !std::isfinite(document.shuffled_loss)) continue;
    loss_sum += document.loss * static_cast<double>(document.num_labels);
    shuffled_sum += document.shuffled_loss * static_cast<double>(document.num_labels);
    num_labels += static_cast<double>(document.num_labels);
    num_bytes += bytes_of(document);
  }
  const double mean_loss = loss_sum / std::max(num_labels, 1.0);
  const double mean_gain = (shuffled_sum - loss_sum) / std::max(num_labels, 1.0);
  const double mean_bits = loss_sum / std::numbers::ln2 / std::max(num_bytes, 1.0);
  std::vector<double> by_loss, by_bits, by_order, by_gradient;
  for (DocumentEffect& document : documents) {
    const auto labels = static_cast<double>(document.num_labels);
    const double root = std::sqrt(labels);
    document.loss_share = loss_sum > 0 ? document.loss * labels / loss_sum : 0;
    document.bits_per_byte = document.loss * labels / std::numbers::ln2 / bytes_of(document);
    by_loss.push_back((document.loss - mean_loss) * root);
    by_bits.push_back((document.bits_per_byte - mean_bits) * root);
    by_order.push_back((document.loss - document.shuffled_loss + mean_gain) * root);
    // A gradient of zero would be infinitely far below the others.
    const float norm =
        document.grad_norm == 0 ? std::numeric_limits<float>::min() : document.grad_norm;
    by_gradient.push_back(std::log(norm * root));
  }
  const std::vector<double> of_loss = deviations(by_loss, kLeastOfSums),
                            of_bits = deviations(by_bits, kLeastOfSums),
                            of_order = deviations(by_order, kLeastOfSums),
                            of_gradient = deviations(by_gradient, kLeastOfNorms);
  for (size_t i = 0; i < documents.size(); ++i) {
    documents[i].deviation = std::max({of_loss[i], of_bits[i], of_order[i], of_gradient[i]});
  }
  fill_in_ranks(documents, &DocumentEffect::loss, &DocumentEffect::loss_rank);
  fill_in_ranks(documents, &DocumentEffect::grad_norm, &DocumentEffect::grad_rank);
  std::stable_sort(documents.begin(), documents.end(),
                   [](const auto& a, const auto& b) { return a.deviation > b.deviation; });
}

}  // namespace skein
