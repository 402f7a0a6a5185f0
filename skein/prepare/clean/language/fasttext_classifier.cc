#include "skein/prepare/clean/language/fasttext_classifier.h"

#include <fasttext/loss.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "skein/base/machine/prefetch.h"
#include "skein/base/text/utf8.h"
#include "skein/prepare/clean/language/fasttext_file.h"

namespace skein {
namespace {

// fastText has no accessors for these; a derived class may name its base's protected members.
struct OpenModel : fasttext::Model {
  static constexpr auto kLoss = &OpenModel::loss_;
};
struct OpenDictionary : fasttext::Dictionary {
  static constexpr auto kNumKept = &OpenDictionary::pruneidx_size_;
  static constexpr auto kKept = &OpenDictionary::pruneidx_;
};

// One more byte of FNV-1a, which fastText feeds signed chars.
uint32_t add_to_hash(uint32_t hash, char c) {
  return (hash ^ static_cast<uint32_t>(static_cast<int8_t>(c))) * 16777619;
}
constexpr uint32_t kHashOfNothing = 2166136261;
constexpr size_t kNgramBytes = size_t{1} << 12;  // of a word, between two calls of `take`

}  // namespace

FastTextClassifier::FastTextClassifier(const fs::path& path) {
  load(path);
  check(dict_->isPruned() ? read_pruning() : args_->bucket);
  may_be_known_.resize(std::bit_ceil(16 * static_cast<size_t>(dict_->nwords() + num_labels())));
  for (int32_t i = 0; i < dict_->nwords() + num_labels(); ++i) {
    may_be_known_[dict_->hash(dict_->getWord(i)) % may_be_known_.size()] = true;
  }
  if (quant_) decode_input();
  rows_ = quant_ ? decoded_.data() : getInputMatrix()->data();
  loss_ = (model_.get()->*OpenModel::kLoss).get();
}

void FastTextClassifier::load(const fs::path& path) {
  check_fasttext_file(MappedFile(path).bytes());
  std::ifstream in(path, std::ios::binary);
  // fastText looks at no read's success, and reads on for ever in a file that was cut.
  in.exceptions(std::ios::failbit | std::ios::badbit | std::ios::eofbit);
  try {
    if (!checkModel(in)) throw std::invalid_argument("it does not begin as a model does");
    loadModel(in);
  } catch (const std::ios_base::failure&) {
    throw std::invalid_argument("it was changed while it was read");
  }
}

int64_t FastTextClassifier::read_pruning() {
  std::vector<std::pair<int32_t, int32_t>> kept;
  if (dict_.get()->*OpenDictionary::kNumKept > 0) {
    const auto& found = dict_.get()->*OpenDictionary::kKept;
    kept.assign(found.begin(), found.end());
  }
  std::sort(kept.begin(), kept.end());
  buckets_.resize(std::max(args_->bucket, 0) / 32 + 1);
  int64_t num_rows = 0;
  for (const auto& [bucket, row] : kept) {
    if (bucket < 0 || bucket >= args_->bucket || row < 0 || row > INT32_MAX - dict_->nwords()) {
      throw std::invalid_argument("it has n-grams beyond its buckets or rows");
    }
    buckets_[bucket / 32].are_kept |= 1u << bucket % 32;
    kept_rows_.push_back(dict_->nwords() + row);
    num_rows = std::max(num_rows, int64_t{row} + 1);
  }
  kept_rows_.push_back(0);  // read, and not counted, for buckets behind the last that was kept
  uint32_t num_before = 0;
  for (Buckets& each : buckets_) {
    each.num_kept_before = num_before;
    num_before += std::popcount(each.are_kept);
  }
  return num_rows;
}

void FastTextClassifier::check(int64_t num_bucket_rows) const {
  if (dim() != args_->dim || output_->size(1) != args_->dim || output_->size(0) != num_labels()) {
    throw std::invalid_argument("its matrices are of other sizes than it says");
  }
  const bool has_ngrams = args_->maxn > 0 || has_word_ngrams();
  if (has_ngrams && args_->bucket <= 0) {  // of words: those of characters were looked for
    throw std::invalid_argument("it has n-grams and no buckets for them");
  }
  if (dict_->nwords() + (has_ngrams ? num_bucket_rows : 0) > input_->size(0)) {
    throw std::invalid_argument("it has fewer rows than words and n-grams");
  }
}

void FastTextClassifier::decode_input() {
  decoded_.resize(input_->size(0) * dim());
  fasttext::Vector row(dim());
  for (int64_t i = 0; i < input_->size(0); ++i) {
    row.zero();
    row.addRow(*input_, i);
    std::copy_n(row.data(), dim(), &decoded_[i * dim()]);
  }
}

// Those that begin in [first_byte, last_byte) of a word between its marks.
void FastTextClassifier::append_ngrams(std::string_view text, size_t first_byte, size_t last_byte,
                                       std::vector<int32_t>& rows) const {
  const auto num_buckets = static_cast<uint32_t>(args_->bucket);
  const bool is_pruned = !buckets_.empty();
  const size_t first = rows.size();
  const auto max_n = static_cast<size_t>(std::max(args_->maxn, 0));
  rows.resize(first + (last_byte - first_byte) * std::min(max_n, text.size()));
  int32_t* to = rows.data() + first;
  for (size_t begin = first_byte; begin < last_byte; ++begin) {
    if (utf8::is_continuation(text[begin])) continue;
    uint32_t hash = kHashOfNothing;
    size_t end = begin;
    for (int n = 1; n <= args_->maxn && end < text.size(); ++n) {
      do {
        hash = add_to_hash(hash, text[end++]);
      } while (end < text.size() && utf8::is_continuation(text[end]));
      const bool is_boundary = n == 1 && (begin == 0 || end == text.size());
      if (n < args_->minn || is_boundary) continue;
      const uint32_t bucket = hash % num_buckets;
      if (is_pruned) prefetch(&buckets_[bucket / 32]);
      *to++ = static_cast<int32_t>(bucket);
    }
  }
  to = replace_buckets(rows.data() + first, to);
  rows.resize(to - rows.data());
}

int32_t* FastTextClassifier::replace_buckets(int32_t* begin, int32_t* end) const {
  if (buckets_.empty()) {
    for (int32_t* each = begin; each < end; ++each) *each += dict_->nwords();
    return end;
  }
  // Whether one was kept cannot be predicted: its row is written, and then maybe not counted.
  int32_t* to = begin;
  for (const int32_t* each = begin; each < end; ++each) {
    const auto bucket = static_cast<uint32_t>(*each);
    const Buckets& those = buckets_[bucket / 32];
    const uint32_t from_it = those.are_kept >> bucket % 32;
    const uint32_t before_it = those.are_kept ^ from_it << bucket % 32;
    *to = kept_rows_[those.num_kept_before + std::popcount(before_it)];
    to += from_it & 1;
  }
  return to;
}

void FastTextClassifier::append_rows(std::string_view word, std::vector<int32_t>& rows,
                                     const std::function<void()>& take) const {
  const std::string copy(word);
  const uint32_t hash = dict_->hash(copy);
  const int32_t id = may_be_known_[hash % may_be_known_.size()] ? dict_->getId(copy, hash) : -1;
  if (id < 0) {
    const bool is_label = word.starts_with(args_->label);
    if (is_label || copy == fasttext::Dictionary::EOS) return;
    const std::string text = fasttext::Dictionary::BOW + copy + fasttext::Dictionary::EOW;
    for (size_t begin = 0; begin < text.size(); begin += kNgramBytes) {
      if (begin > 0 && take) take();
      append_ngrams(text, begin, std::min(begin + kNgramBytes, text.size()), rows);
    }
  } else if (dict_->getType(id) == fasttext::entry_type::word) {
    if (args_->maxn <= 0) {
      rows.push_back(id);
    } else {
      const std::vector<int32_t>& subwords = dict_->getSubwords(id);
      rows.insert(rows.end(), subwords.begin(), subwords.end());
    }
  }
}

std::vector<int32_t> FastTextClassifier::rows_of_line(const std::string& line) const {
  std::istringstream stream(line);
  std::vector<int32_t> rows, labels;
  dict_->getLine(stream, rows, labels);
  return rows;
}

void FastTextClassifier::predict(float threshold, fasttext::Model::State& state,
                                 fasttext::Predictions& predictions) const {
  predictions.clear();
  predictions.reserve(num_labels() + 1);
  loss_->predict(num_labels(), threshold, predictions, state);
}

}  // namespace skein
