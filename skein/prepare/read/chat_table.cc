#include "skein/prepare/read/chat_table.h"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/properties.h>
#include <parquet/schema.h>

#include <numeric>
#include <utility>

#include "skein/chat/chat_renderer.h"
#include "skein/chat/conversation.h"
#include "skein/chat/table_row.h"
#include "skein/objects/url.h"
#include "skein/prepare/read/json_document.h"

namespace skein {
namespace {

constexpr int64_t kRowsAtOnce = 64;
constexpr int64_t kReadBufferBytes = int64_t{1} << 20;
constexpr int64_t kObjectBufferBytes = int64_t{8} << 20;  // each is a request
constexpr std::string_view kEndOfStream{"\xff\xff\xff\xff\0\0\0\0", 8};

// "`a`, `b`"
std::string quoted(const std::vector<std::string>& columns) {
  std::string list;
  for (const std::string& column : columns) {
    list += fmt::format("{}`{}`", list.empty() ? "" : ", ", column);
  }
  return list;
}

void check_columns(const std::vector<std::string>& columns, const fs::path& path) {
  if (looks_like_conversation(quoted(columns))) return;
  const size_t shown = std::min<size_t>(columns.size(), 20);
  fail(ErrorCode::kInvalid,
       "{}: has no column of conversations (its columns: {}{}): expected `messages`, "
       "`conversations`, `instruction` and `output`, or `prompt` and `completion`",
       path.string(),
       shown == 0 ? "none"
                  : quoted({columns.begin(), columns.begin() + static_cast<int64_t>(shown)}),
       shown < columns.size() ? ", …" : "");
}

// Hands on the documents of batches, one after another.
class RowVisitor {
 public:
  RowVisitor(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit)
      : path_(path),
        options_(options),
        given_(path.string(), options.bytes),
        documents_(options, visit, path.string(), [this] { return where(); }) {}

  // `num_read`: bytes of the file so far.
  void take(const arrow::RecordBatch& batch, int64_t num_read) {
    for (int64_t i = 0; i < batch.num_rows(); ++i) {
      ++row_;
      write_row(batch, i, options_.max_document_bytes, where(), json_);
      given_.add(static_cast<int64_t>(json_.size()), num_read);
      documents_.take(json_, row_);
    }
  }

 private:
  std::string where() const { return fmt::format("{}:{}", path_.string(), row_); }

