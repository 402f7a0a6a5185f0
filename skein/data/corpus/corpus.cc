#include "skein/data/corpus/corpus.h"

#include <arrow/memory_pool.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "skein/base/error.h"
#include "skein/base/files/watched_file.h"
#include "skein/base/text/hub_name.h"
#include "skein/base/threads/parallel_for.h"
#include "skein/data/corpus/corpus_files.h"
#include "skein/data/corpus/loss_spans.h"
#include "skein/data/corpus/shard_set.h"
#include "skein/data/corpus/text_column.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

// The most that compressed buffers may take when decoded; larger files have to be rewritten.
constexpr int64_t kDecodedBytesLimit = int64_t{64} << 20;

// A page fault maps the pages around it: this many bytes, or a large page of the file cache.
constexpr uintptr_t kForgetEveryBytes = uintptr_t{64} << 10;
constexpr uintptr_t kForgetBytes = uintptr_t{2} << 20;
// After so much text of a file was read, its other pages are dropped, too.
constexpr int64_t kForgetFileBytes = int64_t{1} << 20;

constexpr int kOpenAtOnce = 24;

}  // namespace

struct Corpus::File {
  fs::path path;
  WatchedFile map;
  std::shared_ptr<CachedObject> object;  // in place of the map
  std::span<const std::byte> bytes;      // of them, or of from_bytes()
  bool is_open = false;
  std::vector<TextColumn> columns;  // until they are numbered
  bool has_spans = false;
  std::vector<LossSpanColumn> spans;  // of the same batches
  // Whether somebody reads them: then those of an object are read ahead, too.
  std::unique_ptr<std::atomic<bool>> reads_spans = std::make_unique<std::atomic<bool>>(false);
  std::string shard_of;
  int64_t num_documents = 0, num_bytes = 0;
  std::unique_ptr<std::atomic<int64_t>> read_bytes = std::make_unique<std::atomic<int64_t>>(0);

  uintptr_t address() const { return reinterpret_cast<uintptr_t>(bytes.data()); }
  bool holds(uintptr_t data) const { return data >= address() && data < address() + bytes.size(); }
};

struct Corpus::Chunk {
  TextColumn column;
  int64_t first_document;
  int64_t first_byte;
  const File* file;
  int64_t first_in_file;  // the number of its first document in the file
  size_t number_in_file;  // of the batch
};

Corpus::Corpus() = default;
Corpus::Corpus(Corpus&&) noexcept = default;
Corpus::~Corpus() = default;

Corpus::Corpus(const fs::path& path, std::shared_ptr<ObjectCache> cache) : path_(path) {
  if (is_object_url(path)) cache_ = cache ? std::move(cache) : std::make_shared<ObjectCache>();
  for (fs::path& file : corpus_files(path)) files_.push_back({.path = std::move(file)});
  open_files();
}

Corpus Corpus::from_bytes(std::span<const std::byte> bytes, const fs::path& name) {
  Corpus corpus;
  corpus.path_ = name;
  corpus.files_.push_back({.path = name, .bytes = bytes, .is_open = true});
  corpus.open_files();
  return corpus;
}

Corpus Corpus::from_object(std::unique_ptr<RangeReader> reader,
                           std::shared_ptr<ObjectCache> cache) {
  Corpus corpus;
  corpus.path_ = reader->name();
  corpus.cache_ = std::move(cache);
  corpus.files_.push_back({.path = corpus.path_, .object = corpus.cache_->add(std::move(reader))});
  corpus.open_files();
  return corpus;
}

// Several at once, because opening a file may take a round trip to the machine that holds it.
void Corpus::open_files() {
  const auto pool =
      std::make_shared<arrow::CappedMemoryPool>(arrow::default_memory_pool(), kDecodedBytesLimit);
  memory_ = pool;
  parallel_for_each(files_, kOpenAtOnce, [&](File& file) { open_file(file, pool.get()); });
  std::vector<ShardList> lists;
  for (const File& file : files_) lists.push_back({file.path, file.shard_of});
  check_shard_lists(path_, lists);
  number_documents();
  if (num_documents_ <= kCheckedDocuments && cache_ == nullptr) {
    for (const Chunk& chunk : chunks_) chunk.column.check_offsets();
  }
}

