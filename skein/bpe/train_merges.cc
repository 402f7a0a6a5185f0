#include "skein/bpe/train_merges.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "skein/bpe/unicode/byte_alphabet.h"

namespace skein::bpe {
namespace {

uint64_t pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
}

struct PairHash {
  size_t operator()(uint64_t pair) const {
    pair *= 0x9e3779b97f4a7c15;
    return pair ^ pair >> 32;
  }
};

using Places = std::vector<uint32_t>;  // of words, rising

// A pair that may become a token, with the words that it was in when it was put in line.
struct PairCandidate {
  uint64_t pair = 0;
  int64_t count = 0;
  Places places;
};

struct IsBehind {
  bool operator()(const PairCandidate& a, const PairCandidate& b) const {
    return a.count != b.count ? a.count < b.count : a.pair > b.pair;
  }
};

class Learner {
 public:
  Learner(const std::vector<CountedWord>& words, const MergeOptions& options) : options_(options) {
    std::array<int32_t, 256> id_of{};
    const std::array<uint8_t, 256> order = byte_alphabet_order();
    for (size_t i = 0; i < order.size(); ++i) {
      id_of[order[i]] = static_cast<int32_t>(i);
      add_token(std::string(1, static_cast<char>(order[i])));
    }
    for (const CountedWord& word : words) {
      begins_.push_back(symbols_.size());
      for (const char byte : word.bytes) symbols_.push_back(id_of[static_cast<uint8_t>(byte)]);
      sizes_.push_back(static_cast<uint32_t>(word.bytes.size()));
      counts_.push_back(word.count);
    }
    count_pairs();
  }

  LearntMerges learn() {
    while (learnt_.tokens.size() < options_.num_tokens && !queue_.empty()) {
      PairCandidate top = take_top();
      const int64_t count = pair_counts_[top.pair];
      if (top.count != count) {  // other merges have taken some of them away, or brought some
        top.count = count;
        queue_.push(std::move(top));
        continue;
      }
      if (count < std::max<int64_t>(1, options_.min_count)) break;
      merge(top);
      constexpr size_t kTellEvery = 256;
      if (options_.on_progress && learnt_.merges.size() % kTellEvery == 0) {
        options_.on_progress(learnt_.tokens.size());
      }
    }
    return std::move(learnt_);
  }

 private:
  PairCandidate take_top() {
    PairCandidate top = std::move(const_cast<PairCandidate&>(queue_.top()));
    queue_.pop();
    return top;
  }

  int32_t add_token(const std::string& bytes) {
    const auto [entry, is_new] =
        token_ids_.emplace(bytes, static_cast<int32_t>(learnt_.tokens.size()));
    if (is_new) learnt_.tokens.push_back(bytes);
    return entry->second;
  }

  void count_pairs() {
    for (uint32_t word = 0; word < sizes_.size(); ++word) {
      const int32_t* const symbols = &symbols_[begins_[word]];
      for (uint32_t i = 0; i + 1 < sizes_[word]; ++i) {
        note(pair_of(symbols[i], symbols[i + 1]), counts_[word], word);
      }
    }
    put_in_line();
  }

  void note(uint64_t pair, int64_t count, uint32_t word) {
    pair_counts_[pair] += count;
    Places& places = new_places_[pair];
    if (places.empty() || places.back() != word) places.push_back(word);
  }

  void put_in_line() {
    for (auto& [pair, places] : new_places_) {
      const int64_t count = pair_counts_[pair];
      if (count > 0) queue_.push({pair, count, std::move(places)});
    }
    new_places_.clear();
  }

  // Two ways to the same bytes are one token. A pair may stand in line more than once, each time
  // with other words: then it is merged more than once, of which the last place among all counts.
  void merge(const PairCandidate& candidate) {
    const auto left = static_cast<int32_t>(candidate.pair >> 32);
    const auto right = static_cast<int32_t>(candidate.pair & UINT32_MAX);
    const int32_t merged = add_token(learnt_.tokens[static_cast<size_t>(left)] +
                                     learnt_.tokens[static_cast<size_t>(right)]);
    const auto [place, is_new] = merge_places_.emplace(candidate.pair, learnt_.merges.size());
    if (!is_new) {
      learnt_.merges[place->second].merged = kRemoved;
      place->second = learnt_.merges.size();
    }
    learnt_.merges.push_back({left, right, merged});
    for (const uint32_t word : candidate.places) merge_in(word, left, right, merged);
    put_in_line();
  }

  void merge_in(uint32_t word, int32_t left, int32_t right, int32_t merged) {
    int32_t* const symbols = &symbols_[begins_[word]];
    const uint32_t size = sizes_[word];
    const int64_t count = counts_[word];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < size; ++i, ++kept) {
      symbols[kept] = symbols[i];
      if (symbols[i] != left || i + 1 == size || symbols[i + 1] != right) continue;
      symbols[kept] = merged;
      if (kept > 0) {
        pair_counts_[pair_of(symbols[kept - 1], left)] -= count;
        note(pair_of(symbols[kept - 1], merged), count, word);
      }
      ++i;
      if (i + 1 < size) {
        pair_counts_[pair_of(right, symbols[i + 1])] -= count;
        note(pair_of(merged, symbols[i + 1]), count, word);
      }
    }
    sizes_[word] = kept;
  }

  static constexpr int32_t kRemoved = -1;

  const MergeOptions& options_;
  LearntMerges learnt_;
  std::unordered_map<std::string, int32_t> token_ids_;
  std::vector<int32_t> symbols_;  // of all words, one after another
  std::vector<size_t> begins_;
  std::vector<uint32_t> sizes_;
  std::vector<int64_t> counts_;
  std::unordered_map<uint64_t, int64_t, PairHash> pair_counts_;
  std::unordered_map<uint64_t, Places, PairHash> new_places_;
  std::unordered_map<uint64_t, size_t> merge_places_;
  std::priority_queue<PairCandidate, std::vector<PairCandidate>, IsBehind> queue_;

 public:
  static bool is_removed(const LearntMerges::Merge& merge) { return merge.merged == kRemoved; }
};

}  // namespace

LearntMerges learn_merges(const std::vector<CountedWord>& words, const MergeOptions& options) {
  LearntMerges learnt = Learner(words, options).learn();
  std::erase_if(learnt.merges, Learner::is_removed);
  return learnt;
}

std::array<uint8_t, 256> byte_alphabet_order() {
  const std::array<char32_t, 256>& spelled = byte_alphabet();
  std::array<uint8_t, 256> order{};
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint8_t>(i);
  std::sort(order.begin(), order.end(),
            [&](uint8_t a, uint8_t b) { return spelled[a] < spelled[b]; });
  return order;
}

}  // namespace skein::bpe
