#include "skein/chat/table_row.h"

#include <arrow/array.h>
#include <arrow/extension_type.h>
#include <arrow/record_batch.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <fmt/format.h>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/visible_text.h"

namespace skein {
namespace {

constexpr int kMostNesting = 100;

class RowWriter {
 public:
  RowWriter(int64_t max_bytes, const std::string& where, std::string& json)
      : max_bytes_(static_cast<size_t>(max_bytes)), where_(where), json_(json) {}

  void write(const arrow::RecordBatch& batch, int64_t row) {
    json_.assign(1, '{');
    for (int i = 0; i < batch.num_columns(); ++i) {
      write_key(batch.column_name(i), i == 0);
      write_value(*batch.column(i), row, 0);
    }
    add("}");
  }

 private:
  void add(std::string_view text) {
    if (text.size() > max_bytes_ - std::min(max_bytes_, json_.size())) {
      fail(ErrorCode::kUnsupported,
           "{}: a row whose texts take more than {} bytes: expected at most that; split it", where_,
           max_bytes_);
    }
    json_ += text;
  }

  void write_key(const std::string& key, bool is_first) {
    if (!is_first) add(",");
    write_string(key);
    add(":");
  }

  // Bytes that are not UTF-8 stay for whoever reads the object to judge.
  void write_string(std::string_view text) {
    add("\"");
    for (size_t begin = 0; begin < text.size();) {
      size_t end = begin;
      const auto is_plain = [](char byte) {
        return static_cast<uint8_t>(byte) >= 0x20 && byte != '"' && byte != '\\';
      };
      while (end < text.size() && is_plain(text[end])) ++end;
      add(text.substr(begin, end - begin));
      if (end < text.size()) add(fmt::format("\\u{:04x}", static_cast<uint8_t>(text[end++])));
      begin = end;
    }
    add("\"");
  }

  void write_items(const arrow::Array& values, int64_t begin, int64_t end, int depth) {
    add("[");
    for (int64_t i = begin; i < end; ++i) {
      if (i > begin) add(",");
      write_value(values, i, depth);
    }
    add("]");
  }

  template <typename List>
  void write_list(const arrow::Array& array, int64_t row, int depth) {
    const auto& list = static_cast<const List&>(array);
    const int64_t begin = list.value_offset(row);
    write_items(*list.values(), begin, begin + list.value_length(row), depth);
  }

  void write_struct(const arrow::StructArray& array, int64_t row, int depth) {
    add("{");
    for (int i = 0; i < array.num_fields(); ++i) {
      write_key(array.type()->field(i)->name(), i == 0);
      write_value(*array.field(i), row, depth);
    }
    add("}");
  }

  void write_map(const arrow::MapArray& array, int64_t row, int depth) {
    const int64_t begin = array.value_offset(row), end = begin + array.value_length(row);
    const auto key_type = array.map_type()->key_type()->id();
    if (key_type != arrow::Type::STRING && key_type != arrow::Type::LARGE_STRING) {
      return write_items(*array.items(), begin, end, depth);
    }
    add("{");
    for (int64_t i = begin; i < end; ++i) {
      if (i > begin) add(",");
      write_value(*array.keys(), i, depth);
      add(":");
      write_value(*array.items(), i, depth);
    }
    add("}");
  }

  template <typename Bytes>
  void write_bytes(const arrow::Array& array, int64_t row, bool is_text) {
    const auto bytes = static_cast<const Bytes&>(array).GetView(row);
    is_text || is_valid_utf8(bytes) ? write_string(bytes) : add("null");
  }

  template <typename Numbers>
  void write_number(const arrow::Array& array, int64_t row) {
    add(json_text(Json(static_cast<const Numbers&>(array).Value(row))));
  }

  void write_value(const arrow::Array& array, int64_t row, int depth) {
    if (depth > kMostNesting) {
      fail(ErrorCode::kUnsupported, "{}: a column nested deeper than {} levels: expected fewer",
           where_, kMostNesting);
    }
    if (array.IsNull(row)) return add("null");
    using arrow::Type;
    switch (array.type_id()) {
      case Type::BOOL:
        return add(static_cast<const arrow::BooleanArray&>(array).Value(row) ? "true" : "false");
      case Type::INT8:
        return write_number<arrow::Int8Array>(array, row);
      case Type::INT16:
        return write_number<arrow::Int16Array>(array, row);
      case Type::INT32:
        return write_number<arrow::Int32Array>(array, row);
      case Type::INT64:
        return write_number<arrow::Int64Array>(array, row);
      case Type::UINT8:
        return write_number<arrow::UInt8Array>(array, row);
      case Type::UINT16:
        return write_number<arrow::UInt16Array>(array, row);
      case Type::UINT32:
        return write_number<arrow::UInt32Array>(array, row);
      case Type::UINT64:
        return write_number<arrow::UInt64Array>(array, row);
      case Type::FLOAT:
        return write_number<arrow::FloatArray>(array, row);
      case Type::DOUBLE:
        return write_number<arrow::DoubleArray>(array, row);
      case Type::STRING:
        return write_bytes<arrow::StringArray>(array, row, true);
      case Type::LARGE_STRING:
        return write_bytes<arrow::LargeStringArray>(array, row, true);
      case Type::STRING_VIEW:
        return write_bytes<arrow::StringViewArray>(array, row, true);
      case Type::BINARY:
        return write_bytes<arrow::BinaryArray>(array, row, false);
      case Type::LARGE_BINARY:
        return write_bytes<arrow::LargeBinaryArray>(array, row, false);
      default:
        return write_nested(array, row, depth + 1);
    }
  }

  void write_nested(const arrow::Array& array, int64_t row, int depth) {
    using arrow::Type;
    switch (array.type_id()) {
      case Type::LIST:
        return write_list<arrow::ListArray>(array, row, depth);
      case Type::LARGE_LIST:
        return write_list<arrow::LargeListArray>(array, row, depth);
      case Type::FIXED_SIZE_LIST:
        return write_list<arrow::FixedSizeListArray>(array, row, depth);
      case Type::LIST_VIEW:
        return write_list<arrow::ListViewArray>(array, row, depth);
      case Type::LARGE_LIST_VIEW:
        return write_list<arrow::LargeListViewArray>(array, row, depth);
      case Type::STRUCT:
        return write_struct(static_cast<const arrow::StructArray&>(array), row, depth);
      case Type::MAP:
        return write_map(static_cast<const arrow::MapArray&>(array), row, depth);
      case Type::DICTIONARY: {
        const auto& encoded = static_cast<const arrow::DictionaryArray&>(array);
        return write_value(*encoded.dictionary(), encoded.GetValueIndex(row), depth);
      }
      case Type::EXTENSION:
        return write_value(*static_cast<const arrow::ExtensionArray&>(array).storage(), row, depth);
      default:
        break;
    }
    const auto scalar = array.GetScalar(row);
    scalar.ok() ? write_string((*scalar)->ToString()) : add("null");
  }

  const size_t max_bytes_;
  const std::string& where_;
  std::string& json_;
};

}  // namespace

void write_row(const arrow::RecordBatch& batch, int64_t row, int64_t max_bytes,
               const std::string& where, std::string& json) {
  RowWriter(max_bytes, where, json).write(batch, row);
}

}  // namespace skein
