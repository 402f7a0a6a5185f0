#include "skein/evaluate/documents/table_values.h"

#include <arrow/array.h>
#include <arrow/table.h>
#include <arrow/type.h>

#include <memory>
#include <utility>

#include "skein/base/error.h"

namespace skein {
namespace {

using jinja::Value;

struct Column {
  const std::string& what;
  std::string name;
};

Value value_at(const arrow::Array& array, int64_t row, const Column& column);

template <class Array>
Value text_at(const arrow::Array& array, int64_t row, const Column&) {
  return Value::string(std::string(static_cast<const Array&>(array).GetView(row)));
}

template <class Array>
Value integer_at(const arrow::Array& array, int64_t row, const Column&) {
  return Value::integer(static_cast<int64_t>(static_cast<const Array&>(array).Value(row)));
}

template <class Array>
Value float_at(const arrow::Array& array, int64_t row, const Column&) {
  return Value::number(static_cast<double>(static_cast<const Array&>(array).Value(row)));
}

Value big_at(const arrow::Array& array, int64_t row, const Column&) {
  const uint64_t value = static_cast<const arrow::UInt64Array&>(array).Value(row);
  return value <= INT64_MAX ? Value::integer(static_cast<int64_t>(value))
                            : Value::big_integer(fmt::format("{}", value));
}

template <class Array>
Value list_at(const arrow::Array& array, int64_t row, const Column& column) {
  const auto& lists = static_cast<const Array&>(array);
  std::vector<Value> items;
  const auto begin = static_cast<int64_t>(lists.value_offset(row));
  const auto count = static_cast<int64_t>(lists.value_length(row));
  items.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) items.push_back(value_at(*lists.values(), begin + i, column));
  return Value::list(std::move(items));
}

Value dict_at(const arrow::Array& array, int64_t row, const Column& column) {
  const auto& structs = static_cast<const arrow::StructArray&>(array);
  auto dict = std::make_shared<jinja::Dict>();
  for (int i = 0; i < structs.num_fields(); ++i) {
    const std::string& key = structs.struct_type()->field(i)->name();
    dict->set(Value::string(key),
              value_at(*structs.field(i), row, {column.what, column.name + "." + key}));
  }
  return Value::of(jinja::Kind::kDict, std::move(dict));
}

Value of_dictionary(const arrow::Array& array, int64_t row, const Column& column) {
  const auto& codes = static_cast<const arrow::DictionaryArray&>(array);
  return value_at(*codes.dictionary(), codes.GetValueIndex(row), column);
}

Value bool_at(const arrow::Array& array, int64_t row, const Column&) {
  return Value::boolean(static_cast<const arrow::BooleanArray&>(array).Value(row));
}

using Reader = Value (*)(const arrow::Array&, int64_t, const Column&);

Reader reader_of(arrow::Type::type type) {
  switch (type) {
    case arrow::Type::BOOL:
      return bool_at;
    case arrow::Type::INT8:
      return integer_at<arrow::Int8Array>;
    case arrow::Type::INT16:
      return integer_at<arrow::Int16Array>;
    case arrow::Type::INT32:
      return integer_at<arrow::Int32Array>;
    case arrow::Type::INT64:
      return integer_at<arrow::Int64Array>;
    case arrow::Type::UINT8:
      return integer_at<arrow::UInt8Array>;
    case arrow::Type::UINT16:
      return integer_at<arrow::UInt16Array>;
    case arrow::Type::UINT32:
      return integer_at<arrow::UInt32Array>;
    case arrow::Type::UINT64:
      return big_at;
    case arrow::Type::FLOAT:
      return float_at<arrow::FloatArray>;
    case arrow::Type::DOUBLE:
      return float_at<arrow::DoubleArray>;
    case arrow::Type::STRING:
      return text_at<arrow::StringArray>;
    case arrow::Type::LARGE_STRING:
      return text_at<arrow::LargeStringArray>;
    case arrow::Type::STRING_VIEW:
      return text_at<arrow::StringViewArray>;
    case arrow::Type::LIST:
      return list_at<arrow::ListArray>;
    case arrow::Type::LARGE_LIST:
      return list_at<arrow::LargeListArray>;
    case arrow::Type::FIXED_SIZE_LIST:
      return list_at<arrow::FixedSizeListArray>;
    case arrow::Type::STRUCT:
      return dict_at;
    case arrow::Type::DICTIONARY:
      return of_dictionary;
    default:
      return nullptr;
  }
}

Value value_at(const arrow::Array& array, int64_t row, const Column& column) {
  if (array.type_id() == arrow::Type::NA || array.IsNull(row)) return Value::none();
  const Reader reader = reader_of(array.type_id());
  if (reader == nullptr) {
    fail(
        ErrorCode::kUnsupported,
        "{}: column `{}` is of type {}: expected text, numbers, booleans, and lists and structures "
        "of these",
        column.what, column.name, array.type()->ToString());
  }
  return reader(array, row, column);
}

}  // namespace

Documents documents_of(const arrow::Table& table, const std::string& what) {
  if (const arrow::Status status = table.ValidateFull(); !status.ok()) {
    fail(ErrorCode::kInvalid, "{}: damaged: {}", what, status.message());
  }
  Documents documents;
  const auto num_rows = static_cast<size_t>(table.num_rows());
  std::vector<std::shared_ptr<jinja::Dict>> rows(num_rows);
  for (auto& row : rows) row = std::make_shared<jinja::Dict>();
  for (int i = 0; i < table.num_columns(); ++i) {
    const std::string& name = table.field(i)->name();
    documents.features.push_back(name);
    size_t row = 0;
    for (const auto& chunk : table.column(i)->chunks()) {
      for (int64_t at = 0; at < chunk->length(); ++at) {
        rows[row++]->set(Value::string(name), value_at(*chunk, at, {what, name}));
      }
    }
  }
  documents.rows.reserve(num_rows);
  for (auto& row : rows) {
    documents.rows.push_back(Value::of(jinja::Kind::kDict, std::move(row)));
  }
  return documents;
}

}  // namespace skein
