#include "skein/data/corpus/copied_text.h"

#include <arrow/array.h>
#include <arrow/array/builder_binary.h>
#include <arrow/type.h>

#include "skein/base/error.h"

namespace skein {
namespace {

bool is_view(const arrow::DataType& type) { return type.id() == arrow::Type::STRING_VIEW; }

std::string_view text_in(const arrow::Array& strings, int64_t index) {
  switch (strings.type_id()) {
    case arrow::Type::STRING:
      return static_cast<const arrow::StringArray&>(strings).GetView(index);
    case arrow::Type::LARGE_STRING:
      return static_cast<const arrow::LargeStringArray&>(strings).GetView(index);
    default:
      return static_cast<const arrow::StringViewArray&>(strings).GetView(index);
  }
}

// The same as bytes: whether strings are UTF-8 is for the reader to see, as in other columns, and
// Arrow, asked whether they are whole, would look at that as well.
std::shared_ptr<arrow::ArrayData> as_bytes(const arrow::ArrayData& strings) {
  std::shared_ptr<arrow::ArrayData> bytes = strings.Copy();
  switch (strings.type->id()) {
    case arrow::Type::STRING:
      bytes->type = arrow::binary();
      break;
    case arrow::Type::LARGE_STRING:
      bytes->type = arrow::large_binary();
      break;
    case arrow::Type::STRING_VIEW:
      bytes->type = arrow::binary_view();
      break;
    default: {
      const auto& type = static_cast<const arrow::DictionaryType&>(*strings.type);
      bytes->dictionary = as_bytes(*strings.dictionary);
      bytes->type = arrow::dictionary(type.index_type(), bytes->dictionary->type);
    }
  }
  return bytes;
}

}  // namespace

bool is_text_type(const arrow::DataType& type) {
  return type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING;
}

bool is_copied_text(const arrow::DataType& type) {
  if (type.id() != arrow::Type::DICTIONARY) return is_view(type);
  const auto& values = *static_cast<const arrow::DictionaryType&>(type).value_type();
  return is_text_type(values) || is_view(values);
}

std::shared_ptr<arrow::ArrayData> copied_text(const std::shared_ptr<arrow::ArrayData>& column,
                                              const fs::path& name, arrow::MemoryPool* pool) {
  const auto check = [&](const arrow::Status& status) {
    if (status.ok()) return;
    fail(ErrorCode::kCorrupt, "{}: a column of type {} is damaged ({}): expected strings",
         name.string(), column->type->ToString(), status.message());
  };
  check(arrow::MakeArray(as_bytes(*column))->ValidateFull());
  const std::shared_ptr<arrow::Array> array = arrow::MakeArray(column);
  const bool is_dictionary = array->type_id() == arrow::Type::DICTIONARY;
  const std::shared_ptr<arrow::Array> strings =
      is_dictionary ? static_cast<const arrow::DictionaryArray&>(*array).dictionary() : array;
  arrow::LargeStringBuilder builder(pool);
  const auto append = [&](int64_t row) {
    if (array->IsNull(row)) return builder.AppendNull();
    const int64_t at =
        is_dictionary ? static_cast<const arrow::DictionaryArray&>(*array).GetValueIndex(row) : row;
    return strings->IsNull(at) ? builder.AppendNull() : builder.Append(text_in(*strings, at));
  };
  for (int64_t row = 0; row < array->length(); ++row) check(append(row));
  std::shared_ptr<arrow::Array> copy;
  check(builder.Finish(&copy));
  return copy->data();
}

}  // namespace skein
