#include "skein/prepare/dedup/cut_passages.h"

#include <algorithm>

#include "skein/base/threads/parallel_for.h"

namespace skein {
namespace {

// How many parts there are for each thread: a part reads all cuts of the partitions in which it
// begins and ends.
constexpr size_t kPartsOfThread = 4;

class Cutter {
 public:
  explicit Cutter(Passage passage) : passages_(passage) {}

  // What is left of `text` without the passages in `cuts`; empty: no words.
  std::string_view cut(std::string_view text, const std::vector<uint64_t>& cuts) {
    left_.clear();
    bool has_words = false;
    passages_.for_each(text, [&](uint64_t hash, std::string_view passage) {
      if (hash != 0 && std::binary_search(cuts.begin(), cuts.end(), hash)) {
        ++counts.num_passages;
        return;
      }
      has_words = has_words || hash != 0;
      left_ += passage;
    });
    if (!has_words) left_.clear();  // blank lines and punctuation are no document
    counts.num_bytes += static_cast<int64_t>(text.size() - left_.size());
    if (left_.empty()) ++counts.emptied.num_documents;
    return left_;
  }

  CutCounts counts;

 private:
  PassageHasher passages_;
  std::string left_;
};

void cut_piece(const Pieces& pieces, int64_t piece, uint64_t document, CutReader& cuts,
               Cutter& cutter, Removals& removals) {
  PieceFile texts(cut_text_of(pieces.stem(piece))), rows(cut_rows_of(pieces.stem(piece)));
  pieces.read(piece, [&](const PieceDocument& read) {
    const std::vector<uint64_t> hashes = cuts.of_document(document);
    if (!hashes.empty()) {
      const std::string_view left = cutter.cut(read.text, hashes);
      const CutRow row{document, left.size()};
      texts.append(left);
      if (left.empty()) removals.add(document);
      if (!left.empty()) rows.append({reinterpret_cast<const char*>(&row), sizeof(row)});
    }
    ++document;
  });
  texts.finish();
  rows.finish();
}

}  // namespace

fs::path cut_text_of(const fs::path& stem) { return fs::path(stem) += ".cut"; }
fs::path cut_rows_of(const fs::path& stem) { return fs::path(stem) += ".cuts"; }

CutCounts cut_passages(const Pieces& pieces, const Partitions& cuts, Passage passage,
                       int num_threads, Removals& removals,
                       const std::function<void(size_t)>& on_documents) {
  const std::vector<uint64_t> first = first_documents(pieces);
  const size_t num_pieces = first.size() - 1;
  const size_t num_parts = std::min(num_pieces, kPartsOfThread * static_cast<size_t>(num_threads));
  std::vector<size_t> parts(num_parts);
  for (size_t i = 0; i < num_parts; ++i) parts[i] = i;
  CutCounts counts;
  Mutex mutex;
  parallel_for_each(parts, num_threads, [&](size_t part) {
    const size_t begin = num_pieces * part / num_parts, end = num_pieces * (part + 1) / num_parts;
    Cutter cutter(passage);
    CutReader reader(cuts, first.back(), first[begin], first[end],
                     cuts.chunk_pairs() / static_cast<size_t>(num_threads));
    for (size_t piece = begin; piece < end; ++piece) {
      cut_piece(pieces, static_cast<int64_t>(piece), first[piece], reader, cutter, removals);
      on_documents(first[piece + 1] - first[piece]);
    }
    const Lock lock(mutex);
    counts.num_passages += cutter.counts.num_passages;
    counts.num_bytes += cutter.counts.num_bytes;
    counts.emptied.add(cutter.counts.emptied);
  });
  return counts;
}

}  // namespace skein
