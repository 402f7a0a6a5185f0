#include "skein/data/lanes/corpus_fingerprint.h"

#include <algorithm>
#include <array>
#include <bit>

#include "skein/base/numbers/hash.h"

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

// Where window `index` of kWindows begins, if each takes `size` of `all`: the last ends at the end.
int64_t window_begin(int64_t index, int64_t size, int64_t all) {
  return static_cast<int64_t>(static_cast<__int128>(all - size) * index /
                              (CorpusFingerprint::kWindows - 1));
}

// All documents, or, of more than `most`, those of the windows.
template <typename Visit>
void for_documents(int64_t count, int64_t most, Visit visit) {
  const auto add = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) visit(i);
  };
  if (count <= most) return add(0, count);
  for (int64_t window = 0; window < CorpusFingerprint::kWindows; ++window) {
    const int64_t begin = window_begin(window, CorpusFingerprint::kWindowLengths, count);
    add(begin, begin + CorpusFingerprint::kWindowLengths);
  }
}

std::string hash_of_spans(const DocumentSource& source) {
  LengthHash hash;
  for_documents(source.num_documents(), CorpusFingerprint::kAllSpans, [&](int64_t document) {
    std::vector<ByteRange> spans = source.loss_spans(document);
    std::erase_if(spans, [](const ByteRange& span) { return span.size() <= 0; });
    hash.add(static_cast<int64_t>(spans.size()));
    for (const ByteRange& span : spans) {
      hash.add(span.begin);
      hash.add(span.end);
    }
  });
  hash.flush();
  return hash.hex();
}

void add_text(const DocumentSource& source, LengthHash& hash) {
  constexpr int64_t kWindow = CorpusFingerprint::kWindowBytes;
  const int64_t num_bytes = source.num_bytes();
  const bool whole = num_bytes <= CorpusFingerprint::kWindows * kWindow;
  const auto begin_of = [&](int64_t window) {
    return whole ? window * kWindow : window_begin(window, kWindow, num_bytes);
  };
  for (int64_t window = 0; window < CorpusFingerprint::kWindows; ++window) {
    source.read_ahead({begin_of(window), begin_of(window) + kWindow});
  }
  for (int64_t window = 0; window < CorpusFingerprint::kWindows; ++window) {
    int64_t position = begin_of(window);
    const int64_t end = std::min(position + kWindow, num_bytes);
    if (position >= end) break;
    DocumentPlace at = source.find(position);
    for (; position < end; ++at.document) {
      const HeldText part = source.part(at.document, position - at.begin, end - position);
      hash.update(part);
      source.forget(part);
      at.begin += source.document_bytes(at.document);
      position += static_cast<int64_t>(part.size());
    }
  }
}

}  // namespace

CorpusFingerprint corpus_fingerprint(const DocumentSource& source, bool reads_spans) {
  CorpusFingerprint found;
  found.documents = source.num_documents();
  found.bytes = source.num_bytes();
  LengthHash hash;
  for_documents(found.documents, CorpusFingerprint::kAllLengths,
                [&](int64_t document) { hash.add(source.document_bytes(document)); });
  hash.flush();
  add_text(source, hash);
  if (reads_spans) found.spans_xxh3_128 = hash_of_spans(source);
  source.forget_all();
  found.xxh3_128 = hash.hex();
  return found;
}

Json to_json(const CorpusFingerprint& fingerprint) {
  Json json = {{"documents", fingerprint.documents},
               {"bytes", fingerprint.bytes},
               {"xxh3_128", fingerprint.xxh3_128}};
  if (!fingerprint.spans_xxh3_128.empty()) {
    json["loss_spans_xxh3_128"] = fingerprint.spans_xxh3_128;
  }
  return json;
}

}  // namespace skein
