#include "skein/prepare/clean/language/fasttext_file.h"

#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace skein {
namespace {

constexpr int32_t kMagic = 793712314, kNewestVersion = 12;
constexpr int32_t kSupervised = 3, kLosses = 4;   // the numbers of models and losses
constexpr int32_t kMostBuckets = 1 << 28;         // its own default is 2,000,000
constexpr int32_t kMostNgram = 256;               // of characters, and of words
constexpr size_t kMostWordBytes = 4096;           // it reads words of a line of 1,024
constexpr int64_t kMostCount = int64_t{1} << 48;  // its tree of labels has 10^15 for infinity
constexpr int64_t kCentroids = 256;               // of each part of a row, told by a byte

[[noreturn]] void refuse(const char* why) { throw std::invalid_argument(why); }

class ModelReader {
 public:
  explicit ModelReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  T next() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  // So many elements of so many bytes.
  void skip(int64_t count, int64_t bytes) {
    if (count < 0 || count > static_cast<int64_t>(rest_.size()) / bytes) refuse(kShort);
    take(static_cast<size_t>(count * bytes));
  }
  // Up to a zero, which is passed, too.
  size_t skip_word() {
    const void* const end = std::memchr(rest_.data(), 0, rest_.size());
    if (end == nullptr) refuse(kShort);
    const auto size = static_cast<size_t>(static_cast<const std::byte*>(end) - rest_.data());
    take(size + 1);
    return size;
  }

 private:
  static constexpr const char* kShort = "it ends early, or cannot be read";
  std::span<const std::byte> take(size_t size) {
    if (size > rest_.size()) refuse(kShort);
    const auto taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  std::span<const std::byte> rest_;
};

void check_options(ModelReader& in) {
  if (in.next<int32_t>() != kMagic || in.next<int32_t>() > kNewestVersion) {
    refuse("it does not begin as a model does");
  }
  in.skip(5, sizeof(int32_t));  // dim, ws, epoch, minCount, neg
  const auto word_ngrams = in.next<int32_t>();
  const auto loss = in.next<int32_t>(), model = in.next<int32_t>(), buckets = in.next<int32_t>();
  const auto shortest = in.next<int32_t>(), longest = in.next<int32_t>();
  in.skip(1, sizeof(int32_t) + sizeof(double));  // lrUpdateRate, t
  if (model != kSupervised) refuse("it holds vectors of words, and tells no labels");
  if (loss < 1 || loss > kLosses) refuse("its loss is none that there is");
  if (buckets < 0 || buckets > kMostBuckets)
    refuse("its number of buckets is negative or too large");
  if (longest < 0 || longest > kMostNgram || shortest < 0) {
    refuse("its n-grams have sizes that are negative or too large");
  }
  if (word_ngrams < 0 || word_ngrams > kMostNgram) refuse("its n-grams of words are too long");
  if (longest > 0 && buckets == 0) refuse("it has n-grams and no buckets for them");
}

void check_dictionary(ModelReader& in) {
  const auto entries = in.next<int32_t>(), words = in.next<int32_t>(), labels = in.next<int32_t>();
  in.skip(1, sizeof(int64_t));  // ntokens
  const auto kept = in.next<int64_t>();
  if (words < 0 || labels < 1 || int64_t{words} + labels != entries) {
    refuse("its words and labels are not as many as it says");
  }
  for (int32_t i = 0; i < entries; ++i) {
    if (in.skip_word() > kMostWordBytes) refuse("it has a word that no text can have");
    const auto count = in.next<int64_t>();
    if (count < 0 || count > kMostCount) refuse("the count of a word is negative or too large");
    if (in.next<int8_t>() != (i < words ? 0 : 1)) refuse("its words do not come before its labels");
  }
  if (kept > 0) in.skip(kept, 2 * sizeof(int32_t));
}

void check_plain_matrix(ModelReader& in) {
  const auto rows = in.next<int64_t>(), cols = in.next<int64_t>();
  if (rows < 1 || cols < 1 || cols > INT32_MAX) refuse("a matrix has no rows or columns");
  in.skip(rows, cols * static_cast<int64_t>(sizeof(float)));
}

// Of rows of `cols` numbers; returns how many bytes name one.
int32_t check_quantizer(ModelReader& in, int64_t cols) {
  const auto dim = in.next<int32_t>(), parts = in.next<int32_t>();
  const auto size = in.next<int32_t>(), last_size = in.next<int32_t>();
  if (parts < 1 || size < 1 || last_size < 1 || last_size > size || dim != cols ||
      (int64_t{parts} - 1) * size + last_size != dim) {
    refuse("a matrix is divided into other parts than it has columns");
  }
  in.skip(dim, kCentroids * static_cast<int64_t>(sizeof(float)));
  return parts;
}

void check_quantized_matrix(ModelReader& in) {
  const bool has_norms = in.next<uint8_t>() != 0;
  const auto rows = in.next<int64_t>(), cols = in.next<int64_t>();
  const auto codes = in.next<int32_t>();
  if (rows < 1 || cols < 1 || cols > INT32_MAX) refuse("a matrix has no rows or columns");
  in.skip(codes, 1);
  if (rows > INT32_MAX || rows * check_quantizer(in, cols) != codes) {
    refuse("a matrix has other codes than rows");
  }
  if (!has_norms) return;
  in.skip(rows, 1);
  check_quantizer(in, 1);
}

}  // namespace

void check_fasttext_file(std::span<const std::byte> bytes) {
  ModelReader in(bytes);
  check_options(in);
  check_dictionary(in);
  const bool is_quantized = in.next<uint8_t>() != 0;
  is_quantized ? check_quantized_matrix(in) : check_plain_matrix(in);
  const bool is_output_quantized = in.next<uint8_t>() != 0;
  is_quantized&& is_output_quantized ? check_quantized_matrix(in) : check_plain_matrix(in);
}

}  // namespace skein
