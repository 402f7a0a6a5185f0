// Columns of strings that cannot be mapped as they lie: dictionaries, as pandas writes categories,
// and views, as polars writes strings.
//
// Errors   Error{kCorrupt} naming the file: everything is checked before it is read
// Memory   a copy of the column
#pragma once

#include <arrow/type_fwd.h>

#include <memory>

#include "skein/base/files/file.h"

namespace skein {

bool is_text_type(const arrow::DataType& type);    // string or large_string
bool is_copied_text(const arrow::DataType& type);  // a dictionary or views of strings

// The same documents as a large_string.
std::shared_ptr<arrow::ArrayData> copied_text(const std::shared_ptr<arrow::ArrayData>& column,
                                              const fs::path& name, arrow::MemoryPool* pool);

}  // namespace skein
