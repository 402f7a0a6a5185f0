// Conversations in the rows of a table: --chat-template renders each row as the JSON object of its
// columns (chat/table_row.h), so that a table gives the documents that its rows as JSON lines give.
//
// Read     the columns that hold conversations, and those whose names the template spells
// Errors   Error{kInvalid} for a table without such columns, naming those that it has; those of
//          conversations, with the row (from 1)
// Memory   rows are decoded 64 at a time, out of `pool`, which bounds it
#pragma once

#include <arrow/type_fwd.h>

#include <memory>
#include <span>
#include <string>

#include "skein/prepare/read/bytes/arrow_input.h"
#include "skein/prepare/read/readers.h"

namespace skein {

// Also throws parquet::ParquetException for a damaged file.
void read_chat_parquet(const fs::path& path, const std::shared_ptr<ArrowInput>& file,
                       arrow::MemoryPool* pool, const ReadOptions& options,
                       const DocumentVisitor& visit);
void read_chat_arrow(std::span<const std::byte> bytes, const fs::path& path,
                     arrow::MemoryPool* pool, const ReadOptions& options,
                     const DocumentVisitor& visit);

// kChatAdvice where these are an Arrow file with columns of conversations; else "".
std::string advice_of_chat(std::span<const std::byte> bytes);

}  // namespace skein
