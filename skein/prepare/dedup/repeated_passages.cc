#include "skein/prepare/dedup/repeated_passages.h"

#include <algorithm>
#include <atomic>
#include <bit>

namespace skein {
namespace {

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos;
}

// Behind the line that begins at `at`, with its newline.
size_t behind_line(std::string_view text, size_t at) {
  const size_t newline = text.find('\n', at);
  return newline == std::string_view::npos ? text.size() : newline + 1;
}

size_t behind_paragraph(std::string_view text, size_t at) {
  bool is_ending = false;  // blank lines belong to the paragraph before them
  while (at < text.size()) {
    const size_t end = behind_line(text, at);
    const bool blank = is_blank(text.substr(at, end - at));
    if (is_ending && !blank) break;
    is_ending = is_ending || blank;
    at = end;
  }
  return at;
}

}  // namespace

void PassageHasher::for_each(
    std::string_view text,
    const std::function<void(uint64_t hash, std::string_view passage)>& visit) {
  for (size_t at = 0, end = 0; at < text.size(); at = end) {
    end = passage_ == Passage::kLine ? behind_line(text, at) : behind_paragraph(text, at);
    const std::string_view passage = text.substr(at, end - at);
    visit(hash(passage), passage);
  }
}

uint64_t PassageHasher::hash(std::string_view passage) {
  hashes_.clear();
  words_.for_each(passage, [&](uint64_t word) { hashes_.push_back(word); });
  if (hashes_.empty()) return 0;
  const uint64_t hash = xxh3_128(std::as_bytes(std::span(hashes_))).low;
  return hash == 0 ? 1 : hash;
}

int cut_shift(uint64_t num_documents) {
  return 64 - std::bit_width(std::max<uint64_t>(num_documents, 2));
}

PassageCounts find_repeated(const Partitions& hashes, const DocumentTable& table,
                            const Removals& removals, int64_t max_documents, int num_threads,
                            Partitions& cuts) {
  std::atomic<int64_t> num_passages = 0;
  const int shift = cut_shift(table.size());
  // Once per document, though it may hold the passage several times.
  const auto visit = [&](std::span<KeyedValue> pairs) {
    const auto end = std::unique(pairs.begin(), pairs.end());
    if (end - pairs.begin() <= max_documents) return;
    ++num_passages;
    uint64_t keeper = pairs.front().value;
    Hash128 least = table.at(keeper).text;
    for (auto pair = pairs.begin() + 1; pair != end; ++pair) {
      const Hash128 text = table.at(pair->value).text;
      if (text < least) keeper = pair->value, least = text;
    }
    for (auto pair = pairs.begin(); pair != end; ++pair) {
      if (pair->value != keeper) cuts.add({pair->value << shift, pair->key});
    }
  };
  const auto keeps = [&](const KeyedValue& pair) { return !removals.contains(pair.value); };
  hashes.for_each_chunk(num_threads, keeps, [&](std::span<KeyedValue> chunk) {
    for (size_t begin = 0, end = 0; begin < chunk.size(); begin = end) {
      while (end < chunk.size() && chunk[end].key == chunk[begin].key) ++end;
      visit(chunk.subspan(begin, end - begin));
    }
  });
  cuts.finish();
  return {num_passages};
}

CutReader::CutReader(const Partitions& cuts, uint64_t num_documents, uint64_t begin, uint64_t end,
                     size_t max_pairs)
    : shift_(cut_shift(num_documents)),
      keeps_all_([](const KeyedValue&) { return true; }),
      reader_(cuts, begin << shift_, (end << shift_) - 1, max_pairs, keeps_all_),
      chunk_(reader_.next()) {}

std::vector<uint64_t> CutReader::of_document(uint64_t document) {
  std::vector<uint64_t> hashes;
  while (!chunk_.empty() && chunk_.front().key >> shift_ == document) {
    hashes.push_back(chunk_.front().value);
    chunk_ = chunk_.subspan(1);
    if (chunk_.empty()) chunk_ = reader_.next();
  }
  return hashes;
}

}  // namespace skein
