// Rows of an Arrow table as the values that Python has for them (pyarrow's to_pylist): a struct is
// a dict, a list a list, null None.
//
// Errors   Error{kUnsupported} for a column of another type (a date, a time, a decimal, bytes), by
//          name; kInvalid for a table whose parts
//          disagree, or text that is not UTF-8
#pragma once

#include <arrow/type_fwd.h>

#include <string>

#include "skein/evaluate/documents/documents.h"

namespace skein {

// `what` names the table in errors.
Documents documents_of(const arrow::Table& table, const std::string& what);

}  // namespace skein
