#include "skein/data/corpus.h"

#include <arrow/memory_pool.h>

#include <algorithm>

#include "skein/base/error.h"
#include "skein/data/text_column.h"

namespace skein {
namespace {

// The most that compressed buffers may take when decoded; larger files have to be rewritten.
constexpr int64_t kDecodedBytesLimit = int64_t{64} << 20;

// A page fault maps the pages around it: this many bytes, or a large page of the file cache.
constexpr uintptr_t kForgetEveryBytes = uintptr_t{64} << 10;
constexpr uintptr_t kForgetBytes = uintptr_t{2} << 20;

}  // namespace

struct Corpus::Chunk {
  TextColumn column;
  int64_t first_document;
};

Corpus::Corpus() = default;
Corpus::Corpus(Corpus&&) noexcept = default;
Corpus& Corpus::operator=(Corpus&&) noexcept = default;
Corpus::~Corpus() = default;

Corpus::Corpus(const fs::path& path) : path_(path), file_(path) { open(file_.bytes()); }

Corpus Corpus::from_bytes(std::span<const std::byte> bytes, const fs::path& name) {
  Corpus corpus;
  corpus.path_ = name;
  corpus.open(bytes);
  return corpus;
}

void Corpus::open(std::span<const std::byte> bytes) {
  const auto pool =
      std::make_shared<arrow::CappedMemoryPool>(arrow::default_memory_pool(), kDecodedBytesLimit);
  memory_ = pool;
  for_each_text_column(bytes, path_, "text", pool.get(), [&](TextColumn column) {
    const int64_t count = column.num_documents();
    num_bytes_ += column.num_bytes();
    if (count > 0) chunks_.push_back({std::move(column), num_documents_});
    num_documents_ += count;
  });
}

void Corpus::forget(std::string_view text) const {
  const auto map = reinterpret_cast<uintptr_t>(file_.bytes().data());
  const auto data = reinterpret_cast<uintptr_t>(text.data());
  if (data < map || data >= map + file_.bytes().size()) return;  // decoded, so not in the map
  const uintptr_t begin = std::max(map, data / kForgetBytes * kForgetBytes);
  const uintptr_t end = data + text.size();
  if (data / kForgetEveryBytes == end / kForgetEveryBytes) return;
  file_.forget(file_.bytes().subspan(begin - map, end - begin));
}

std::string_view Corpus::document(int64_t index) const {
  if (index < 0 || index >= num_documents_) {
    fail(ErrorCode::kInternal, "{}: document {} asked for: there are {}", path_.string(), index,
         num_documents_);
  }
  const auto next =
      std::upper_bound(chunks_.begin(), chunks_.end(), index,
                       [](int64_t i, const Chunk& chunk) { return i < chunk.first_document; });
  const Chunk& chunk = *std::prev(next);
  return chunk.column.document(index - chunk.first_document);
}

Corpus open_corpus(const fs::path& path, const std::string& setting) {
  try {
    return Corpus(path);
  } catch (const Error& error) {
    const bool is_setting = error.code() == ErrorCode::kNotFound ||
                            error.code() == ErrorCode::kInvalid ||
                            error.code() == ErrorCode::kUnsupported;
    if (!is_setting) throw;
    fail(ErrorCode::kUsage, "{}: {}{}", setting, error.what(),
         error.code() == ErrorCode::kNotFound
             ? ": expected a corpus, which `skein data ingest` makes of texts"
             : "");
  }
}

}  // namespace skein
