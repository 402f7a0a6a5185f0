#include "skein/data/learn/stats.h"

#include <algorithm>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/files/lost_pages.h"
#include "skein/base/text/units.h"
#include "skein/base/text/visible_text.h"
#include "skein/data/learn/tokenizer_train.h"

namespace skein {
namespace {

constexpr int64_t kMaxLengths = int64_t{4} << 20;
constexpr int64_t kExcerptBytes = int64_t{64} << 10;
constexpr uint64_t kSampleSeed = 1;

CorpusStats::Lengths length_stats(const Corpus& corpus) {
  CorpusStats::Lengths stats;
  const int64_t count = corpus.num_documents();
  if (count == 0) return stats;
  const int64_t stride = (count + kMaxLengths - 1) / kMaxLengths;
  std::vector<int64_t> lengths;
  lengths.reserve(static_cast<size_t>((count + stride - 1) / stride));
  for (int64_t i = 0; i < count; i += stride) {
    lengths.push_back(corpus.document_bytes(i));
  }
  std::sort(lengths.begin(), lengths.end());
  // Nearest rank: the smallest length that `percent` % of the documents do not exceed.
  const auto percentile = [&](size_t percent) {
    const size_t rank = (lengths.size() * percent + 99) / 100;
    return lengths[std::max<size_t>(rank, 1) - 1];
  };
  stats.mean = static_cast<double>(corpus.num_bytes()) / static_cast<double>(count);
  stats.min = lengths.front();
  stats.p10 = percentile(10);
  stats.p50 = percentile(50);
  stats.p90 = percentile(90);
  stats.p99 = percentile(99);
  stats.max = lengths.back();
  stats.num_sampled = static_cast<int64_t>(lengths.size());
  return stats;
}

CorpusStats::Tokens token_stats(const Corpus& corpus, const Tokenizer& tokenizer,
                                int64_t sample_bytes) {
  CorpusStats::Tokens stats;
  stats.special = find_special_text(corpus, tokenizer);
  int64_t num_sampled_tokens = 0;
  std::vector<int32_t> ids;
  const auto count = [&](std::string_view text) {
    ids.clear();
    tokenizer.encode(text, ids);
    num_sampled_tokens += static_cast<int64_t>(ids.size());
    stats.sampled_bytes += static_cast<int64_t>(text.size());
  };
  stats.is_estimate = corpus.num_bytes() > sample_bytes;
  if (stats.is_estimate) {
    sample_corpus(corpus, sample_bytes, kExcerptBytes, kSampleSeed,
                  [&](const HeldText& excerpt) { count(excerpt); });
  } else {
    for (int64_t i = 0; i < corpus.num_documents(); ++i) {
      const HeldText text = corpus.document(i);
      count(text);
    }
  }
  if (num_sampled_tokens == 0) return stats;
  stats.bytes_per_token =
      static_cast<double>(stats.sampled_bytes) / static_cast<double>(num_sampled_tokens);
  stats.num_tokens =
      stats.is_estimate
          ? static_cast<int64_t>(static_cast<double>(corpus.num_bytes()) / stats.bytes_per_token)
          : num_sampled_tokens;
  return stats;
}

}  // namespace

CorpusStats corpus_stats(const Corpus& corpus, const Tokenizer* tokenizer, int64_t sample_bytes) {
  CorpusStats stats;
  stats.num_documents = corpus.num_documents();
  stats.num_bytes = corpus.num_bytes();
  stats.lengths = length_stats(corpus);
  if (tokenizer != nullptr) stats.tokens = token_stats(corpus, *tokenizer, sample_bytes);
  require_no_lost_pages();
  return stats;
}

OrderedJson to_json(const CorpusStats& stats) {
  const CorpusStats::Lengths& lengths = stats.lengths;
  OrderedJson json{{"documents", stats.num_documents}, {"bytes", stats.num_bytes}};
  json["document_bytes"] = {{"mean", lengths.mean}, {"min", lengths.min},
                            {"p10", lengths.p10},   {"p50", lengths.p50},
                            {"p90", lengths.p90},   {"p99", lengths.p99},
                            {"max", lengths.max},   {"documents_sampled", lengths.num_sampled}};
  if (stats.tokens) {
    json["tokens"] = stats.tokens->num_tokens;
    json["bytes_per_token"] = stats.tokens->bytes_per_token;
    json["tokens_estimated"] = stats.tokens->is_estimate;
    json["bytes_tokenized"] = stats.tokens->sampled_bytes;
    const SpecialText& special = stats.tokens->special;
    json["special_tokens"] = {{"documents", special.documents},
                              {"documents_looked_at", special.looked_at},
                              {"example", special.example}};
  }
  return json;
}

std::string to_text(const CorpusStats& stats) {
  const CorpusStats::Lengths& lengths = stats.lengths;
  std::string text = fmt::format(
      "documents        {}\n"
      "text             {}\n"
      "document bytes   mean {:.0f}, min {}, p10 {}, median {}, p90 {}, p99 {}, max {}{}\n",
      stats.num_documents, format_bytes(stats.num_bytes), lengths.mean, lengths.min, lengths.p10,
      lengths.p50, lengths.p90, lengths.p99, lengths.max,
      lengths.num_sampled < stats.num_documents
          ? fmt::format(" (of {} documents, evenly spaced)", lengths.num_sampled)
          : "");
  if (stats.tokens) {
    text += fmt::format(
        "tokens           {}{}\nbytes per token  {:.3f}\n",
        format_count(static_cast<double>(stats.tokens->num_tokens)),
        stats.tokens->is_estimate
            ? fmt::format(" (estimated from {} of text)", format_bytes(stats.tokens->sampled_bytes))
            : "",
        stats.tokens->bytes_per_token);
    const SpecialText& special = stats.tokens->special;
    if (special.documents > 0) {
      text += fmt::format(
          "special tokens   spelled by {} of {} documents, such as {} in document {}: characters "
          "in training, unless data.special_tokens = \"parse\"\n",
          special.documents, special.looked_at, visible_line(special.example), special.document);
    }
  }
  return text;
}

}  // namespace skein
