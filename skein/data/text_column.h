// The column of documents of an Arrow IPC stream or file in memory, checked batch by batch.
//
// Errors   Error{kInvalid}: no such column, or of another type; Error{kCorrupt}: damaged bytes;
//          Error{kUnsupported}: buffers that do not fit into `pool` when decoded. All name the
//          file.
// Source   https://arrow.apache.org/docs/format/Columnar.html#serialization-and-ipc
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "skein/base/file.h"

namespace skein {

// Documents in one array of type string, large_string, binary or large_binary. The constructor
// checks every offset, so that document() needs no check; it does not look at the text.
class TextColumn {
 public:
  // `where` begins every error: "corpus.arrow: record batch 3".
  TextColumn(std::shared_ptr<arrow::ArrayData> array, const std::string& where);

  int64_t num_documents() const { return num_documents_; }
  int64_t num_bytes() const { return num_bytes_; }
  std::string_view document(int64_t index) const;  // a null is an empty document

 private:
  int64_t offset_at(int64_t index) const;
  void check_offsets(int64_t text_bytes, const std::string& where) const;

  std::shared_ptr<arrow::ArrayData> array_;  // keeps the buffers alive
  const std::byte* validity_ = nullptr;      // one bit per document; null: all are valid
  const std::byte* offsets_ = nullptr;
  const char* text_ = nullptr;
  bool wide_ = false;  // 64-bit offsets
  int64_t first_ = 0;  // offset of this array in its buffers
  int64_t num_documents_ = 0;
  int64_t num_bytes_ = 0;
};

// Calls `visit` for the column named `column` of each record batch of `bytes`, in order.
// Uncompressed buffers are not copied: the columns point into `bytes`. Decoded ones are allocated
// from `pool`.
void for_each_text_column(std::span<const std::byte> bytes, const fs::path& name,
                          const std::string& column, arrow::MemoryPool* pool,
                          const std::function<void(TextColumn)>& visit);

}  // namespace skein
