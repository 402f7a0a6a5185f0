#include "skein/prepare/dedup/corpora_writing.h"

#include <algorithm>
#include <optional>

#include "skein/base/error.h"
#include "skein/base/threads/parallel_for.h"
#include "skein/data/corpus/corpus_sources.h"
#include "skein/data/corpus/corpus_writer.h"
#include "skein/prepare/dedup/cut_passages.h"

namespace skein {
namespace {

// The texts of a piece from which passages were cut, for documents in order.
class CutTexts {
 public:
  explicit CutTexts(const fs::path& stem) : texts_(cut_text_of(stem)), rows_(cut_rows_of(stem)) {}

  // Nothing for a document from which nothing was cut.
  std::optional<std::string_view> of_document(uint64_t document) {
    const std::span rows(reinterpret_cast<const CutRow*>(rows_.bytes().data()),
                         rows_.bytes().size() / sizeof(CutRow));
    while (at_ < rows.size() && rows[at_].document < document) begin_ += rows[at_++].num_bytes;
    if (at_ == rows.size() || rows[at_].document != document) return std::nullopt;
    const std::string_view text = texts_.text().substr(begin_, rows[at_].num_bytes);
    begin_ += rows[at_++].num_bytes;
    return text;
  }

 private:
  MappedFile texts_, rows_;
  size_t at_ = 0, begin_ = 0;  // of the next text: its row, its place
};

// One corpus.
class PartWriter {
 public:
  PartWriter(const CorpusPart& part, const Removals& removals, bool has_cuts,
             const WriteHooks& hooks)
      : part_(part),
        removals_(removals),
        has_cuts_(has_cuts),
        hooks_(hooks),
        writer_(part.path, part.shard_of),
        sources_(part.path, part.made_from) {}

  // The documents of a piece, of which `document` is the first.
  void add(const Pieces& pieces, int64_t piece, uint64_t document) {
    const int64_t file = writer_.add_file(pieces.text_file(piece));
    std::optional<CutTexts> cut;
    if (has_cuts_) cut.emplace(pieces.stem(piece));
    pieces.read(piece, [&](const PieceDocument& read) {
      const uint64_t number = document++;
      if (number < part_.begin || number >= part_.end) return;
      note_read(read.text.size());
      if (removals_.contains(number)) return;
      hooks_.on_kept(number, read.text);
      const auto left = cut ? cut->of_document(number) : std::nullopt;
      if (left) {
        writer_.append(*left);
      } else {
        writer_.append(FileRange{file, read.begin, static_cast<int64_t>(read.text.size())});
      }
      sources_.append({read.origin.source, read.origin.record});
    });
  }

  RemovalCounts commit() {
    hooks_.on_documents(num_read_, num_read_bytes_);
    commit_with_sources(writer_, sources_);
    return {writer_.num_documents(), writer_.num_bytes()};
  }

 private:
  void note_read(size_t num_bytes) {
    num_read_bytes_ += num_bytes;
    if (++num_read_ < 4096) return;
    hooks_.on_documents(num_read_, num_read_bytes_);
    num_read_ = num_read_bytes_ = 0;
  }

  const CorpusPart& part_;
  const Removals& removals_;
  bool has_cuts_;
  const WriteHooks& hooks_;
  CorpusWriter writer_;
  CorpusSourcesWriter sources_;
  size_t num_read_ = 0, num_read_bytes_ = 0;  // not told yet
};

// Calls visit(document, bytes) for the documents that stay, in order.
template <typename Visit>
void for_each_kept(const DocumentTable& table, const Removals& removals, const Visit& visit) {
  table.for_each(0, table.size(), [&](uint64_t document, const DocumentEntry& entry) {
    if (!removals.contains(document)) visit(document, static_cast<double>(entry.num_bytes));
  });
}

}  // namespace

RemovalCounts divide_documents(const DocumentTable& table, const Removals& removals,
                               std::vector<CorpusPart>& parts) {
  RemovalCounts left;
  for_each_kept(table, removals, [&](uint64_t, double bytes) {
    left.add({1, static_cast<int64_t>(bytes)});
  });
  auto num_left = static_cast<size_t>(left.num_documents);
  const auto num_bytes = static_cast<double>(left.num_bytes);
  if (num_left == 0) return left;
  if (num_left < parts.size()) {
    fail(ErrorCode::kUsage, "--shards {}: {} documents are left: expected at most as many shards",
         parts.size(), num_left);
  }
  size_t part = 0;
  double before = 0;
  bool is_empty = true;  // the part
  for_each_kept(table, removals, [&](uint64_t document, double bytes) {
    const double end =
        num_bytes * static_cast<double>(part + 1) / static_cast<double>(parts.size());
    const size_t num_further = parts.size() - part - 1;
    // A document belongs to the part in which its middle lies; but each part has one at least.
    if (num_further > 0 && !is_empty && (before + bytes / 2 >= end || num_left == num_further)) {
      parts[part].end = document;
      parts[++part].begin = document;
    }
    is_empty = false;
    before += bytes;
    --num_left;
  });
  parts[part].end = table.size();
  return left;
}

RemovalCounts write_corpora(const Pieces& pieces, const std::vector<CorpusPart>& parts,
                            const Removals& removals, bool has_cuts, int num_threads,
                            const WriteHooks& hooks) {
  const std::vector<uint64_t> first = first_documents(pieces);
  RemovalCounts written;
  Mutex mutex;
  parallel_for_each(parts, num_threads, [&](const CorpusPart& part) {
    PartWriter writer(part, removals, has_cuts, hooks);
    for (size_t piece = 0; piece + 1 < first.size(); ++piece) {
      if (first[piece] >= part.end || first[piece + 1] <= part.begin) continue;
      writer.add(pieces, static_cast<int64_t>(piece), first[piece]);
    }
    const RemovalCounts of_part = writer.commit();
    const Lock lock(mutex);
    written.add(of_part);
  });
  return written;
}

}  // namespace skein
