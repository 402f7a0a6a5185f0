// The column of documents of an Arrow IPC stream or file, checked batch by batch: in memory, or an
// object of which nothing but headers is fetched before it is asked for.
//
// Errors   Error{kInvalid}: no such column, or of another type; Error{kCorrupt}: damaged bytes;
//          Error{kUnsupported}: buffers that do not fit into `pool` when decoded; compressed
//          buffers, and the file format, of an object. All name the file. Also those of an object's
//          store
// Source   https://arrow.apache.org/docs/format/Columnar.html#serialization-and-ipc
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "skein/base/files/file.h"
#include "skein/data/corpus/arrow_bytes.h"
#include "skein/data/corpus/held_text.h"

namespace skein {

// Documents in one array of type string, large_string, binary or large_binary. The constructor
// looks at the sizes of the buffers and at the first and last offset; document() checks the two
// offsets that it uses, so that a column of any length opens at once and no damage is read past.
class TextColumn {
 public:
  // `name` and `batch` begin every error: "corpus.arrow: record batch 3". `object`: whose bytes the
  // buffers are, which must outlive the column; null: they are in memory.
  TextColumn(std::shared_ptr<arrow::ArrayData> array, std::shared_ptr<const std::string> name,
             int64_t batch, CachedObject* object = nullptr);

  int64_t num_documents() const { return num_documents_; }
  int64_t num_bytes() const { return num_bytes_; }  // of all documents together
  int64_t document_bytes(int64_t index) const { return extent(index).num_bytes; }
  HeldText document(int64_t index) const;  // a null is an empty document
  // The part of a document from `begin` on, of at most `num_bytes` bytes.
  HeldText part(int64_t index, int64_t begin, int64_t num_bytes) const;

  // Where a document lies in the text of the column, laid end to end.
  struct Position {
    int64_t document = 0;
    int64_t begin = 0;  // bytes of text before it
  };
  // The document that holds byte `position`, 0 <= position < num_bytes(). Needs check_nulls().
  // Cost: documents are about equally long in most corpora, so it is guessed, and then searched
  // for from the guess outwards; a handful of offsets is read, log n in any case.
  Position find(int64_t position) const;

  // Bytes [begin, end) of the text laid end to end, where they lie in memory.
  std::span<const std::byte> text_at(int64_t begin, int64_t end) const;

  // Throws Error{kCorrupt} unless all offsets are in order: 8 bytes a document are read.
  void check_offsets() const;
  // Throws Error{kUnsupported} if a null has text, so that offsets say more than documents hold.
  // Reads a bit a document, where there are nulls at all.
  void check_nulls() const;

 private:
  struct Extent {  // of a document in the buffer of text
    int64_t begin = 0, num_bytes = 0;
  };
  Extent extent(int64_t index) const;
  void check_is_of_object() const;
  ObjectHold hold(const void* begin, int64_t num_bytes) const;
  ObjectHold hold_offsets(int64_t index, int64_t count) const;
  int64_t held_offset(int64_t index) const;  // of those that are held
  int64_t offset_at(int64_t index) const;
  bool is_null(int64_t index) const;
  std::string where() const;

  std::shared_ptr<arrow::ArrayData> array_;  // keeps the buffers alive
  std::shared_ptr<const std::string> name_;
  int64_t batch_;
  CachedObject* object_;
  const std::byte* validity_ = nullptr;  // one bit per document; null: all are valid
  const std::byte* offsets_ = nullptr;
  const char* text_ = nullptr;
  int64_t text_bytes_ = 0;  // of the buffer
  int64_t text_begin_ = 0;  // in the buffer, of the first document
  bool wide_ = false;       // 64-bit offsets
  int64_t first_ = 0;       // offset of this array in its buffers
  int64_t num_documents_ = 0;
  int64_t num_bytes_ = 0;
};

// What types of columns are taken: strings, whose buffers are mapped; or also dictionaries and
// views of strings, which are copied batch by batch.
enum class TextTypes { kMapped, kAny };

// The first of `names` that `has` knows; if it knows none, the first of all.
std::string first_of(const std::vector<std::string>& names,
                     const std::function<bool(const std::string&)>& has);

// Calls `visit` for the column of each record batch of `bytes`, in order, that has the first of the
// names `columns`.
// Uncompressed buffers are not copied: the columns point into `bytes`. Decoded ones are allocated
// from `pool`. Returns the schema of all columns.
std::shared_ptr<arrow::Schema> for_each_text_column(ArrowBytes bytes, const fs::path& name,
                                                    const std::vector<std::string>& columns,
                                                    arrow::MemoryPool* pool,
                                                    const std::function<void(TextColumn)>& visit,
                                                    TextTypes types = TextTypes::kMapped);

}  // namespace skein
