#include "skein/data/corpus/text_column.h"

#include <arrow/array/data.h>
#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/files/lfs_pointer.h"
#include "skein/base/text/json_text.h"
#include "skein/data/corpus/copied_text.h"
#include "skein/data/corpus/text_field.h"

namespace skein {
namespace {

constexpr std::string_view kFileMagic = "ARROW1";
// A stream begins with ff ff ff ff or, before Arrow 0.15, with the bytes of its schema (int32).
constexpr int64_t kMaxSchemaBytes = int64_t{128} << 20;
constexpr int64_t kHeadBytes = 64;  // enough to know what else it may be
constexpr size_t kShownBytes = 16;
constexpr int kGuesses = 4;
constexpr std::string_view kEndOfStream{"\xff\xff\xff\xff\0\0\0\0", 8};

void check_is_arrow(std::string_view bytes, const fs::path& name) {
  if (bytes.empty()) {
    fail(ErrorCode::kInvalid, "{}: is empty: expected an Arrow IPC stream", name.string());
  }
  refuse_lfs_pointer(bytes, name.string());
  if (bytes.starts_with(kFileMagic)) return;
  int32_t first = 0;
  if (bytes.size() >= sizeof(first)) std::memcpy(&first, bytes.data(), sizeof(first));
  if (first == -1 || (first > 0 && first <= kMaxSchemaBytes)) return;
  const std::string shown = ascii_json_text(OrderedJson(std::string(bytes.substr(0, kShownBytes))));
  fail(ErrorCode::kInvalid,
       "{}: is no Arrow file (it begins with {}): expected a corpus; `skein data ingest --out "
       "corpus.arrow --format FORMAT {}` makes one of what it is: text, jsonl, …",
       name.string(), shown, name.string());
}

[[noreturn]] void fail_arrow(const arrow::Status& status, const fs::path& name) {
  if (status.IsOutOfMemory()) {
    fail(ErrorCode::kUnsupported,
         "{}: its buffers are compressed (or foreign-endian) and too large to decode in memory: "
         "expected plain buffers; `skein data ingest --out NEW.arrow {}` rewrites it",
         name.string(), name.string());
  }
  fail(ErrorCode::kCorrupt,
       "{}: not a readable Arrow IPC stream or file ({}): damaged, or of another format?",
       name.string(), status.message());
}

[[noreturn]] void fail_compressed_object(const std::string& name) {
  fail(ErrorCode::kUnsupported,
       "{}: its buffers are compressed (or foreign-endian), which cannot be read from a store in "
       "parts: expected plain buffers; `skein data ingest --out NEW.arrow {}` rewrites it",
       name, name);
}

template <typename T>
T value_or_fail(arrow::Result<T> result, const fs::path& name) {
  if (!result.ok()) fail_arrow(result.status(), name);
  return std::move(result).ValueUnsafe();
}

arrow::ipc::IpcReadOptions options_for(int field, arrow::MemoryPool* pool) {
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;
  options.memory_pool = pool;
  if (field >= 0) options.included_fields = {field};
  return options;
}

using Visitor = std::function<void(const arrow::RecordBatch&, const TextField&)>;

std::shared_ptr<arrow::Schema> read_file_format(const ArrowBytes& bytes, const fs::path& name,
                                                const std::vector<std::string>& columns,
                                                TextTypes types, arrow::MemoryPool* pool,
                                                const Visitor& visit) {
  using Reader = arrow::ipc::RecordBatchFileReader;
  const auto input = std::make_shared<arrow::io::BufferReader>(
      std::make_shared<arrow::Buffer>(reinterpret_cast<const uint8_t*>(bytes.all().data()),
                                      static_cast<int64_t>(bytes.all().size())));
  auto reader = value_or_fail(Reader::Open(input, options_for(-1, pool)), name);
  const std::shared_ptr<arrow::Schema> schema = reader->schema();
  const TextField field = text_field(*schema, name, columns, types);
  if (schema->num_fields() > 1) {
    reader = value_or_fail(Reader::Open(input, options_for(field.column, pool)), name);
  }
  for (int i = 0; i < reader->num_record_batches(); ++i) {
    visit(*value_or_fail(reader->ReadRecordBatch(i), name), field);
  }
  return schema;
}

std::shared_ptr<arrow::Schema> read_stream_format(ArrowBytes& bytes, const fs::path& name,
                                                  const std::vector<std::string>& columns,
                                                  TextTypes types, arrow::MemoryPool* pool,
                                                  const Visitor& visit) {
  using Reader = arrow::ipc::RecordBatchStreamReader;
  auto input = bytes.stream();
  auto reader = value_or_fail(Reader::Open(input, options_for(-1, pool)), name);
  const std::shared_ptr<arrow::Schema> schema = reader->schema();
  const TextField field = text_field(*schema, name, columns, types);
  if (schema->num_fields() > 1) {
    input = bytes.stream();
    reader = value_or_fail(Reader::Open(input, options_for(field.column, pool)), name);
  }
  std::shared_ptr<arrow::RecordBatch> batch;
  while (true) {
    const arrow::Status status = reader->ReadNext(&batch);
    if (!status.ok()) fail_arrow(status, name);
    if (batch == nullptr) break;
    visit(*batch, field);
  }
  // Arrow takes the end of the bytes for the end of the stream, so a file that was cut between two
  // batches would pass for a whole one.
  const int64_t end = value_or_fail(input->Tell(), name);
  constexpr auto kMarkBytes = static_cast<int64_t>(kEndOfStream.size());
  if (bytes.copy(end - kMarkBytes, kMarkBytes) != kEndOfStream) {
    fail(ErrorCode::kCorrupt, "{}: ends after {} bytes without an end-of-stream mark: truncated?",
         name.string(), end);
  }
  return schema;
}

}  // namespace

TextColumn::TextColumn(std::shared_ptr<arrow::ArrayData> array,
                       std::shared_ptr<const std::string> name, int64_t batch, CachedObject* object)
    : array_(std::move(array)), name_(std::move(name)), batch_(batch), object_(object) {
  const arrow::Type::type type = array_->type->id();
  wide_ = type == arrow::Type::LARGE_STRING || type == arrow::Type::LARGE_BINARY;
  const int64_t width = wide_ ? 8 : 4;
  first_ = array_->offset;
  num_documents_ = array_->length;
  const auto size_of = [&](size_t index) {
    const auto& buffer = array_->buffers.at(index);
    return buffer ? buffer->size() : 0;
  };
  const auto address_of = [&](size_t index) {
    return size_of(index) > 0 ? reinterpret_cast<const std::byte*>(array_->buffers[index]->data())
                              : nullptr;
  };
  if (num_documents_ < 0 || first_ < 0) {
    fail(ErrorCode::kCorrupt, "{}: has {} rows", where(), num_documents_);
  }
  if (num_documents_ == 0) return;
  check_is_of_object();
  // An array of n values has n + 1 offsets.
  if (const int64_t stored = size_of(1) / width;
      stored <= first_ || stored - first_ <= num_documents_) {
    fail(ErrorCode::kCorrupt, "{}: {} rows, but only {} offsets", where(), num_documents_, stored);
  }
  validity_ = address_of(0);
  if (validity_ != nullptr && size_of(0) < (first_ + num_documents_ + 7) / 8) {
    fail(ErrorCode::kCorrupt, "{}: {} rows, but a validity bitmap of {} bytes", where(),
         num_documents_, size_of(0));
  }
  offsets_ = address_of(1);
  text_ = reinterpret_cast<const char*>(address_of(2));
  text_bytes_ = size_of(2);
  const int64_t begin = offset_at(0), end = offset_at(num_documents_);
  if (begin < 0 || end < begin || end > text_bytes_) {
    fail(ErrorCode::kCorrupt, "{}: rows 0 to {} are bytes {} to {}: expected some of 0 to {}",
         where(), num_documents_, begin, end, text_bytes_);
  }
  text_begin_ = begin;
  num_bytes_ = end - begin;
}

std::string TextColumn::where() const { return fmt::format("{}: record batch {}", *name_, batch_); }

void TextColumn::check_offsets() const {
  int64_t previous = 0;
  for (int64_t i = 0; i <= num_documents_ && num_documents_ > 0; ++i) {
    const int64_t offset = offset_at(i);
    if (offset < previous || offset > text_bytes_) {
      fail(ErrorCode::kCorrupt, "{}: row {} begins at byte {}: expected {} to {}", where(), i,
           offset, previous, text_bytes_);
    }
    previous = offset;
  }
}

void TextColumn::check_nulls() const {
  if (validity_ == nullptr) return;
  for (int64_t i = 0; i < num_documents_; ++i) {
    if (!is_null(i) || offset_at(i) == offset_at(i + 1)) continue;
    fail(ErrorCode::kUnsupported,
         "{}: row {} is null and has text: expected empty nulls; `skein data ingest --out "
         "NEW.arrow {}` rewrites it",
         where(), i, *name_);
  }
}

// What Arrow decodes lies elsewhere, or is nothing, since it had no bytes to decode.
void TextColumn::check_is_of_object() const {
  if (object_ == nullptr) return;
  const auto all = object_->bytes();
  for (const auto& buffer : array_->buffers) {
    const bool is_offsets = &buffer == &array_->buffers[1];
    if (buffer == nullptr || (buffer->size() == 0 && !is_offsets)) continue;
    const auto* begin = reinterpret_cast<const std::byte*>(buffer->data());
    if (begin >= all.data() && begin + buffer->size() <= all.data() + all.size()) continue;
    fail_compressed_object(*name_);
  }
}

ObjectHold TextColumn::hold(const void* begin, int64_t num_bytes) const {
  if (object_ == nullptr) return {};
  return object_->hold({static_cast<const std::byte*>(begin), static_cast<size_t>(num_bytes)});
}

ObjectHold TextColumn::hold_offsets(int64_t index, int64_t count) const {
  const int64_t width = wide_ ? 8 : 4;
  return hold(offsets_ + (first_ + index) * width, count * width);
}

int64_t TextColumn::offset_at(int64_t index) const {
  const ObjectHold held = hold_offsets(index, 1);
  return held_offset(index);
}

int64_t TextColumn::held_offset(int64_t index) const {
  const std::byte* at = offsets_ + (first_ + index) * (wide_ ? 8 : 4);
  // memcpy, because a malicious file may misalign its buffers.
  if (wide_) {
    int64_t offset;
    std::memcpy(&offset, at, 8);
    return offset;
  }
  int32_t offset;
  std::memcpy(&offset, at, 4);
  return offset;
}

bool TextColumn::is_null(int64_t index) const {
  if (validity_ == nullptr) return false;
  const int64_t bit = first_ + index;
  const ObjectHold held = hold(validity_ + bit / 8, 1);
  return (std::to_integer<int>(validity_[bit / 8]) >> (bit % 8) & 1) == 0;
}

TextColumn::Extent TextColumn::extent(int64_t index) const {
  if (is_null(index)) return {};
  const ObjectHold held = hold_offsets(index, 2);
  const int64_t begin = held_offset(index), end = held_offset(index + 1);
  if (begin < 0 || end < begin || end > text_bytes_) {
    fail(ErrorCode::kCorrupt, "{}: row {} is bytes {} to {}: expected some of 0 to {}", where(),
         index, begin, end, text_bytes_);
  }
  return {begin, end - begin};
}

HeldText TextColumn::document(int64_t index) const {
  return part(index, 0, std::numeric_limits<int64_t>::max());
}

HeldText TextColumn::part(int64_t index, int64_t begin, int64_t num_bytes) const {
  const Extent whole = extent(index);
  begin = std::clamp<int64_t>(begin, 0, whole.num_bytes);
  num_bytes = std::min(num_bytes, whole.num_bytes - begin);
  if (num_bytes <= 0) return {};
  const char* text = text_ + whole.begin + begin;
  return HeldText({text, static_cast<size_t>(num_bytes)}, hold(text, num_bytes));
}

std::span<const std::byte> TextColumn::text_at(int64_t begin, int64_t end) const {
  if (begin >= end) return {};
  return std::as_bytes(std::span(text_ + text_begin_ + begin, static_cast<size_t>(end - begin)));
}

TextColumn::Position TextColumn::find(int64_t position) const {
  // `low` begins at or before the byte that is wanted, `high` after it.
  const int64_t wanted = text_begin_ + position;
  int64_t low = 0, low_offset = text_begin_;
  int64_t high = num_documents_, high_offset = text_begin_ + num_bytes_;
  const auto probe = [&](int64_t at) {
    const int64_t offset = offset_at(at);
    const bool is_low = offset <= wanted;
    (is_low ? low : high) = at;
    (is_low ? low_offset : high_offset) = offset;
    return is_low;
  };
  int64_t guess = 0;
  for (int i = 0; i < kGuesses && high - low > 1; ++i) {
    const double bytes = static_cast<double>(high_offset) - static_cast<double>(low_offset);
    const double before = static_cast<double>(wanted) - static_cast<double>(low_offset);
    const double share = bytes > 0 ? std::clamp(before / bytes, 0.0, 1.0) : 0.5;
    const double rows = share * static_cast<double>(high - low);
    guess = std::clamp(low + static_cast<int64_t>(rows), low + 1, high - 1);
    probe(guess);
  }
  const bool upwards = guess == low;
  for (int64_t step = 1; step < high - low; step *= 2) {
    if (probe(upwards ? low + step : high - step) != upwards) break;
  }
  while (high - low > 1) probe(low + (high - low) / 2);
  const Position found{low, low_offset - text_begin_};
  if (position - found.begin >= document_bytes(low)) {
    fail(ErrorCode::kCorrupt, "{}: no row holds byte {} of its text: the offsets are out of order",
         where(), position);
  }
  return found;
}

std::string first_of(const std::vector<std::string>& names,
                     const std::function<bool(const std::string&)>& has) {
  const auto found = std::find_if(names.begin(), names.end(), has);
  return found == names.end() ? names.front() : *found;
}

std::shared_ptr<arrow::Schema> for_each_text_column(ArrowBytes bytes, const fs::path& name,
                                                    const std::vector<std::string>& columns,
                                                    arrow::MemoryPool* pool,
                                                    const std::function<void(TextColumn)>& visit,
                                                    TextTypes types) {
  const std::string head = bytes.copy(0, kHeadBytes);
  check_is_arrow(head, name);
  const auto shared_name = std::make_shared<const std::string>(name.string());
  int64_t batch_index = 0;
  const Visitor visit_batch = [&](const arrow::RecordBatch& batch, const TextField& field) {
    std::shared_ptr<arrow::ArrayData> data = value_or_fail(column_of(batch, field, pool), name);
    if (is_copied_text(*data->type)) data = copied_text(data, name, pool);
    visit(TextColumn(std::move(data), shared_name, batch_index++, bytes.object()));
  };
  const bool is_file_format = head.starts_with(kFileMagic);
  if (is_file_format && bytes.object() != nullptr) {
    fail(ErrorCode::kUnsupported,
         "{}: is of Arrow's file format (Feather), which is not read from a store: expected a "
         "stream; `skein data ingest --out NEW.arrow {}` rewrites it",
         name.string(), name.string());
  }
  try {
    return is_file_format ? read_file_format(bytes, name, columns, types, pool, visit_batch)
                          : read_stream_format(bytes, name, columns, types, pool, visit_batch);
  } catch (const Error& error) {
    bytes.rethrow();  // what the store said, rather than what Arrow made of it
    const bool decodes =
        std::string_view(error.what()).find("decompress") != std::string_view::npos;
    if (decodes && bytes.object() != nullptr) fail_compressed_object(name.string());
    throw;
  }
}

}  // namespace skein
