// Learns byte-level merges from words and how often they occur.
//
// Formula  as long as there are fewer than `num_tokens` tokens, the most frequent pair of
//          neighbours becomes a token, of equally frequent pairs the one with the lowest ids; it
//          ends where no pair is as frequent as `min_count`
// Ids      0 to 255 are the bytes in the order of GPT-2's alphabet (byte_alphabet_order()), then
//          the tokens in the order in which they were learnt
// Memory   about 20 bytes a byte of all different words together
// Cost     each merge looks at the words that hold its pair
// Threads  one; the result is a function of the words alone
// Source   Sennrich et al. 2016; merge by merge what `BpeTrainer` of Hugging Face's `tokenizers`
//          learns, which scripts/judge/train_merges.py compares
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace skein::bpe {

struct CountedWord {
  std::string bytes;
  int64_t count = 0;
};

struct LearntMerges {
  struct Merge {
    int32_t left = 0, right = 0, merged = 0;
  };
  std::vector<std::string> tokens;  // [id]: its bytes
  std::vector<Merge> merges;        // the first one merges first; no pair twice
};

struct MergeOptions {
  size_t num_tokens = 0;  // at least 256
  int64_t min_count = 2;
  std::function<void(size_t num_tokens)> on_progress;  // now and then
};

LearntMerges learn_merges(const std::vector<CountedWord>& words, const MergeOptions& options);

// The bytes in the order of the characters that GPT-2 spells them with.
std::array<uint8_t, 256> byte_alphabet_order();

}  // namespace skein::bpe