void Corpus::open_file(File& file, arrow::MemoryPool* pool) {
  if (cache_ != nullptr) {
    if (!file.object) {
      file.object = cache_->add(open_ranges(parse_object_url(file.path.native())));
    }
    file.bytes = file.object->bytes();
  } else if (!file.is_open) {
    file.map = WatchedFile(file.path);
    file.bytes = file.map.bytes();
  }
  const ArrowBytes bytes = file.object ? ArrowBytes(*file.object) : ArrowBytes(file.bytes);
  const auto schema =
      for_each_text_column(bytes, file.path, {"text"}, pool, [&](TextColumn column) {
        column.check_nulls();
        if (column.num_documents() > 0) file.columns.push_back(std::move(column));
      });
  file.shard_of = shard_of(*schema);
  file.has_spans = skein::has_loss_spans(*schema);
  if (!file.has_spans) return;
  file.spans = loss_span_columns(bytes, file.path, pool);
  const bool agree = std::equal(file.spans.begin(), file.spans.end(), file.columns.begin(),
                                file.columns.end(), [](const auto& spans, const auto& text) {
                                  return spans.num_documents() == text.num_documents();
                                });
  if (!agree) fail(ErrorCode::kCorrupt, "{}: its columns differ in length", file.path.string());
}

void Corpus::number_documents() {
  for (File& file : files_) {
    const int64_t before_file = num_documents_, bytes_before_file = num_bytes_;
    for (size_t i = 0; i < file.columns.size(); ++i) {
      TextColumn& column = file.columns[i];
      const int64_t count = column.num_documents(), bytes = column.num_bytes();
      chunks_.push_back(
          {std::move(column), num_documents_, num_bytes_, &file, num_documents_ - before_file, i});
      num_documents_ += count;
      num_bytes_ += bytes;
    }
    file.columns = {};
    file.num_documents = num_documents_ - before_file;
    file.num_bytes = num_bytes_ - bytes_before_file;
    files_by_address_.push_back(&file);
  }
  std::sort(files_by_address_.begin(), files_by_address_.end(),
            [](const File* a, const File* b) { return a->address() < b->address(); });
}

void Corpus::forget(std::string_view text) const {
  const auto data = reinterpret_cast<uintptr_t>(text.data());
  const auto after =
      std::upper_bound(files_by_address_.begin(), files_by_address_.end(), data,
                       [](uintptr_t at, const File* file) { return at < file->address(); });
  if (after == files_by_address_.begin()) return;
  const File& file = **std::prev(after);
  if (!file.holds(data) || file.object) return;  // decoded, so not in the map
  file.map.note_read();
  const auto bytes = static_cast<int64_t>(text.size());
  if (file.read_bytes->fetch_add(bytes) % kForgetFileBytes + bytes >= kForgetFileBytes) {
    return file.map.forget(file.bytes);
  }
  const uintptr_t begin = std::max(file.address(), data / kForgetBytes * kForgetBytes);
  const uintptr_t end = data + text.size();
  if (data / kForgetEveryBytes == end / kForgetEveryBytes) return;
  file.map.forget(file.bytes.subspan(begin - file.address(), end - begin));
}

void Corpus::forget_all() const {
  for (const File& file : files_) file.map.forget(file.bytes);
}

std::string Corpus::check_unchanged() const {
  std::string moved;
  for (const File& file : files_) {
    const std::string became = file.map.check();
    if (moved.empty() && !became.empty()) moved = file.path.string() + " " + became;
  }
  return moved;
}

const Corpus::Chunk& Corpus::chunk_of(int64_t index) const {
  if (index < 0 || index >= num_documents_) {
    fail(ErrorCode::kInternal, "{}: document {} asked for: there are {}", path_.string(), index,
         num_documents_);
  }
  const auto next =
      std::upper_bound(chunks_.begin(), chunks_.end(), index,
                       [](int64_t i, const Chunk& chunk) { return i < chunk.first_document; });
  return *std::prev(next);
}

