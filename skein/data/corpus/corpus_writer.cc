#include "skein/data/corpus/corpus_writer.h"

#include <arrow/array/data.h>
#include <arrow/buffer.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/data/corpus/corpus_sources.h"
#include "skein/data/corpus/loss_spans.h"
#include "skein/data/corpus/shard_set.h"

namespace skein {
namespace {

constexpr int64_t kAlignment = 8;  // as Arrow's writer has it
constexpr int64_t kCopyBytes = int64_t{64} << 20;
constexpr std::string_view kContinuation = "\xff\xff\xff\xff";

int64_t aligned(int64_t num_bytes) {
  return (num_bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void check(const arrow::Status& status, const fs::path& path) {
  if (!status.ok()) {
    fail(ErrorCode::kInternal, "cannot write {}: {}", path.string(), status.message());
  }
}

// Buffer structs of a record batch's metadata: validity, offsets, text; each a begin and a size.
using Buffers = std::array<int64_t, 6>;

// Arrow's writer puts the offsets before the text. In its metadata their places are exchanged: a
// reader finds a buffer by them.
void put_text_first(std::string& metadata, int64_t offsets_bytes, int64_t text_bytes) {
  const Buffers found{0, 0, 0, offsets_bytes, aligned(offsets_bytes), text_bytes};
  const Buffers wanted{0, 0, aligned(text_bytes), offsets_bytes, 0, text_bytes};
  const std::string_view before(reinterpret_cast<const char*>(found.data()), sizeof(found));
  const size_t at = metadata.find(before);
  if (at == metadata.npos || metadata.find(before, at + 1) != metadata.npos) {
    fail(ErrorCode::kInternal, "Arrow describes a record batch in an unknown way");
  }
  std::memcpy(metadata.data() + at, wanted.data(), sizeof(wanted));
}

// The column of spans, and the bytes of its buffers, padding included.
struct Column {
  std::shared_ptr<arrow::ArrayData> array;
  int64_t num_bytes = 0;
};

Column span_column(const Spool& offsets, const Spool& values, int64_t num_documents) {
  const auto of_offsets = std::make_shared<Mapped>(offsets);
  const auto of_values = std::make_shared<Mapped>(values);
  const int64_t num_values = of_values->size() / static_cast<int64_t>(sizeof(int64_t));
  const auto numbers = arrow::ArrayData::Make(arrow::int64(), num_values, {nullptr, of_values}, 0);
  return {arrow::ArrayData::Make(arrow::large_list(arrow::int64()), num_documents,
                                 {nullptr, of_offsets}, {numbers}, 0),
          aligned(of_offsets->size()) + aligned(of_values->size())};
}

// All that comes before the text: the schema, and the metadata of the record batch with zeros
// behind it, so that they fill kCorpusTextBegin bytes.
std::string corpus_header(const std::shared_ptr<Mapped>& offsets, const Column* spans,
                          int64_t num_documents, int64_t num_bytes, const std::string& shard_of,
                          const fs::path& path) {
  auto options = arrow::ipc::IpcWriteOptions::Defaults();
  options.allow_64bit = true;  // more than 2^31 rows
  options.use_threads = false;
  arrow::FieldVector fields = {arrow::field("text", arrow::large_utf8())};
  if (spans != nullptr) fields.push_back(arrow::field(kLossSpans, spans->array->type));
  const auto schema =
      arrow::schema(std::move(fields),
                    shard_of.empty() ? nullptr : arrow::key_value_metadata({kShardOf}, {shard_of}));
  const auto schema_message = arrow::ipc::SerializeSchema(*schema);
  check(schema_message.status(), path);
  const auto text = std::make_shared<Mapped>(num_bytes, path);
  const auto column =
      arrow::ArrayData::Make(arrow::large_utf8(), num_documents, {nullptr, offsets, text}, 0);
  std::vector<std::shared_ptr<arrow::ArrayData>> columns = {column};
  if (spans != nullptr) columns.push_back(spans->array);
  const auto batch = arrow::RecordBatch::Make(schema, num_documents, std::move(columns));
  arrow::ipc::IpcPayload payload;
  check(arrow::ipc::GetRecordBatchPayload(*batch, options, &payload), path);
  std::string metadata = payload.metadata->ToString();
  put_text_first(metadata, offsets->size(), num_bytes);

  std::string header = (*schema_message)->ToString();
  const auto room = static_cast<size_t>(kCorpusTextBegin) - header.size() - kContinuation.size() -
                    sizeof(int32_t);
  const int64_t spans_bytes = spans != nullptr ? spans->num_bytes : 0;
  if (payload.body_length != aligned(offsets->size()) + aligned(num_bytes) + spans_bytes ||
      header.size() > kCorpusTextBegin / 2 || metadata.size() > room) {
    fail(ErrorCode::kInternal, "Arrow describes a record batch in an unknown way");
  }
  const auto room_bytes = static_cast<int32_t>(room);
  header += kContinuation;
  header.append(reinterpret_cast<const char*>(&room_bytes), sizeof(room_bytes));
  header += metadata;
  header.resize(static_cast<size_t>(kCorpusTextBegin), '\0');
  return header;
}

void write_bytes(int to, std::string_view bytes, const fs::path& path) {
  write_all(to, std::as_bytes(std::span(bytes)), path);
}

void write_padding(int to, int64_t num_bytes, const fs::path& path) {
  write_bytes(to, std::string(static_cast<size_t>(aligned(num_bytes) - num_bytes), '\0'), path);
}

// Whether a file may be renamed into the folder of `out`.
bool is_near(const fs::path& file, const fs::path& out) {
  const fs::path folder = out.has_parent_path() ? out.parent_path() : fs::path(".");
  struct stat of_file {
  }, of_folder{};
  return ::stat(file.c_str(), &of_file) == 0 && ::stat(folder.c_str(), &of_folder) == 0 &&
         of_file.st_dev == of_folder.st_dev;
}

}  // namespace

CorpusWriter::CorpusWriter(const fs::path& out, std::string shard_of, bool has_spans)
    : out_((out.has_parent_path() ? fs::create_directories(out.parent_path()) : false, out)),
      shard_of_(std::move(shard_of)),
      text_(unique_partial(out)),
      offsets_(unique_partial(out)),
      ranges_(unique_partial(out)),
      files_{text_.path()} {
  append_offset();
  if (!has_spans) return;
  spans_.emplace(Spans{Spool(unique_partial(out)), Spool(unique_partial(out))});
  constexpr int64_t kFirst = 0;
  spans_->offsets.append({reinterpret_cast<const char*>(&kFirst), sizeof(kFirst)});
}

void CorpusWriter::append(std::string_view text, std::span<const ByteRange> spans) {
  append(FileRange{0, text_.num_bytes(), static_cast<int64_t>(text.size())}, spans);
  text_.append(text);
}

int64_t CorpusWriter::add_file(const fs::path& path) {
  if (files_.size() == 1 || files_.back() != path) files_.push_back(path);
  return static_cast<int64_t>(files_.size()) - 1;
}

int64_t CorpusWriter::take_file(const fs::path& path) { return taken_file_ = add_file(path); }

void CorpusWriter::append(const FileRange& text, std::span<const ByteRange> spans) {
  append_spans(spans);
  if (text.file == range_.file && text.begin == range_.begin + range_.num_bytes) {
    range_.num_bytes += text.num_bytes;
  } else {
    flush_range();
    range_ = text;
  }
  num_bytes_ += text.num_bytes;
  append_offset();
  ++num_documents_;
}

void CorpusWriter::append_offset() {
  offsets_.append({reinterpret_cast<const char*>(&num_bytes_), sizeof(num_bytes_)});
}

void CorpusWriter::append_spans(std::span<const ByteRange> spans) {
  if (!spans_) return;
  spans_->values.append({reinterpret_cast<const char*>(spans.data()), spans.size_bytes()});
  spans_->num_values += static_cast<int64_t>(spans.size()) * 2;
  spans_->offsets.append(
      {reinterpret_cast<const char*>(&spans_->num_values), sizeof(spans_->num_values)});
}

void CorpusWriter::flush_range() {
  if (range_.num_bytes > 0) {
    ranges_.append({reinterpret_cast<const char*>(&range_), sizeof(range_)});
  }
  range_ = {};
}

bool CorpusWriter::takes_file() const {
  return range_.file == taken_file_ && range_.begin == kCorpusTextBegin &&
         range_.num_bytes == num_bytes_ && is_near(files_[static_cast<size_t>(taken_file_)], out_);
}

void CorpusWriter::copy_text(int to, const fs::path& path) const {
  const Mapped mapped(ranges_);
  const std::span ranges(reinterpret_cast<const FileRange*>(mapped.data()),
                         static_cast<size_t>(mapped.size()) / sizeof(FileRange));
  FileDescriptor opened;
  int64_t opened_file = 0;
  for (const FileRange& range : ranges) {
    const fs::path& source = files_[static_cast<size_t>(range.file)];
    if (range.file != 0 && range.file != opened_file) {
      opened = open_to_read(source);
      opened_file = range.file;
    }
    const int from = range.file == 0 ? text_.fd() : opened.get();
    for (FileRange part = range; part.num_bytes > 0;) {
      const int64_t num_bytes = std::min(kCopyBytes, part.num_bytes);
      copy_bytes({from, part.begin, num_bytes, source}, to, path);
      ::sync_file_range(to, 0, 0, SYNC_FILE_RANGE_WRITE);  // the disk writes meanwhile
      part.begin += num_bytes;
      part.num_bytes -= num_bytes;
    }
  }
}

void CorpusWriter::write(int to, const fs::path& path, bool has_text) const {
  const auto offsets = std::make_shared<Mapped>(offsets_);
  std::optional<Column> spans;  // Arrow writes no list of a batch without rows
  if (spans_ && num_documents_ > 0) {
    spans = span_column(spans_->offsets, spans_->values, num_documents_);
  }
  write_bytes(to,
              corpus_header(offsets, spans ? &*spans : nullptr, num_documents_, num_bytes_,
                            shard_of_, path),
              path);
  if (!has_text) {
    copy_text(to, path);
  } else if (const int64_t end = kCorpusTextBegin + num_bytes_;
             ::ftruncate(to, end) != 0 || ::lseek(to, end, SEEK_SET) != end) {
    fail(errno_code(errno), "cannot write {} at {}: {}", path.string(), end, errno_text(errno));
  }
  write_padding(to, num_bytes_, path);
  copy_bytes({offsets_.fd(), 0, offsets_.num_bytes(), offsets_.path()}, to, path);
  write_padding(to, offsets_.num_bytes(), path);
  for (const Spool* part : spans ? std::vector<const Spool*>{&spans_->offsets, &spans_->values}
                                 : std::vector<const Spool*>{}) {
    copy_bytes({part->fd(), 0, part->num_bytes(), part->path()}, to, path);
    write_padding(to, part->num_bytes(), path);
  }
  write_bytes(to, std::string(kContinuation) + std::string(sizeof(int32_t), '\0'), path);
}

void CorpusWriter::finish() {
  const bool takes = takes_file();
  flush_range();
  for (Spool* spool : {&text_, &offsets_, &ranges_}) spool->flush();
  if (spans_) spans_->offsets.flush(), spans_->values.flush();
  if (takes) {
    finished_.emplace(out_, files_[static_cast<size_t>(taken_file_)]);
  } else {
    finished_.emplace(out_);
  }
  try {
    write(finished_->fd(), finished_->path(), takes);
    finished_->sync();
  } catch (...) {
    finished_.reset();
    throw;
  }
}

void CorpusWriter::commit() {
  if (!finished_) finish();
  finished_->commit();
}

void commit_with_sources(CorpusWriter& corpus, CorpusSourcesWriter& sources) {
  corpus.finish();
  sources.finish(corpus.num_bytes());
  fs::remove(corpus.out());
  sources.commit();
  corpus.commit();
}

}  // namespace skein
