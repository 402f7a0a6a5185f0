// Which column of an Arrow table holds the documents: one of the table, or one inside a structure.
//
// Errors   Error{kInvalid} naming the file: no such column, several, or of another type
#pragma once

#include <arrow/result.h>
#include <arrow/type_fwd.h>

#include <memory>
#include <string>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/data/corpus/text_column.h"

namespace skein {

struct TextField {
  int column = 0;           // of the table
  std::vector<int> inside;  // of structures, from the outermost inwards
};

// The column that has the first of these names which the schema knows. A name with dots may be a
// path, "data.text"; a column whose own name has the dots goes before it.
TextField text_field(const arrow::Schema& schema, const fs::path& name,
                     const std::vector<std::string>& columns, TextTypes types);

// The documents of a batch of that column alone; where a structure is null, they are.
arrow::Result<std::shared_ptr<arrow::ArrayData>> column_of(const arrow::RecordBatch& batch,
                                                           const TextField& field,
                                                           arrow::MemoryPool* pool);

// "; it has one inside: --text-column data.text reads it", for the paths of texts that nobody
// named; empty: there are none.
std::string advice_of_places(const std::vector<std::string>& paths);

}  // namespace skein
