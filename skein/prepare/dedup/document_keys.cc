#include "skein/prepare/dedup/document_keys.h"

#include "skein/base/threads/parallel_for.h"
#include "skein/prepare/dedup/hashing/evaluation_sets.h"
#include "skein/prepare/dedup/signature_file.h"

namespace skein {
namespace {

constexpr size_t kEntriesAtOnce = 4096;  // that a thread adds to the table

// What a thread adds of one piece.
class PieceAdder {
 public:
  PieceAdder(DocumentKeys& keys, bool with_equal_keys, uint64_t first_document,
             const std::function<void(size_t)>& on_documents)
      : keys_(keys),
        with_equal_keys_(with_equal_keys),
        next_(first_document),
        on_documents_(on_documents) {}

  void add(const DocumentSignature& signature) {
    const SignatureHeader& header = signature.header;
    entries_.push_back(header.entry);
    if (header.sets != 0) {
      note_contaminated(header);
    } else if (with_equal_keys_) {
      keys_.equal.add({header.entry.equal.high, next_});
    }
    for (const uint64_t key : signature.band_keys) keys_.bands.add({key, next_});
    for (const uint64_t hash : signature.passages) keys_.passages.add({hash, next_});
    ++next_;
    if (entries_.size() == kEntriesAtOnce) flush();
  }

  void flush() {
    keys_.table.write(next_ - entries_.size(), entries_);
    on_documents_(entries_.size());
    entries_.clear();
  }

  RemovalCounts contaminated;
  std::vector<int64_t> by_set = std::vector<int64_t>(EvaluationSets::kMaxSets);

 private:
  void note_contaminated(const SignatureHeader& header) {
    keys_.removals.add(next_);
    contaminated.add({1, static_cast<int64_t>(header.entry.num_bytes)});
    for (size_t set = 0; set < by_set.size(); ++set) by_set[set] += header.sets >> set & 1;
  }

  DocumentKeys& keys_;
  bool with_equal_keys_;
  uint64_t next_;
  const std::function<void(size_t)>& on_documents_;
  std::vector<DocumentEntry> entries_;
};

}  // namespace

DocumentKeys::DocumentKeys(const fs::path& out, uint64_t num_documents, int64_t memory_bytes)
    : table(out, num_documents),
      equal(out, memory_bytes / 12, memory_bytes / 4),
      bands(out, memory_bytes / 12, memory_bytes / 4),
      passages(out, memory_bytes / 12, memory_bytes / 4),
      removals(num_documents),
      contaminated_by_set(EvaluationSets::kMaxSets) {}

std::vector<uint64_t> first_documents(const Pieces& pieces) {
  std::vector<uint64_t> first = {0};
  for (int64_t piece = 0; piece < pieces.num_pieces(); ++piece) {
    first.push_back(first.back() + static_cast<uint64_t>(pieces.report(piece).num_documents));
  }
  return first;
}

void add_signatures(const Pieces& pieces, bool with_equal_keys, int num_threads, DocumentKeys& keys,
                    const std::function<void(size_t)>& on_documents) {
  const std::vector<uint64_t> first = first_documents(pieces);
  std::vector<size_t> all(static_cast<size_t>(pieces.num_pieces()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  Mutex mutex;
  parallel_for_each(all, num_threads, [&](size_t i) {
    PieceAdder adder(keys, with_equal_keys, first[i], on_documents);
    read_signatures(pieces.stem(static_cast<int64_t>(i)), first[i + 1] - first[i],
                    [&](const DocumentSignature& signature) { adder.add(signature); });
    adder.flush();
    const Lock lock(mutex);
    keys.contaminated.add(adder.contaminated);
    for (size_t set = 0; set < adder.by_set.size(); ++set) {
      keys.contaminated_by_set[set] += adder.by_set[set];
    }
  });
  for (Partitions* partitions : {&keys.equal, &keys.bands, &keys.passages}) partitions->finish();
}

}  // namespace skein
