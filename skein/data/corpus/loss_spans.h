// Which bytes of a document count for the loss: what the assistant wrote in a conversation.
//
// Of an object in a store, offsets and values are fetched as they are read, as text is.
//
// Format   the column `loss_spans` of a corpus, beside `text`: large_list<int64> (or list<int64>),
//          beginning and end of each span one after another, in bytes of the document's UTF-8, in
//          order and apart; docs/corpus_format.md
// Errors   Error{kInvalid | kCorrupt} naming the file; spans are checked when they are read. Also
//          those of an object's store
// Threads  several threads may call const functions at once
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/data/corpus/arrow_bytes.h"

namespace skein {

struct ByteRange;

constexpr const char* kLossSpans = "loss_spans";

// What lies in `window`, by its bytes; empty ones are left out.
std::vector<ByteRange> spans_within(std::span<const ByteRange> spans, const ByteRange& window);

// The spans of the documents of one record batch. The buffers are not copied.
class LossSpanColumn {
 public:
  // `object`: whose bytes the buffers are, which must outlive the column; null: they are in memory.
  LossSpanColumn(std::shared_ptr<arrow::ArrayData> array, std::shared_ptr<const std::string> name,
                 CachedObject* object = nullptr);

  int64_t num_documents() const { return num_documents_; }
  // Of a document of so many bytes. A null has none.
  std::vector<ByteRange> spans(int64_t index, int64_t document_bytes) const;
  // Fetches those of documents [first, end), of an object.
  void read_ahead(int64_t first, int64_t end) const;

 private:
  struct Extent {  // of a document in the values
    int64_t begin = 0, end = 0;
  };
  Extent extent(int64_t first, int64_t end) const;
  bool is_null(int64_t index) const;
  void check_is_of_object() const;
  ObjectHold hold(const std::byte* begin, int64_t num_bytes) const;
  int64_t offset_at(int64_t index) const;  // of those that are held

  std::shared_ptr<arrow::ArrayData> array_;  // keeps the buffers alive
  std::shared_ptr<const std::string> name_;
  CachedObject* object_;
  int64_t num_documents_ = 0;
  int64_t first_ = 0;  // offset of this array in its buffers
  bool wide_ = false;  // 64-bit offsets
  const std::byte* validity_ = nullptr;
  const std::byte* offsets_ = nullptr;
  const std::byte* values_ = nullptr;
  int64_t num_values_ = 0;
};

// Whether a file with this schema says it.
bool has_loss_spans(const arrow::Schema& schema);

// The same of the bytes of a file; false where they are not Arrow.
bool has_loss_spans(std::span<const std::byte> bytes);

// Of each record batch that is not empty, in order; the file has the column.
std::vector<LossSpanColumn> loss_span_columns(ArrowBytes bytes, const fs::path& name,
                                              arrow::MemoryPool* pool);

}  // namespace skein
