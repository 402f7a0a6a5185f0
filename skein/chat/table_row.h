// A row of a table as the JSON object that conversations are read from: a key for each column, in
// their order.
//
//   {"messages": [{"role": "user", "content": "hi"}], "source": null}
//
// Types    strings, booleans and numbers are what they are (NaN and infinities null, as JSON has
//          none); lists are arrays; structures and maps with string keys are objects; of a
//          dictionary the value; dates, times and decimals are texts, as Arrow prints them; bytes
//          that are no UTF-8 are null
// Errors   Error{kUnsupported} for a row whose text takes more than `max_bytes`, or is nested
//          deeper than 100 levels
#pragma once

#include <arrow/type_fwd.h>

#include <cstdint>
#include <string>

namespace skein {

// Writes row `row` to `json`; the batch is valid (arrow::RecordBatch::ValidateFull, or made by
// Parquet's reader). `where` begins errors.
void write_row(const arrow::RecordBatch& batch, int64_t row, int64_t max_bytes,
               const std::string& where, std::string& json);

}  // namespace skein
