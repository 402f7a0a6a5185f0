#include "skein/prepare/dedup/hashing/evaluation_sets.h"

#include <bit>
#include <span>

#include "skein/base/numbers/hash.h"
#include "skein/base/text/units.h"

namespace skein {

EvaluationSets::EvaluationSets(int num_words, int64_t memory_bytes)
    : num_words_(num_words),
      max_slots_(std::bit_floor(static_cast<size_t>(memory_bytes) / sizeof(NgramSlot))),
      slots_(1024),
      ngrams_(num_words) {}

std::vector<InputFile> EvaluationSets::add_set(const fs::path& path, ReadOptions read,
                                               bool skip_invalid_lines) {
  if (sets_.size() == kMaxSets) {
    fail(ErrorCode::kUsage, "--against {}: the {}th evaluation set; expected at most {}",
         path.string(), kMaxSets + 1, kMaxSets);
  }
  std::vector<InputFile> files = find_inputs({path}).files;
  if (files.empty()) {
    fail(ErrorCode::kUsage, "--against {}: a folder without files: expected those of a set",
         path.string());
  }
  sets_.push_back({path.string()});
  if (skip_invalid_lines) {
    read.on_invalid_line = [this](const Error&) { ++sets_.back().num_invalid_lines; };
  }
  const auto add = [&](std::string_view text, int64_t) { add_example(sets_.size() - 1, text); };
  for (const InputFile& file : files) {
    try {
      read_documents(file.path, read, add);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("--against {}: {}; --against-column names the key or "
                                            "column of sets",
                                            path.string(), error.what()));
    }
  }
  return files;
}

void EvaluationSets::add_example(size_t set, std::string_view text) {
  if (sets_.size() <= set) sets_.resize(set + 1);
  ngrams_.begin();
  words_.for_each(text, [&](uint64_t word) {
    const auto ngram = ngrams_.push(word);
    if (!ngram) return;
    NgramSlot& found = slot(*ngram);
    const bool is_new = found.sets == 0;
    found.ngram = *ngram;
    found.sets |= uint64_t{1} << set;
    if (is_new && ++num_used_ * 10 > slots_.size() * 7) grow();
  });
  ++sets_[set].num_examples;
  if (ngrams_.num_words() < num_words_) ++sets_[set].num_short_examples;
}

EvaluationSets::NgramSlot& EvaluationSets::slot(uint64_t ngram) {
  size_t at = ngram & (slots_.size() - 1);
  while (slots_[at].sets != 0 && slots_[at].ngram != ngram) at = (at + 1) & (slots_.size() - 1);
  return slots_[at];
}

uint64_t EvaluationSets::sets_with(uint64_t ngram) const {
  size_t at = ngram & (slots_.size() - 1);
  while (slots_[at].sets != 0 && slots_[at].ngram != ngram) at = (at + 1) & (slots_.size() - 1);
  return slots_[at].sets;
}

uint64_t EvaluationSets::digest() const {
  uint64_t sum = 0;
  for (const NgramSlot& entry : slots_) {
    if (entry.sets != 0) sum += xxh3_128(std::as_bytes(std::span(&entry, 1))).low;
  }
  return sum;
}

void EvaluationSets::grow() {
  if (slots_.size() * 3 > max_slots_) {  // the old table and one twice as large
    fail(ErrorCode::kUsage,
         "--memory is too small for the evaluation sets: {} n-grams so far; expected several times "
         "as much, or fewer sets at once",
         format_count(static_cast<double>(num_used_)));
  }
  std::vector<NgramSlot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const NgramSlot& entry : old) {
    if (entry.sets != 0) slot(entry.ngram) = entry;
  }
}

}  // namespace skein
