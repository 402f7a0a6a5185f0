#include "skein/data/corpus/loss_spans.h"

#include <arrow/array/data.h>
#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "skein/base/error.h"
#include "skein/data/corpus/corpus.h"

namespace skein {
namespace {

[[noreturn]] void fail_damaged(const std::string& name, const std::string& what) {
  fail(ErrorCode::kCorrupt, "{}: column `{}`: {}", name, kLossSpans, what);
}

template <typename T>
T value_or_fail(arrow::Result<T> result, const std::string& name) {
  if (!result.ok()) fail_damaged(name, result.status().message());
  return std::move(result).ValueUnsafe();
}

const std::byte* address_of(const arrow::ArrayData& array, size_t index, int64_t needed,
                            const std::string& name) {
  const auto& buffer = array.buffers.at(index);
  if (needed > 0 && (buffer == nullptr || buffer->size() < needed)) {
    fail_damaged(name, fmt::format("a buffer of {} bytes, {} are needed",
                                   buffer == nullptr ? 0 : buffer->size(), needed));
  }
  return needed > 0 ? reinterpret_cast<const std::byte*>(buffer->data()) : nullptr;
}

template <typename T>
int64_t number_at(const std::byte* numbers, int64_t index) {
  T number;  // a malicious file may misalign its buffers
  std::memcpy(&number, numbers + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return number;
}

// Lengths of a malicious file, whose bytes would not fit an int64.
void check_length(int64_t offset, int64_t length, const std::string& name) {
  constexpr int64_t kMost = int64_t{1} << 58;
  if (offset >= 0 && offset <= kMost && length >= 0 && length <= kMost) return;
  fail_damaged(name, fmt::format("{} numbers from {} on: expected fewer", length, offset));
}

bool is_span_list(const arrow::DataType& type) {
  const bool is_list = type.id() == arrow::Type::LIST || type.id() == arrow::Type::LARGE_LIST;
  return is_list && type.field(0)->type()->id() == arrow::Type::INT64;
}

arrow::ipc::IpcReadOptions options_for(arrow::MemoryPool* pool) {
  auto options = arrow::ipc::IpcReadOptions::Defaults();
  options.use_threads = false;
  options.memory_pool = pool;
  return options;
}

// The batches of the one column, of a file.
template <typename Visit>
void for_each_of_file(std::span<const std::byte> bytes, const std::string& name,
                      arrow::ipc::IpcReadOptions options, Visit visit) {
  using Reader = arrow::ipc::RecordBatchFileReader;
  const auto buffer = std::make_shared<arrow::Buffer>(
      reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int64_t>(bytes.size()));
  const auto input = std::make_shared<arrow::io::BufferReader>(buffer);
  const auto schema = value_or_fail(Reader::Open(input, options), name)->schema();
  options.included_fields = {schema->GetFieldIndex(kLossSpans)};
  const auto reader = value_or_fail(Reader::Open(input, options), name);
  for (int i = 0; i < reader->num_record_batches(); ++i) {
    visit(*value_or_fail(reader->ReadRecordBatch(i), name));
  }
}

// The same of a stream, of which an object's store may hold the bytes.
template <typename Visit>
void for_each_of_stream(ArrowBytes& bytes, const std::string& name,
                        arrow::ipc::IpcReadOptions options, Visit visit) {
  using Reader = arrow::ipc::RecordBatchStreamReader;
  const auto schema = value_or_fail(Reader::Open(bytes.stream(), options), name)->schema();
  options.included_fields = {schema->GetFieldIndex(kLossSpans)};
  const auto reader = value_or_fail(Reader::Open(bytes.stream(), options), name);
  for (std::shared_ptr<arrow::RecordBatch> batch; true;) {
    const arrow::Status status = reader->ReadNext(&batch);
    if (!status.ok()) fail_damaged(name, status.message());
    if (batch == nullptr) return;
    visit(*batch);
  }
}

}  // namespace

std::vector<ByteRange> spans_within(std::span<const ByteRange> spans, const ByteRange& window) {
  std::vector<ByteRange> made;
  for (const ByteRange& span : spans) {
    const ByteRange part{std::max(span.begin, window.begin) - window.begin,
                         std::min(span.end, window.end) - window.begin};
    if (part.size() > 0) made.push_back(part);
  }
  return made;
}

bool has_loss_spans(const arrow::Schema& schema) {
  return schema.GetAllFieldIndices(kLossSpans).size() == 1 &&
         is_span_list(*schema.GetFieldByName(kLossSpans)->type());
}

bool has_loss_spans(std::span<const std::byte> bytes) {
  const auto input = std::make_shared<arrow::io::BufferReader>(std::make_shared<arrow::Buffer>(
      reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int64_t>(bytes.size())));
  const auto stream = arrow::ipc::RecordBatchStreamReader::Open(input);
  if (stream.ok()) return has_loss_spans(*(*stream)->schema());
  const auto file = arrow::ipc::RecordBatchFileReader::Open(input);
  return file.ok() && has_loss_spans(*(*file)->schema());
}

LossSpanColumn::LossSpanColumn(std::shared_ptr<arrow::ArrayData> array,
                               std::shared_ptr<const std::string> name, CachedObject* object)
    : array_(std::move(array)), name_(std::move(name)), object_(object) {
  if (!is_span_list(*array_->type) || array_->child_data.size() != 1 || array_->length < 0 ||
      array_->offset < 0) {
    fail_damaged(*name_, "expected large_list<int64>");
  }
  num_documents_ = array_->length;
  first_ = array_->offset;
  wide_ = array_->type->id() == arrow::Type::LARGE_LIST;
  if (num_documents_ == 0) return;
  check_length(array_->offset, num_documents_, *name_);
  check_is_of_object();
  const int64_t rows = first_ + num_documents_;
  if (array_->buffers.at(0) != nullptr) {
    validity_ = address_of(*array_, 0, (rows + 7) / 8, *name_);
  }
  offsets_ = address_of(*array_, 1, (rows + 1) * (wide_ ? 8 : 4), *name_);
  const arrow::ArrayData& values = *array_->child_data[0];
  check_length(values.offset, values.length, *name_);
  if (values.buffers.at(0) != nullptr && values.null_count != 0) {
    fail_damaged(*name_, "a null in a list: expected numbers");
  }
  num_values_ = values.length;
  const std::byte* begin = address_of(values, 1, (values.offset + num_values_) * 8, *name_);
  values_ = begin == nullptr ? nullptr : begin + values.offset * 8;
}

// What Arrow decodes lies elsewhere.
void LossSpanColumn::check_is_of_object() const {
  if (object_ == nullptr) return;
  const auto all = object_->bytes();
  for (const auto* of : {array_.get(), array_->child_data[0].get()}) {
    for (const auto& buffer : of->buffers) {
      if (buffer == nullptr || buffer->size() == 0) continue;
      const auto* begin = reinterpret_cast<const std::byte*>(buffer->data());
      const bool is_inside =
          begin >= all.data() && buffer->size() <= all.data() + all.size() - begin;
      if (is_inside) continue;
      fail(
          ErrorCode::kUnsupported,
          "{}: the buffers of column `{}` are compressed (or foreign-endian), which cannot be read "
          "from a store in parts: copy the corpus to a disk",
          *name_, kLossSpans);
    }
  }
}

ObjectHold LossSpanColumn::hold(const std::byte* begin, int64_t num_bytes) const {
  if (object_ == nullptr || num_bytes <= 0) return {};
  return object_->hold({begin, static_cast<size_t>(num_bytes)});
}

int64_t LossSpanColumn::offset_at(int64_t index) const {
  return wide_ ? number_at<int64_t>(offsets_, first_ + index)
               : number_at<int32_t>(offsets_, first_ + index);
}

bool LossSpanColumn::is_null(int64_t index) const {
  if (validity_ == nullptr) return false;
  const int64_t bit = first_ + index;
  const ObjectHold held = hold(validity_ + bit / 8, 1);
  return (std::to_integer<int>(validity_[bit / 8]) >> (bit % 8) & 1) == 0;
}

LossSpanColumn::Extent LossSpanColumn::extent(int64_t first, int64_t end) const {
  const int64_t width = wide_ ? 8 : 4;
  const ObjectHold held = hold(offsets_ + (first_ + first) * width, (end - first + 1) * width);
  const Extent found{offset_at(first), offset_at(end)};
  if (found.begin < 0 || found.end < found.begin || found.end > num_values_) {
    fail_damaged(*name_, fmt::format("row {} is values {} to {} of {}", first, found.begin,
                                     found.end, num_values_));
  }
  return found;
}

void LossSpanColumn::read_ahead(int64_t first, int64_t end) const {
  if (object_ == nullptr || first >= end) return;
  const Extent found = extent(first, end);
  hold(values_ + found.begin * 8, (found.end - found.begin) * 8);
}

std::vector<ByteRange> LossSpanColumn::spans(int64_t index, int64_t document_bytes) const {
  if (is_null(index)) return {};
  const auto [begin, end] = extent(index, index + 1);
  if ((end - begin) % 2 != 0) {
    fail_damaged(*name_, fmt::format("row {} is values {} to {} of {}: expected pairs", index,
                                     begin, end, num_values_));
  }
  if (begin == end) return {};
  const ObjectHold held = hold(values_ + begin * 8, (end - begin) * 8);
  std::vector<ByteRange> spans;
  int64_t last = 0;
  for (int64_t i = begin; i < end; i += 2) {
    const ByteRange span{number_at<int64_t>(values_, i), number_at<int64_t>(values_, i + 1)};
    if (span.begin < last || span.end < span.begin || span.end > document_bytes) {
      fail_damaged(*name_,
                   fmt::format("row {} has a span of bytes {} to {}: expected some of {} to {}, "
                               "in order",
                               index, span.begin, span.end, last, document_bytes));
    }
    last = span.end;
    spans.push_back(span);
  }
  return spans;
}

std::vector<LossSpanColumn> loss_span_columns(ArrowBytes bytes, const fs::path& name,
                                              arrow::MemoryPool* pool) {
  const auto shared_name = std::make_shared<const std::string>(name.string());
  std::vector<LossSpanColumn> columns;
  const auto visit = [&](const arrow::RecordBatch& batch) {
    LossSpanColumn column(batch.column_data(0), shared_name, bytes.object());
    if (column.num_documents() > 0) columns.push_back(std::move(column));
  };
  constexpr std::string_view kFileMagic = "ARROW1";
  try {
    bytes.copy(0, kFileMagic.size()) == kFileMagic
        ? for_each_of_file(bytes.all(), *shared_name, options_for(pool), visit)
        : for_each_of_stream(bytes, *shared_name, options_for(pool), visit);
  } catch (const Error&) {
    bytes.rethrow();  // what the store said, rather than what Arrow made of it
    throw;
  }
  return columns;
}

}  // namespace skein