  const fs::path& path_;
  const ReadOptions& options_;
  GivenRows given_;
  JsonDocuments documents_;
  int64_t row_ = 0;
  std::string json_;
};

bool is_read(const std::string& column, const ReadOptions& options) {
  return is_conversation_key(column) || options.chat->spells(column);
}

std::vector<int> fields_to_read(const arrow::Schema& schema, const fs::path& path,
                                const ReadOptions& options) {
  check_columns(schema.field_names(), path);
  std::vector<int> fields;
  for (int i = 0; i < schema.num_fields(); ++i) {
    if (is_read(schema.field(i)->name(), options)) fields.push_back(i);
  }
  return fields;
}

[[noreturn]] void fail_arrow(const arrow::Status& status, const fs::path& path) {
  fail(ErrorCode::kCorrupt,
       "{}: not a readable Arrow IPC stream or file ({}): damaged, or of another format?",
       path.string(), status.message());
}

template <typename T>
T value_or_fail(arrow::Result<T> result, const fs::path& path) {
  if (!result.ok()) fail_arrow(result.status(), path);
  return std::move(result).ValueUnsafe();
}

template <typename T>
T value_or_throw(arrow::Result<T> result) {
  if (!result.ok()) throw parquet::ParquetException(result.status().message());
  return std::move(result).ValueUnsafe();
}

// Slices of a batch are what is decoded at once, and no copies.
void take_batch(const arrow::RecordBatch& batch, int64_t num_bytes, const fs::path& path,
                RowVisitor& rows) {
  if (const arrow::Status status = batch.ValidateFull(); !status.ok()) fail_arrow(status, path);
  rows.take(batch, num_bytes);
}

}  // namespace

void read_chat_parquet(const fs::path& path, const std::shared_ptr<ArrowInput>& file,
                       arrow::MemoryPool* pool, const ReadOptions& options,
                       const DocumentVisitor& visit) {
  parquet::ReaderProperties properties(pool);
  properties.enable_buffered_stream();
  properties.set_buffer_size(is_object_url(path) ? kObjectBufferBytes : kReadBufferBytes);
  parquet::ArrowReaderProperties of_arrow(false);
  of_arrow.set_batch_size(kRowsAtOnce);
  of_arrow.set_pre_buffer(false);
  parquet::arrow::FileReaderBuilder builder;
  if (const auto status = builder.Open(file, properties); !status.ok()) {
    throw parquet::ParquetException(status.message());
  }
  const auto reader = value_or_throw(builder.memory_pool(pool)->properties(of_arrow)->Build());
  const parquet::SchemaDescriptor& schema = *reader->parquet_reader()->metadata()->schema();
  std::vector<std::string> names;
  for (int i = 0; i < schema.group_node()->field_count(); ++i) {
    names.push_back(schema.group_node()->field(i)->name());
  }
  check_columns(names, path);
  std::vector<int> leaves, groups(static_cast<size_t>(reader->num_row_groups()));
  for (int i = 0; i < schema.num_columns(); ++i) {
    if (is_read(schema.GetColumnRoot(i)->name(), options)) leaves.push_back(i);
  }
  std::iota(groups.begin(), groups.end(), 0);
  const auto batches = value_or_throw(reader->GetRecordBatchReader(groups, leaves));
  RowVisitor rows(path, options, visit);
  int64_t num_told = 0;
  while (const auto batch = value_or_throw(batches->Next())) {
    const int64_t num_read = std::min(file->num_read(), file->num_bytes());
    if (options.bytes.on_read) options.bytes.on_read(num_read - std::exchange(num_told, num_read));
    rows.take(*batch, file->num_read());
  }
}

void read_chat_arrow(std::span<const std::byte> bytes, const fs::path& path,
                     arrow::MemoryPool* pool, const ReadOptions& options,
                     const DocumentVisitor& visit) {
  const auto num_bytes = static_cast<int64_t>(bytes.size());
  const auto input = std::make_shared<arrow::io::BufferReader>(
      std::make_shared<arrow::Buffer>(reinterpret_cast<const uint8_t*>(bytes.data()), num_bytes));
  auto read = arrow::ipc::IpcReadOptions::Defaults();
  read.use_threads = false;
  read.memory_pool = pool;
  RowVisitor rows(path, options, visit);
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (all.starts_with("ARROW1")) {
    using FileReader = arrow::ipc::RecordBatchFileReader;
    const auto schema = value_or_fail(FileReader::Open(input, read), path)->schema();
    read.included_fields = fields_to_read(*schema, path, options);
    const auto reader = value_or_fail(FileReader::Open(input, read), path);
    for (int i = 0; i < reader->num_record_batches(); ++i) {
      take_batch(*value_or_fail(reader->ReadRecordBatch(i), path), num_bytes, path, rows);
    }
    return;
  }
  using StreamReader = arrow::ipc::RecordBatchStreamReader;
  const auto schema = value_or_fail(StreamReader::Open(input, read), path)->schema();
  read.included_fields = fields_to_read(*schema, path, options);
  if (const auto status = input->Seek(0); !status.ok()) fail_arrow(status, path);
  const auto reader = value_or_fail(StreamReader::Open(input, read), path);
  while (const auto batch = value_or_fail(reader->Next(), path)) {
    take_batch(*batch, num_bytes, path, rows);
  }
  // Arrow takes the end of the bytes for the end of the stream.
  const auto end = static_cast<size_t>(value_or_fail(input->Tell(), path));
  if (end < kEndOfStream.size() ||
      all.substr(end - kEndOfStream.size(), kEndOfStream.size()) != kEndOfStream) {
    fail(ErrorCode::kCorrupt, "{}: ends after {} bytes without an end-of-stream mark: truncated?",
         path.string(), end);
  }
}

std::string advice_of_chat(std::span<const std::byte> bytes) {
  const auto input = std::make_shared<arrow::io::BufferReader>(std::make_shared<arrow::Buffer>(
      reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int64_t>(bytes.size())));
  const auto stream = arrow::ipc::RecordBatchStreamReader::Open(input);
  const auto file = arrow::ipc::RecordBatchFileReader::Open(input);
  const std::vector<std::string> columns = stream.ok() ? (*stream)->schema()->field_names()
                                           : file.ok() ? (*file)->schema()->field_names()
                                                       : std::vector<std::string>();
  return looks_like_conversation(quoted(columns)) ? kChatAdvice : "";
}

}  // namespace skein
