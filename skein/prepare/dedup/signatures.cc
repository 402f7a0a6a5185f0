#include "skein/prepare/dedup/signatures.h"

namespace skein {
namespace {

// Of a sequence of hashes, each already well mixed: two polynomials mod 2^64.
void append_word(Hash128& hash, uint64_t word) {
  hash.low = (hash.low + word) * 0x9e3779b97f4a7c15;
  hash.high = (hash.high + word) * 0xd6e8feb86659fd93;
}

}  // namespace

DocumentSigner::DocumentSigner(const DedupOptions& options, const EvaluationSets& evaluation)
    : options_(options),
      evaluation_(evaluation),
      ngrams_(options.minhash.num_words),
      contamination_ngrams_(options.contamination_words),
      minhash_(options.minhash),
      passages_(options.passage) {}

uint64_t DocumentSigner::read_words(std::string_view text) {
  uint64_t sets = 0;
  const bool is_judged = !evaluation_.empty();
  ngrams_.begin();
  contamination_ngrams_.begin();
  minhash_.begin();
  hash_of_words_ = {};
  words_.for_each(text, [&](uint64_t word) {
    append_word(hash_of_words_, word);
    if (const auto ngram = ngrams_.push(word)) minhash_.add(*ngram);
    if (!is_judged) return;
    if (const auto ngram = contamination_ngrams_.push(word)) sets |= evaluation_.sets_with(*ngram);
  });
  if (const auto ngram = ngrams_.short_text()) minhash_.add(*ngram);
  return sets;
}

BatchSignatures DocumentSigner::sign(const DocumentBatch& batch) {
  BatchSignatures result;
  const bool reads_words =
      options_.removes_near || options_.equality == Equality::kWords || !evaluation_.empty();
  for (size_t i = 0; i < batch.size(); ++i) {
    const std::string_view text = batch.document(i);
    const uint64_t document = batch.first_document + i;
    const uint64_t sets = reads_words ? read_words(text) : 0;
    DocumentEntry entry;
    entry.text = xxh3_128(std::as_bytes(std::span(text)));
    // Texts without words are equal only where they are the same.
    const bool by_words = options_.equality == Equality::kWords && ngrams_.num_words() > 0;
    entry.equal = by_words ? hash_of_words_ : entry.text;
    entry.num_bytes = text.size();
    result.entries.push_back(entry);
    result.sets.push_back(sets);
    if (sets != 0) continue;
    if (options_.removes_near && ngrams_.num_words() > 0) {
      keys_.clear();
      minhash_.append_keys(keys_);
      for (const uint64_t key : keys_) result.band_keys.push_back({key, document});
    }
    if (options_.passage == Passage::kNone) continue;
    passages_.for_each(text, [&](uint64_t hash, std::string_view) {
      if (hash != 0) result.passage_hashes.push_back({hash, document});
    });
  }
  return result;
}

}  // namespace skein
