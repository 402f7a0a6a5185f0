// Training of byte-level BPE: words are counted, on several threads, and merges learnt from them.
#include <algorithm>
#include <thread>
#include <unordered_map>

#include "skein/base/error.h"
#include "skein/base/machine/cores.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/json_text.h"
#include "skein/base/threads/parallel_for.h"
#include "skein/bpe/train_merges.h"
#include "skein/bpe/unicode/byte_alphabet.h"
#include "skein/bpe/unicode/invalid_utf8.h"
#include "skein/bpe/unicode/nfc.h"
#include "skein/data/learn/tokenizer_train.h"
#include "skein/data/tokenizer/folder/made.h"

namespace skein {
namespace {

constexpr int64_t kSampleBytes = int64_t{1} << 30;
constexpr int64_t kExcerptBytes = int64_t{1} << 20;  // longer documents are sampled in such parts

using Pattern = bpe::SplitPattern;

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return hash_name(text); }
};
using Counts = std::unordered_map<std::string, int64_t, TextHash, std::equal_to<>>;

void count_words(std::string_view text, const Pattern& pattern, Counts& counts) {
  pattern.with_end_of_word([&](auto end_of_word) {
    const char* const end = text.data() + text.size();
    for (const char* at = text.data(); at < end;) {
      const char* const behind = end_of_word(at, end);
      const std::string_view word(at, static_cast<size_t>(behind - at));
      const auto found = counts.find(word);
      if (found == counts.end()) {
        counts.emplace(word, 1);
      } else {
        ++found->second;
      }
      at = behind;
    }
  });
}

