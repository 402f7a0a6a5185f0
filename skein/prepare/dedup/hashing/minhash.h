// MinHash signatures of sets of word n-grams, and the bands by which near duplicates meet.
//
// Formula  an n-gram of words w_1 … w_n is x = mix64(Σ w_i M^(n-i) mod 2^64), where
//          M = 0x9e3779b97f4a7c15 and mix64 is the finalizer of MurmurHash3; a text of fewer words
//          is one n-gram of all of them.
//          With x = 2^32 x1 + x0 and odd a_i, odd c_i and b_i drawn from the seed by SplitMix64, in
//          32-bit arithmetic:
//            y_i(x) = a_i x0 + b_i,   h_i(x) = c_i ((y_i ^ y_i >> 15) ^ x1),
//            signature[i] = min over the n-grams of the text of h_i.
//          Two texts agree at i with a probability of their Jaccard similarity J, but for ties of
//          different n-grams: less than n-grams / 2^32 of it.
//          Band k is signature[k rows … (k+1) rows); its key is xxh3-64 of k and these 32-bit
//          numbers. Two texts share a key with probability 1 - (1 - J^rows)^bands.
// Cost     per n-gram and hash two multiplications of 32 bits, by vectors of 4 to 16 lanes
// Memory   16 KiB and the signature
// Threads  one at a time; each has a MinHasher of its own
// Source   Broder, "On the resemblance and containment of documents", 1997; bands: Indyk, Motwani
//          1998; 14 bands of 8 rows over 5-grams: FineWeb (Penedo et al., 2024)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace skein {

// Hashes of the n-grams of a sequence of words, as it is read.
class NgramHasher {
 public:
  explicit NgramHasher(int num_words);
  void begin();
  // The hash of the last n words, from the n-th on.
  std::optional<uint64_t> push(uint64_t word);
  // The hash of all words, where there were some, but fewer than n.
  std::optional<uint64_t> short_text() const;
  int64_t num_words() const { return num_pushed_; }

 private:
  std::vector<uint64_t> window_;  // a ring of the last n words
  uint64_t power_ = 1;            // M^n
  uint64_t sum_ = 0;
  size_t at_ = 0;
  int64_t num_pushed_ = 0;
};

struct MinHashOptions {
  int num_words = 5;  // of an n-gram
  int num_bands = 14;
  int num_rows = 8;
  uint64_t seed = 1;
};

// The probability that two texts of Jaccard similarity `similarity` share a key.
double meeting_probability(const MinHashOptions& options, double similarity);

class MinHasher {
 public:
  explicit MinHasher(const MinHashOptions& options);
  void begin();
  void add(uint64_t ngram) {
    pending_.push_back(ngram);
    if (pending_.size() == kPending) flush();
  }
  // Of the n-grams since begin(), at least one; num_bands * num_rows numbers.
  std::span<const uint32_t> signature();
  // Appends the keys of the signature's bands.
  void append_keys(std::vector<uint64_t>& keys);

 private:
  static constexpr size_t kPending = 1024;
  void flush();

  MinHashOptions options_;
  size_t num_hashes_;
  std::vector<uint32_t> a_, b_, c_;  // padded to whole vectors
  std::vector<uint32_t> minima_;
  std::vector<uint64_t> pending_;
};

}  // namespace skein
