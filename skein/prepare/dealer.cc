#include "skein/prepare/dealer.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/utf8.h"
#include "skein/data/corpus/loss_spans.h"

namespace skein {
namespace {

constexpr size_t kSplitBytes = size_t{1} << 20;  // documents from this size on are cut in two

}  // namespace

std::optional<size_t> cut_near(std::string_view text, size_t position) {
  if (text.size() < 2) return std::nullopt;
  position = std::clamp<size_t>(position, 1, text.size() - 1);
  const size_t newline = text.substr(0, position).rfind('\n');
  if (newline != std::string_view::npos && newline > position / 2) return newline + 1;
  const size_t before = utf8::character_start(text, position);
  if (before > 0) return before;
  const size_t after = utf8::next_character_start(text, position);
  if (after < text.size()) return after;
  return std::nullopt;
}

Dealer::Dealer(const fs::path& out, const fs::path& validation_out, const std::string& made_from,
               double validation_fraction, const std::string& shard_of, bool has_spans)
    : fraction_(validation_fraction), training_(out, made_from, has_spans, shard_of) {
  if (!validation_out.empty()) validation_.emplace(validation_out, made_from, has_spans);
}

void Dealer::begin_file(const fs::path& texts) {
  file_ = texts;
  file_index_ = training_.corpus.take_file(texts);
  if (validation_) validation_->corpus.add_file(texts);  // gets the same index
}

void Dealer::add(const PieceDocument& document) {
  const std::string_view text = document.text;
  const FileRange range{file_index_, document.begin, static_cast<int64_t>(text.size())};
  const int64_t index = num_documents_++;
  num_bytes_ += range.num_bytes;
  const Origin& origin = document.origin;
  if (!validation_) return append(training_, range, origin, document.spans);
  if (is_held_out(index)) return append(*validation_, range, origin, document.spans);
  if (text.size() >= kSplitBytes) {
    const auto held = static_cast<size_t>(static_cast<double>(text.size()) * fraction_);
    const size_t position = text.size() - std::min(held, text.size());
    if (held > 0 && split(text, range, origin, document.spans, position)) return;
  }
  // The last document is kept back: it is split if nothing else was held out.
  flush_last();
  last_ = {range,
           std::string(origin.source),
           origin.record,
           {document.spans.begin(), document.spans.end()}};
  last_file_ = file_;
}

void Dealer::commit() {
  if (validation_) {
    if (validation_->corpus.num_documents() == 0) hold_out_end_of_last();
    flush_last();
    if (validation_->corpus.num_documents() == 0 || training_.corpus.num_documents() == 0) {
      fail(ErrorCode::kInvalid,
           "{} documents of {} bytes in all leave nothing for {} at a validation fraction of {}: "
           "expected text for both, or no --validation-out",
           num_documents_, num_bytes_,
           training_.corpus.num_documents() == 0 ? "training" : "validation", fraction_);
    }
    commit_with_sources(validation_->corpus, validation_->sources);
  }
  commit_with_sources(training_.corpus, training_.sources);
}

void Dealer::append(DealtCorpus& output, const FileRange& range, const Origin& origin,
                    std::span<const ByteRange> spans) {
  output.corpus.append(range, spans);
  output.sources.append({origin.source, origin.record});
}

void Dealer::hold_out_end_of_last() {
  const FileRange& range = last_.range;
  if (range.num_bytes == 0) return;
  const double wanted = fraction_ * static_cast<double>(num_bytes_);
  const double most = std::max(1.0, static_cast<double>(range.num_bytes) / 2);
  const auto held = static_cast<int64_t>(std::clamp(wanted, 1.0, most));
  if (range.num_bytes <= held) return;
  const MappedFile file(last_file_);
  const std::string_view text =
      file.text().substr(static_cast<size_t>(range.begin), static_cast<size_t>(range.num_bytes));
  if (split(text, range, {last_.source, last_.record}, last_.spans,
            static_cast<size_t>(range.num_bytes - held))) {
    last_ = {};
  }
}

bool Dealer::is_held_out(int64_t index) const {
  const uint64_t hash = hash_name({reinterpret_cast<const char*>(&index), sizeof(index)});
  return static_cast<double>(hash >> 11) * 0x1p-53 < fraction_;
}

bool Dealer::split(std::string_view text, const FileRange& range, const Origin& origin,
                   std::span<const ByteRange> spans, size_t position) {
  const std::optional<size_t> found = cut_near(text, position);
  if (!found) return false;
  const auto cut = static_cast<int64_t>(*found);
  append(training_, {range.file, range.begin, cut}, origin, spans_within(spans, {0, cut}));
  append(*validation_, {range.file, range.begin + cut, range.num_bytes - cut}, origin,
         spans_within(spans, {cut, range.num_bytes}));
  return true;
}

void Dealer::flush_last() {
  if (last_.range.num_bytes > 0) {
    append(training_, last_.range, {last_.source, last_.record}, last_.spans);
  }
  last_ = {};
}

}  // namespace skein
