#include "skein/prepare/dedup/hashing/minhash.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "skein/base/numbers/hash.h"
#include "skein/prepare/dedup/hashing/minhash_simd.h"

namespace skein {
namespace {

constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;

uint64_t mix64(uint64_t x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
  return x ^ x >> 33;
}

uint64_t split_mix(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

}  // namespace

NgramHasher::NgramHasher(int num_words) : window_(static_cast<size_t>(num_words)) {
  for (int i = 0; i < num_words; ++i) power_ *= kMultiplier;
  begin();
}

void NgramHasher::begin() {
  std::fill(window_.begin(), window_.end(), 0);
  sum_ = 0;
  at_ = 0;
  num_pushed_ = 0;
}

std::optional<uint64_t> NgramHasher::push(uint64_t word) {
  sum_ = sum_ * kMultiplier + word - window_[at_] * power_;
  window_[at_] = word;
  at_ = at_ + 1 == window_.size() ? 0 : at_ + 1;
  if (++num_pushed_ < static_cast<int64_t>(window_.size())) return std::nullopt;
  return mix64(sum_);
}

std::optional<uint64_t> NgramHasher::short_text() const {
  if (num_pushed_ == 0 || num_pushed_ >= static_cast<int64_t>(window_.size())) return std::nullopt;
  return mix64(sum_);
}

double meeting_probability(const MinHashOptions& options, double similarity) {
  return 1 - std::pow(1 - std::pow(similarity, options.num_rows), options.num_bands);
}

MinHasher::MinHasher(const MinHashOptions& options)
    : options_(options),
      num_hashes_(static_cast<size_t>(options.num_bands) * static_cast<size_t>(options.num_rows)) {
  const size_t padded = (num_hashes_ + kMinHashPadding - 1) / kMinHashPadding * kMinHashPadding;
  uint64_t state = options.seed;
  for (size_t i = 0; i < padded; ++i) {
    const uint64_t ac = split_mix(state), b = split_mix(state);
    a_.push_back(static_cast<uint32_t>(ac) | 1);
    c_.push_back(static_cast<uint32_t>(ac >> 32) | 1);
    b_.push_back(static_cast<uint32_t>(b));
  }
  minima_.resize(padded);
  pending_.reserve(kPending);
  begin();
}

void MinHasher::begin() {
  std::fill(minima_.begin(), minima_.end(), UINT32_MAX);
  pending_.clear();
}

void MinHasher::flush() {
  take_minima(pending_, {a_.data(), b_.data(), c_.data()}, minima_);
  pending_.clear();
}

std::span<const uint32_t> MinHasher::signature() {
  flush();
  return {minima_.data(), num_hashes_};
}

void MinHasher::append_keys(std::vector<uint64_t>& keys) {
  const std::span<const uint32_t> numbers = signature();
  const auto num_rows = static_cast<size_t>(options_.num_rows);
  std::vector<uint32_t> row(num_rows + 1);
  for (size_t band = 0; band * num_rows < num_hashes_; ++band) {
    row[0] = static_cast<uint32_t>(band);
    std::memcpy(&row[1], &numbers[band * num_rows], num_rows * sizeof(uint32_t));
    keys.push_back(hash_name({reinterpret_cast<const char*>(row.data()), row.size() * 4}));
  }
}

}  // namespace skein
