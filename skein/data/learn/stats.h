// Statistics of a corpus: `skein data stats`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "skein/base/text/json.h"
#include "skein/data/corpus/corpus.h"
#include "skein/data/learn/special_text.h"
#include "skein/data/tokenizer/tokenizer.h"

namespace skein {

struct CorpusStats {
  int64_t num_documents = 0;
  int64_t num_bytes = 0;  // of text

  // Bytes per document: exact up to 4 Mi documents, otherwise over evenly spaced documents.
  struct Lengths {
    double mean = 0;
    int64_t min = 0, p10 = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;
    int64_t num_sampled = 0;
  } lengths;

  struct Tokens {
    int64_t num_tokens = 0;  // of the corpus, without BOS and EOS
    double bytes_per_token = 0;
    int64_t sampled_bytes = 0;  // of tokenized text; if less than num_bytes, an estimate
    bool is_estimate = false;
    SpecialText special;  // that spells special tokens of the tokenizer
  };
  std::optional<Tokens> tokens;
};

// Reads every length; with a tokenizer, also tokenizes about `sample_bytes` of text.
CorpusStats corpus_stats(const Corpus& corpus, const Tokenizer* tokenizer = nullptr,
                         int64_t sample_bytes = int64_t{16} << 20);

OrderedJson to_json(const CorpusStats& stats);  // for --json
std::string to_text(const CorpusStats& stats);  // for people, several lines

}  // namespace skein
