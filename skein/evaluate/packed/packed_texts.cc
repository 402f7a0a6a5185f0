#include "skein/evaluate/packed/packed_texts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "skein/base/error.h"

namespace skein {
namespace {

// The last token is only a label.
int64_t num_inputs(const EncodedText& text) { return std::ssize(text.tokens) - 1; }

}  // namespace

PackedTexts::PackedTexts(std::vector<EncodedText> texts, int64_t sequence_length,
                         bool document_mask)
    : texts_(std::move(texts)), sequence_length_(sequence_length) {
  std::vector<int64_t> order(texts_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return num_inputs(texts_[a]) > num_inputs(texts_[b]);
  });
  std::multimap<int64_t, size_t> rows_by_room;
  for (const int64_t text : order) {
    const int64_t length = num_inputs(texts_[text]);
    if (length < 1 || length > sequence_length_) {
      fail(ErrorCode::kInternal, "a text of {} tokens does not fit a row of {}", length,
           sequence_length_);
    }
    num_tokens_ += length;
    num_labels_ += length + 1 - texts_[text].score_from;
    const auto found = rows_by_room.lower_bound(length);
    size_t row = rows_.size();
    int64_t room = document_mask ? sequence_length_ : length;
    if (found != rows_by_room.end()) {
      std::tie(room, row) = *found;
      rows_by_room.erase(found);
    } else {
      rows_.emplace_back();
    }
    rows_[row].push_back({text, document_mask ? sequence_length_ - room : 0});
    if (room > length) rows_by_room.emplace(room - length, row);
  }
}

void PackedTexts::fill(int64_t first_row, Batch& batch) const {
  std::fill(batch.tokens.begin(), batch.tokens.end(), 0);
  std::fill(batch.labels.begin(), batch.labels.end(), kNoLabel);
  batch.num_label_tokens = 0;
  for (int64_t i = 0; i < batch.sequences; ++i) {
    const int64_t at = i * sequence_length_;
    std::iota(batch.positions.begin() + at, batch.positions.begin() + at + sequence_length_, 0);
    std::fill_n(batch.attention_starts.begin() + at, sequence_length_, 0);
    if (first_row + i >= num_rows()) continue;
    const std::vector<Placed>& row = rows_[first_row + i];
    for (const Placed& placed : row) place(placed, at, batch);
    const int64_t end = row.back().begin + num_inputs(texts_[row.back().text]);
    if (row.size() == 1) continue;  // what fills it up lies behind the text
    for (int64_t k = end; k < sequence_length_; ++k) {
      batch.positions[at + k] = static_cast<int32_t>(k - end);
      batch.attention_starts[at + k] = static_cast<int32_t>(end);
    }
  }
}

void PackedTexts::place(const Placed& placed, int64_t row_begin, Batch& batch) const {
  const EncodedText& text = texts_[placed.text];
  for (int64_t k = 0; k < num_inputs(text); ++k) {
    const int64_t at = row_begin + placed.begin + k;
    batch.tokens[at] = text.tokens[k];
    batch.positions[at] = static_cast<int32_t>(k);
    batch.attention_starts[at] = static_cast<int32_t>(placed.begin);
    if (k + 1 < text.score_from) continue;
    batch.labels[at] = text.tokens[k + 1];
    ++batch.num_label_tokens;
  }
}

int64_t PackedTexts::text_at(int64_t row, int64_t position) const {
  const std::vector<Placed>& placed = rows_.at(static_cast<size_t>(row));
  const auto behind =
      std::upper_bound(placed.begin(), placed.end(), position,
                       [](int64_t wanted, const Placed& one) { return wanted < one.begin; });
  return std::prev(behind)->text;
}

}  // namespace skein
