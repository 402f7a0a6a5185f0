// The n-grams of evaluation sets, to find documents that a model must not have read.
//
// Formula  a document is contaminated by a set if both hold one n-gram; of 13 words (words.h)
// Memory   16 bytes for each n-gram of a table that is at most 70 % full
// Errors   Error{kUsage}: more than 64 sets, or n-grams beyond the memory given
// Threads  const functions from any
// Source   13-grams: Brown et al., "Language models are few-shot learners", 2020, appendix C, which
//          cut a window of 200 characters; here the document goes
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/prepare/dedup/hashing/minhash.h"
#include "skein/prepare/dedup/hashing/words.h"
#include "skein/prepare/read/inputs/inputs.h"
#include "skein/prepare/read/readers.h"

namespace skein {

struct EvaluationSet {
  std::string name;
  int64_t num_examples = 0;
  int64_t num_short_examples = 0;  // of fewer words than an n-gram: not looked for
  int64_t num_invalid_lines = 0;   // passed over
};

class EvaluationSets {
 public:
  static constexpr size_t kMaxSets = 64;

  EvaluationSets(int num_words, int64_t memory_bytes);

  // Reads the examples of a set: a file, or all those of a folder; `read` as for documents. Returns
  // these files.
  std::vector<InputFile> add_set(const fs::path& path, ReadOptions read,
                                 bool skip_invalid_lines = false);
  void add_example(size_t set, std::string_view text);

  int num_words() const { return num_words_; }
  bool empty() const { return sets_.empty(); }
  const std::vector<EvaluationSet>& sets() const { return sets_; }
  // Of all n-grams with their sets; the order of examples does not matter.
  uint64_t digest() const;
  // Bit i: set i holds this n-gram.
  uint64_t sets_with(uint64_t ngram) const;

 private:
  struct NgramSlot {
    uint64_t ngram = 0;
    uint64_t sets = 0;  // 0: the slot is free
  };
  NgramSlot& slot(uint64_t ngram);
  void grow();

  int num_words_;
  size_t max_slots_;
  std::vector<EvaluationSet> sets_;
  std::vector<NgramSlot> slots_;  // a power of two; open addressing
  size_t num_used_ = 0;
  WordHasher words_;
  NgramHasher ngrams_;
};

}  // namespace skein
