#include <arrow/io/file.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/type_traits.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/properties.h>
#include <parquet/schema.h>

#include "skein/data/text_column.h"
#include "skein/objects/object_store.h"
#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

constexpr int64_t kBatchRows = 1024;
constexpr int64_t kReadBufferBytes = int64_t{1} << 20;
constexpr int64_t kObjectBufferBytes = int64_t{8} << 20;  // each is a request

void check(const arrow::Status& status, const fs::path& path) {
  if (!status.ok()) {
    fail(ErrorCode::kCorrupt,
         "{}: not a readable Parquet file ({}): damaged, or of another format?", path.string(),
         status.message());
  }
}

template <typename T>
T value_or_fail(arrow::Result<T> result, const fs::path& path) {
  check(result.status(), path);
  return std::move(result).ValueUnsafe();
}

// The leaf column that holds the documents.
int text_leaf(const parquet::SchemaDescriptor& schema, const fs::path& path,
              const std::string& wanted) {
  std::string names;
  for (int leaf = 0; leaf < schema.num_columns(); ++leaf) {
    const parquet::ColumnDescriptor& column = *schema.Column(leaf);
    const std::string name = column.path()->ToDotString();
    if (name == wanted) {
      if (column.physical_type() == parquet::Type::BYTE_ARRAY &&
          column.max_repetition_level() == 0) {
        return leaf;
      }
      fail(ErrorCode::kInvalid, "{}: column `{}` is of type {}: expected a string", path.string(),
           wanted, parquet::TypeToString(column.physical_type()));
    }
    if (names.size() < 200) names += (names.empty() ? "" : ", ") + name;
  }
  fail(ErrorCode::kInvalid,
       "{}: has no column `{}` (its columns: {}): expected a string `{}` (--text-column names "
       "another)",
       path.string(), wanted, names.empty() ? "none" : names, wanted);
}

std::unique_ptr<parquet::arrow::FileReader> open_reader(const fs::path& path) {
  std::shared_ptr<arrow::io::RandomAccessFile> file;
  if (is_object_url(path)) {
    file = open_object(parse_object_url(path.native()));
  } else {
    file = value_or_fail(arrow::io::ReadableFile::Open(path.string()), path);
  }
  // Reads page by page, not a whole column chunk at once.
  parquet::ReaderProperties properties = parquet::default_reader_properties();
  properties.enable_buffered_stream();
  properties.set_buffer_size(is_object_url(path) ? kObjectBufferBytes : kReadBufferBytes);
  parquet::ArrowReaderProperties arrow_properties;
  arrow_properties.set_batch_size(kBatchRows);
  arrow_properties.set_pre_buffer(false);
  arrow_properties.set_use_threads(false);
  parquet::arrow::FileReaderBuilder builder;
  check(builder.Open(std::move(file), properties), path);
  builder.properties(arrow_properties);
  std::unique_ptr<parquet::arrow::FileReader> reader;
  check(builder.Build(&reader), path);
  return reader;
}

void read_batches(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit) {
  const std::string& wanted = options.text_column;
  const auto reader = open_reader(path);
  const int leaf = text_leaf(*reader->parquet_reader()->metadata()->schema(), path, wanted);
  std::vector<int> row_groups(static_cast<size_t>(reader->num_row_groups()));
  for (size_t i = 0; i < row_groups.size(); ++i) row_groups[i] = static_cast<int>(i);
  const auto batches = value_or_fail(reader->GetRecordBatchReader(row_groups, {leaf}), path);
  const auto name = std::make_shared<const std::string>(path.string());
  int64_t row = 0, num_batches = 0;
  std::string repaired;
  const auto where = [&] { return fmt::format("{}:{}", path.string(), row); };
  std::shared_ptr<arrow::RecordBatch> batch;
  while (check(batches->ReadNext(&batch), path), batch != nullptr) {
    const arrow::Type::type type = batch->schema()->field(0)->type()->id();
    if (!arrow::is_base_binary_like(type)) {
      fail(ErrorCode::kInvalid, "{}: column `{}` is of type {}: expected a string", path.string(),
           wanted, batch->schema()->field(0)->type()->ToString());
    }
    const TextColumn column(batch->column_data(0), name, num_batches++);
    for (int64_t i = 0; i < column.num_documents(); ++i) {
      ++row;
      const HeldText held = column.document(i);
      std::string_view text = held;
      if (accept_utf8(text, repaired, options.utf8, where)) visit(text, row);
    }
  }
}

}  // namespace

void read_parquet(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit) {
  try {
    read_batches(path, options, visit);
  } catch (const parquet::ParquetException& error) {
    fail(ErrorCode::kCorrupt, "{}: not a readable Parquet file ({})", path.string(), error.what());
  }
}

}  // namespace skein
