// Lines or paragraphs that several documents share, and their removal from all but one.
//
// Formula  passages are equal if their words (words.h) are: xxh3-128's lower half of the hashes of
//          the words, as CCNet compares normalized paragraphs; without words, none is removed. A
//          passage of more than `max_documents` documents stays in the document whose text has the
//          smallest xxh3-128, and goes from all others. CCNet and Dolma keep the one that they read
//          first; this choice does not depend on the order. What repeats within one document stays.
// Memory   partitions.h
// Threads  a PassageHasher, and a CutReader, is one thread's
// Source   Wenzek et al., "CCNet", 2020; Soldaini et al., "Dolma", 2024
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "skein/prepare/dedup/clusters/clusters.h"
#include "skein/prepare/dedup/hashing/words.h"

namespace skein {

enum class Passage { kNone, kLine, kParagraph };

// The passages of a text: lines with their newline, or the lines up to and with blank ones.
class PassageHasher {
 public:
  explicit PassageHasher(Passage passage) : passage_(passage) {}

  // Calls visit(hash, passage); the passages together are `text`. 0: no words.
  void for_each(std::string_view text,
                const std::function<void(uint64_t hash, std::string_view passage)>& visit);

 private:
  uint64_t hash(std::string_view passage);

  Passage passage_;
  WordHasher words_;
  std::vector<uint64_t> hashes_;
};

struct PassageCounts {
  int64_t num_passages = 0;  // different ones that are in too many documents
};

// `hashes` holds (hash, document) for the passages of all documents; what shall go is added to
// `cuts`, as (document << cut_shift(num_documents), hash).
PassageCounts find_repeated(const Partitions& hashes, const DocumentTable& table,
                            const Removals& removals, int64_t max_documents, int num_threads,
                            Partitions& cuts);
int cut_shift(uint64_t num_documents);

// Gives the cuts of one document after another, of those from `begin` to before `end`.
// Memory   `max_pairs` of partitions.h
class CutReader {
 public:
  CutReader(const Partitions& cuts, uint64_t num_documents, uint64_t begin, uint64_t end,
            size_t max_pairs);
  // The hashes of passages to cut, in ascending order; documents must be asked for in order.
  std::vector<uint64_t> of_document(uint64_t document);

 private:
  int shift_;
  Partitions::Keeps keeps_all_;
  Partitions::Reader reader_;
  std::span<KeyedValue> chunk_;
};

}  // namespace skein
