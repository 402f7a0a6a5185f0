#include "skein/prepare/dedup/signatures.h"

#include <cstring>
#include <optional>

#include "skein/base/threads/parallel_for.h"
#include "skein/prepare/dedup/signature_file.h"

namespace skein {
namespace {

// Raised whenever another signature is computed of the same text.
constexpr int kSignatureFormat = 1;

// Of a sequence of hashes, each already well mixed: two polynomials mod 2^64.
void append_word(Hash128& hash, uint64_t word) {
  hash.low = (hash.low + word) * 0x9e3779b97f4a7c15;
  hash.high = (hash.high + word) * 0xd6e8feb86659fd93;
}

}  // namespace

Json signature_key(const DedupOptions& options, const EvaluationSets& evaluation) {
  const MinHashOptions& minhash = options.minhash;
  Json key = {{"format", kSignatureFormat},
              {"equality", static_cast<int>(options.equality)},
              {"passage", static_cast<int>(options.passage)}};
  if (options.removes_near) {
    key["near"] = {minhash.num_words, minhash.num_bands, minhash.num_rows, minhash.seed};
  }
  if (!evaluation.empty()) {
    key["against"] = {evaluation.num_words(), evaluation.sets().size(), evaluation.digest()};
  }
  return key;
}

DocumentSigner::DocumentSigner(const DedupOptions& options, const EvaluationSets& evaluation)
    : options_(options),
      evaluation_(evaluation),
      reads_words_(options.removes_near || options.equality == Equality::kWords ||
                   !evaluation.empty()),
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

void DocumentSigner::sign(std::string_view text, std::vector<uint64_t>& records) {
  SignatureHeader header;
  header.sets = reads_words_ ? read_words(text) : 0;
  header.entry.text = xxh3_128(std::as_bytes(std::span(text)));
  // Texts without words are equal only where they are the same.
  const bool by_words = options_.equality == Equality::kWords && ngrams_.num_words() > 0;
  header.entry.equal = by_words ? hash_of_words_ : header.entry.text;
  header.entry.num_bytes = text.size();
  const size_t at = records.size();
  records.resize(at + sizeof(header) / sizeof(uint64_t));
  const auto num_added = [&, before = records.size()] {
    return static_cast<uint32_t>(records.size() - before) - header.num_band_keys;
  };
  if (header.sets == 0 && options_.removes_near && ngrams_.num_words() > 0) {
    minhash_.append_keys(records);
    header.num_band_keys = num_added();
  }
  if (header.sets == 0 && options_.passage != Passage::kNone) {
    passages_.for_each(text, [&](uint64_t hash, std::string_view) {
      if (hash != 0) records.push_back(hash);
    });
    header.num_passages = num_added();
  }
  std::memcpy(&records[at], &header, sizeof(header));
}

std::vector<uint64_t> DocumentSigner::sign(const DocumentBatch& batch) {
  std::vector<uint64_t> records;
  for (size_t i = 0; i < batch.size(); ++i) sign(batch.document(i), records);
  return records;
}

SigningCounts sign_pieces(const Pieces& pieces, const DedupOptions& options,
                          const EvaluationSets& evaluation, int num_threads,
                          const std::function<void(size_t, size_t)>& on_documents) {
  const Json key = signature_key(options, evaluation);
  std::vector<int64_t> mine, missing;
  for (int64_t piece = 0; piece < pieces.num_pieces(); ++piece) {
    if (pieces.is_mine(piece)) mine.push_back(piece);
  }
  std::vector<char> is_signed(static_cast<size_t>(pieces.num_pieces()));
  parallel_for_each(mine, num_threads, [&](int64_t piece) {
    is_signed[static_cast<size_t>(piece)] = has_signatures(
        pieces.stem(piece), key, static_cast<uint64_t>(pieces.report(piece).num_documents));
  });
  for (const int64_t piece : mine) {
    if (is_signed[static_cast<size_t>(piece)] == 0) missing.push_back(piece);
  }
  std::optional<SignatureFile> file;
  run_document_pass<std::vector<uint64_t>>(
      pieces, missing, num_threads,
      [&]() -> BatchWorker<std::vector<uint64_t>> {
        const auto signer = std::make_shared<DocumentSigner>(options, evaluation);
        return [signer](const DocumentBatch& batch) { return signer->sign(batch); };
      },
      [&](const DocumentBatch& batch, std::vector<uint64_t>& records) {
        if (!file) file.emplace(pieces.stem(batch.piece));
        file->append(records, batch.size());
        on_documents(batch.size(), batch.text.size());
        if (!batch.is_last) return;
        file->finish(key);
        file.reset();
      });
  return {static_cast<int64_t>(mine.size()), static_cast<int64_t>(mine.size() - missing.size())};
}

}  // namespace skein