// In the order of their bytes, so that nothing depends on threads.
std::vector<bpe::CountedWord> count_words(const Corpus& corpus,
                                          const TrainTokenizerOptions& options) {
  struct ThreadCounts {
    std::vector<HeldText> excerpts;
    Counts counts;
  };
  const int num_threads = options.num_threads > 0 ? options.num_threads : num_cores();
  std::vector<ThreadCounts> parts(static_cast<size_t>(num_threads));
  size_t next = 0;
  int64_t num_bytes = 0;
  const int64_t sample_bytes = options.sample_bytes > 0 ? options.sample_bytes : kSampleBytes;
  sample_corpus(corpus, sample_bytes, kExcerptBytes, options.seed, [&](HeldText excerpt) {
    num_bytes += static_cast<int64_t>(excerpt.size());
    parts[next++ % parts.size()].excerpts.push_back(std::move(excerpt));
  });
  if (num_bytes == 0) {
    fail(ErrorCode::kInvalid, "{}: a sample of {} bytes holds no text", corpus.path().string(),
         sample_bytes);
  }
  const Pattern pattern(options.pattern);
  const bool is_composed = options.pattern == Pattern::Kind::kQwen2;
  if (options.on_progress) options.on_progress("counting words of", 0, num_bytes);
  parallel_for_each(parts, num_threads, [&](ThreadCounts& part) {
    std::string valid, composed;
    for (const HeldText& held : part.excerpts) {
      std::string_view excerpt = held;
      // Corpora of others may hold any bytes: they are counted as they would be encoded.
      if (utf8::valid_prefix(excerpt) < excerpt.size()) {
        excerpt = valid = utf8::replace_invalid(excerpt);
      }
      if (is_composed) excerpt = bpe::to_nfc(excerpt, composed, bpe::NfcOf::kUnicode9);
      count_words(excerpt, pattern, part.counts);
    }
  });
  Counts total = std::move(parts[0].counts);
  for (size_t i = 1; i < parts.size(); ++i) {
    for (auto& [word, count] : parts[i].counts) total[word] += count;
    Counts().swap(parts[i].counts);
  }
  std::vector<bpe::CountedWord> words;
  words.reserve(total.size());
  while (!total.empty()) {
    auto node = total.extract(total.begin());
    words.push_back({std::move(node.key()), node.mapped()});
  }
  std::sort(words.begin(), words.end(),
            [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  return words;
}

std::string learnt_json(const bpe::LearntMerges& learnt, const TrainTokenizerOptions& options) {
  OrderedJson added = OrderedJson::array(), merges = OrderedJson::array();
  OrderedJson::object_t vocabulary;  // push_back(): anything else looks through all of it first
  for (const std::string& text : options.special) {
    vocabulary.push_back({text, added.size()});
    added.push_back(internal::added_token_json<OrderedJson>(
        {.text = text, .id = static_cast<int32_t>(added.size()), .special = true}));
  }
  std::vector<std::string> spelled;
  for (const std::string& token : learnt.tokens) {
    spelled.push_back(bpe::to_byte_level(token));
    const std::string& text = spelled.back();
    if (std::find(options.special.begin(), options.special.end(), text) != options.special.end()) {
      fail(ErrorCode::kUsage, "--special {}: is a token of text as well: expected one such as {}",
           text, "<|endoftext|>");
    }
    vocabulary.push_back({text, options.special.size() + spelled.size() - 1});
  }
  for (const auto& merge : learnt.merges) {
    merges.push_back(
        {spelled[static_cast<size_t>(merge.left)], spelled[static_cast<size_t>(merge.right)]});
  }
  OrderedJson json =
      internal::tokenizer_json<OrderedJson>(std::move(vocabulary), std::move(merges), false);
  const bool is_gpt2 = options.pattern == Pattern::Kind::kGpt2;
  json["added_tokens"] = std::move(added);
  if (options.pattern == Pattern::Kind::kQwen2) json["normalizer"] = {{"type", "NFC"}};
  json["pre_tokenizer"] = internal::pre_tokenizer_json<OrderedJson>(
      is_gpt2 ? "" : std::string(Pattern::regular_expression(options.pattern)));
  return exact_json(json, "tokenizer.json", 1) + "\n";
}

void check_special(const std::vector<std::string>& special) {
  if (special.empty()) {
    fail(ErrorCode::kUsage, "--special: expected at least one token, which ends a document");
  }
  for (const std::string& text : special) {
    if (text.empty() || std::count(special.begin(), special.end(), text) > 1) {
      fail(ErrorCode::kUsage, "--special \"{}\": is empty, or named twice", text);
    }
    std::string bytes;
    if (bpe::from_byte_level(text, bytes) && bytes.size() < 2) {
      fail(ErrorCode::kUsage, "--special {}: is the token of a byte: expected one such as {}", text,
           "<|endoftext|>");
    }
  }
}

}  // namespace

std::map<std::string, std::string> train_byte_level(const Corpus& corpus, int vocab_size,
                                                    const TrainTokenizerOptions& options) {
  check_special(options.special);
  const std::vector<bpe::CountedWord> words = count_words(corpus, options);
  bpe::MergeOptions merging;
  merging.num_tokens = static_cast<size_t>(vocab_size) - options.special.size();
  merging.min_count = options.min_count;
  merging.on_progress = [&](size_t num_tokens) {
    if (options.on_progress) {
      options.on_progress("learning merges", static_cast<int64_t>(num_tokens), vocab_size);
    }
  };
  const bpe::LearntMerges learnt = bpe::learn_merges(words, merging);
  const size_t num_tokens = learnt.tokens.size() + options.special.size();
  if (num_tokens < static_cast<size_t>(vocab_size)) {
    fail(
        ErrorCode::kUsage,
        "--vocab-size {}: the text of {} gives {} tokens at most: expected no more than that, more "
        "text, or --min-count under {}",
        vocab_size, corpus.path().string(), num_tokens, options.min_count);
  }
  const OrderedJson config{{"tokenizer_class", "PreTrainedTokenizerFast"},
                           {"eos_token", options.special.front()},
                           {"clean_up_tokenization_spaces", false}};
  return {{"tokenizer.json", learnt_json(learnt, options)},
          {"tokenizer_config.json", exact_json(config, "tokenizer_config.json", 1) + "\n"}};
}

}  // namespace skein
