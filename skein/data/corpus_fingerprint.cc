#include "skein/data/corpus_fingerprint.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "skein/base/hash.h"

namespace skein {
namespace {

static_assert(std::endian::native == std::endian::little, "lengths are hashed as little-endian");

// Hashes the lengths of all documents, some thousand at a time.
class LengthHash {
 public:
  void add(int64_t length) {
    pending_[count_++] = length;
    if (count_ == pending_.size()) flush();
  }
  void flush() {
    hash_.update(std::as_bytes(std::span(pending_).first(count_)));
    count_ = 0;
  }
  void update(std::string_view text) { hash_.update(std::as_bytes(std::span(text))); }
  std::string hex() const { return hash_.hex(); }

 private:
  Xxh3Stream hash_;
  std::array<int64_t, 1024> pending_{};
  size_t count_ = 0;
};

}  // namespace

CorpusFingerprint corpus_fingerprint(const DocumentSource& source) {
  CorpusFingerprint found;
  LengthHash hash;
  found.documents = source.num_documents();
  for (int64_t i = 0; i < found.documents; ++i) {
    const auto length = static_cast<int64_t>(source.document(i).size());
    hash.add(length);
    found.bytes += length;
  }
  hash.flush();

  // The last window ends at the end of the text.
  constexpr int64_t kWindow = CorpusFingerprint::kWindowBytes;
  const int64_t count = CorpusFingerprint::kWindows;
  const bool whole = found.bytes <= count * kWindow;
  const auto begin_of = [&](int64_t window) {
    return whole ? window * kWindow
                 : static_cast<int64_t>(static_cast<__int128>(found.bytes - kWindow) * window /
                                        (count - 1));
  };
  int64_t window = 0, position = 0;
  for (int64_t i = 0; i < found.documents && window < count; ++i) {
    const std::string_view text = source.document(i);
    const int64_t end = position + static_cast<int64_t>(text.size());
    while (window < count && begin_of(window) < end) {
      const int64_t first = std::max(begin_of(window), position);
      const int64_t last = std::min(begin_of(window) + kWindow, end);
      if (first < last) {
        const std::string_view part = text.substr(first - position, last - first);
        hash.update(part);
        source.forget(part);
      }
      if (begin_of(window) + kWindow > end) break;  // the window continues in the next document
      ++window;
    }
    position = end;
  }
  source.forget_all();
  found.xxh3_128 = hash.hex();
  return found;
}

Json to_json(const CorpusFingerprint& fingerprint) {
  return {{"documents", fingerprint.documents},
          {"bytes", fingerprint.bytes},
          {"xxh3_128", fingerprint.xxh3_128}};
}

}  // namespace skein