HeldText Corpus::document(int64_t index) const {
  const Chunk& chunk = chunk_of(index);
  chunk.file->map.note_read();
  return chunk.column.document(index - chunk.first_document);
}

int64_t Corpus::document_bytes(int64_t index) const {
  const Chunk& chunk = chunk_of(index);
  return chunk.column.document_bytes(index - chunk.first_document);
}

HeldText Corpus::part(int64_t index, int64_t begin, int64_t num_bytes) const {
  const Chunk& chunk = chunk_of(index);
  chunk.file->map.note_read();
  return chunk.column.part(index - chunk.first_document, begin, num_bytes);
}

bool Corpus::has_loss_spans() const {
  return num_documents_ > 0 && std::all_of(files_.begin(), files_.end(), [](const File& file) {
           return file.has_spans || file.num_documents == 0;
         });
}

std::vector<ByteRange> Corpus::loss_spans(int64_t index) const {
  const Chunk& chunk = chunk_of(index);
  if (!chunk.file->has_spans) return {};
  chunk.file->reads_spans->store(true, std::memory_order_relaxed);
  const int64_t row = index - chunk.first_document;
  return chunk.file->spans[chunk.number_in_file].spans(row, chunk.column.document_bytes(row));
}

// The last of those that begin there has the text: others are of empty documents.
const Corpus::Chunk& Corpus::chunk_at(int64_t position) const {
  const auto next =
      std::upper_bound(chunks_.begin(), chunks_.end(), position,
                       [](int64_t at, const Chunk& chunk) { return at < chunk.first_byte; });
  return *std::prev(next);
}

void Corpus::read_ahead(const ByteRange& range) const {
  if (cache_ == nullptr || range.begin < 0) return;
  const int64_t end = std::min(range.end, num_bytes_);
  for (int64_t position = range.begin; position < end;) {
    const Chunk& chunk = chunk_at(position);
    const int64_t begin = position - chunk.first_byte;
    const int64_t chunk_end = std::min(end - chunk.first_byte, chunk.column.num_bytes());
    position = chunk.first_byte + chunk_end;
    if (begin >= chunk_end) return;
    const auto text = chunk.column.text_at(begin, chunk_end);
    if (chunk.file->object->has(text)) continue;
    std::optional<LossSpanColumn> spans;
    if (*chunk.file->reads_spans) spans = chunk.file->spans[chunk.number_in_file];
    cache_->in_background(
        [object = chunk.file->object, column = chunk.column, spans, text, begin, chunk_end] {
          const ObjectHold held = object->hold(text);
          const int64_t first = column.find(begin).document;
          const int64_t last = column.find(chunk_end - 1).document;
          if (spans) spans->read_ahead(first, last + 1);
        });
  }
}

Corpus::Home Corpus::home(int64_t index) const {
  const Chunk& chunk = chunk_of(index);
  return {chunk.file->path, index - chunk.first_document + chunk.first_in_file,
          chunk.file->num_documents, chunk.file->num_bytes};
}

DocumentPlace Corpus::find(int64_t position) const {
  if (position < 0 || position >= num_bytes_) {
    fail(ErrorCode::kInternal, "{}: byte {} asked for: there are {}", path_.string(), position,
         num_bytes_);
  }
  const Chunk& chunk = chunk_at(position);
  const TextColumn::Position at = chunk.column.find(position - chunk.first_byte);
  return {chunk.first_document + at.document, chunk.first_byte + at.begin};
}

Corpus open_corpus(const fs::path& path, const std::string& setting,
                   std::shared_ptr<ObjectCache> cache) {
  try {
    return Corpus(path, std::move(cache));
  } catch (const Error& error) {
    const bool is_setting = error.code() == ErrorCode::kNotFound ||
                            error.code() == ErrorCode::kInvalid ||
                            error.code() == ErrorCode::kUnsupported;
    if (!is_setting) throw;
    fail(ErrorCode::kUsage, "{}: {}{}", setting, error.what(),
         error.code() == ErrorCode::kNotFound
             ? ": expected a corpus, which `skein data ingest` makes of texts" +
                   hub_advice(path.native(), "dataset")
             : "");
  }
}

}  // namespace skein
