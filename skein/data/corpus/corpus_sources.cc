#include "skein/data/corpus/corpus_sources.h"

#include <arrow/array.h>
#include <arrow/array/builder_binary.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <arrow/util/align_util.h>
#include <arrow/util/key_value_metadata.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/objects/store.h"

namespace skein {
namespace {

constexpr const char* kNumDocuments = "documents";  // keys of the schema's metadata
constexpr const char* kNumBytes = "bytes";
constexpr const char* kMadeFrom = "made_from";

std::shared_ptr<arrow::Schema> sources_schema(int64_t num_documents = 0, int64_t num_bytes = 0,
                                              const std::string& made_from = "") {
  return arrow::schema(
      {arrow::field("first_document", arrow::int64(), false),
       arrow::field("source", arrow::dictionary(arrow::int32(), arrow::large_utf8()), false),
       arrow::field("first_record", arrow::int64(), false)},
      arrow::key_value_metadata(
          {kNumDocuments, kNumBytes, kMadeFrom},
          {std::to_string(num_documents), std::to_string(num_bytes), made_from}));
}

[[noreturn]] void fail_damaged(const fs::path& path, const std::string& what) {
  fail(ErrorCode::kCorrupt,
       "{}: {}: expected the sources of a corpus; the corpus can be used without this file",
       path.string(), what);
}

// A number that stands alone in `text`.
std::optional<int64_t> number_of(const std::string& text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end && number >= 0 ? std::optional(number) : std::nullopt;
}

template <typename T>
void append_value(Spool& spool, T value) {
  spool.append({reinterpret_cast<const char*>(&value), sizeof(value)});
}

}  // namespace

fs::path sources_of(const fs::path& corpus) { return fs::path(corpus) += kSourcesSuffix; }

// The columns, mapped. Arrow checks that buffers lie in the file and are as long as the batch says.
struct CorpusSources::Table {
  std::shared_ptr<arrow::RecordBatch> batch;
  const int64_t* first_documents = nullptr;
  const int64_t* first_records = nullptr;
  const arrow::DictionaryArray* sources = nullptr;
  const arrow::LargeStringArray* names = nullptr;
};

std::optional<CorpusSources> CorpusSources::beside(const fs::path& corpus) {
  const fs::path path = sources_of(corpus);
  if (is_object_url(path)) {
    const ObjectUrl url = parse_object_url(path.native());
    if (!has_object(url)) return std::nullopt;
    return CorpusSources(path, copy_object(url));
  }
  if (!is_there(path)) return std::nullopt;
  return CorpusSources(path);
}

CorpusSources::CorpusSources(const fs::path& path) : CorpusSources(path, MappedFile(path)) {}

CorpusSources::CorpusSources(const fs::path& path, MappedFile file)
    : path_(path), file_(std::move(file)), table_(std::make_unique<Table>()) {
  const auto check = [&](const arrow::Status& status) {
    if (!status.ok()) fail_damaged(path_, status.message());
  };
  const auto bytes = file_.bytes();
  const auto buffer = std::make_shared<arrow::Buffer>(
      reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int64_t>(bytes.size()));
  const auto opened =
      arrow::ipc::RecordBatchStreamReader::Open(std::make_shared<arrow::io::BufferReader>(buffer));
  check(opened.status());
  if (!(*opened)->schema()->Equals(*sources_schema(), false)) {
    fail_damaged(path_, "columns are " + (*opened)->schema()->ToString());
  }
  const auto metadata = (*opened)->schema()->metadata();
  const auto value = [&](const char* key) {
    return metadata ? metadata->Get(key).ValueOr("") : "";
  };
  const std::optional<int64_t> num_documents = number_of(value(kNumDocuments));
  if (!num_documents) fail_damaged(path_, "it does not say of how many documents");
  num_documents_ = *num_documents;
  num_bytes_ = number_of(value(kNumBytes)).value_or(-1);
  made_from_ = value(kMadeFrom);
  check((*opened)->ReadNext(&table_->batch));
  if (table_->batch == nullptr) fail_damaged(path_, "cut short");
  check(table_->batch->Validate());
  for (const auto& column : table_->batch->column_data()) {
    if (!arrow::util::CheckAlignment(*column, arrow::util::kValueAlignment)) {
      fail_damaged(path_, "its numbers do not lie where numbers can be read");
    }
  }
  const auto values = [&](int column) {
    return static_cast<const arrow::Int64Array&>(*table_->batch->column(column)).raw_values();
  };
  table_->first_documents = values(0);
  table_->first_records = values(2);
  table_->sources = static_cast<const arrow::DictionaryArray*>(table_->batch->column(1).get());
  table_->names = static_cast<const arrow::LargeStringArray*>(table_->sources->dictionary().get());
  check(table_->names->ValidateFull());
  if ((num_documents_ > 0) != (num_runs() > 0)) fail_damaged(path_, "runs and documents disagree");
}

CorpusSources::CorpusSources(CorpusSources&&) noexcept = default;
CorpusSources::~CorpusSources() = default;

int64_t CorpusSources::num_runs() const { return table_->batch->num_rows(); }
int64_t CorpusSources::num_sources() const { return table_->names->length(); }

void CorpusSources::check_is_of(const fs::path& corpus, int64_t num_documents,
                                int64_t num_bytes) const {
  if (num_documents == num_documents_ && (num_bytes_ < 0 || num_bytes == num_bytes_)) return;
  fail(
      ErrorCode::kInvalid,
      "{}: tells of {} documents{}, and {} has {}, of {} bytes: expected the file that was written "
      "with it; remove it, or make the corpus again",
      path_.string(), num_documents_,
      num_bytes_ < 0 ? "" : fmt::format(", of {} bytes of text", num_bytes_), corpus.string(),
      num_documents, num_bytes);
}

SourceRecord CorpusSources::find(int64_t document) const {
  const int64_t* begin = table_->first_documents;
  const int64_t* run = std::upper_bound(begin, begin + num_runs(), document);
  if (document < 0 || document >= num_documents_ || run == begin) {
    fail_damaged(path_, fmt::format("has no document {} (it says that there are {})", document,
                                    num_documents_));
  }
  if (*--run < 0) fail_damaged(path_, fmt::format("a run begins at document {}", *run));
  const int64_t source = table_->sources->GetValueIndex(run - begin);
  if (source < 0 || source >= num_sources()) fail_damaged(path_, "a run has no source");
  int64_t record = 0;
  if (__builtin_add_overflow(table_->first_records[run - begin], document - *run, &record)) {
    fail_damaged(path_, fmt::format("document {} has no record", document));
  }
  return {table_->names->GetView(source), record};
}

CorpusSourcesWriter::CorpusSourcesWriter(const fs::path& corpus, std::string made_from)
    : out_(sources_of(corpus)),
      made_from_(std::move(made_from)),
      first_documents_(unique_partial(out_)),
      sources_(unique_partial(out_)),
      first_records_(unique_partial(out_)) {}

void CorpusSourcesWriter::append(const SourceRecord& source) {
  const int32_t index = source_index(source.path);
  if (index != last_source_ || source.record != next_record_) {
    append_value(first_documents_, num_documents_);
    append_value(sources_, index);
    append_value(first_records_, source.record);
    last_source_ = index;
  }
  next_record_ = source.record + 1;
  ++num_documents_;
}

int32_t CorpusSourcesWriter::source_index(std::string_view path) {
  if (last_source_ >= 0 && names_[static_cast<size_t>(last_source_)] == path) return last_source_;
  if (names_.size() == std::numeric_limits<int32_t>::max()) {
    fail(ErrorCode::kUnsupported, "{}: more than 2^31 sources: use --shards", out_.string());
  }
  const auto [found, is_new] =
      indices_.try_emplace(std::string(path), static_cast<int32_t>(names_.size()));
  if (is_new) names_.emplace_back(path);
  return found->second;
}

void CorpusSourcesWriter::finish(int64_t num_bytes) {
  arrow::LargeStringBuilder builder;
  std::shared_ptr<arrow::Array> names;
  arrow::Status status = builder.AppendValues(names_);
  if (status.ok()) status = builder.Finish(&names);
  if (!status.ok()) fail(ErrorCode::kInternal, "{}: {}", out_.string(), status.message());
  for (Spool* spool : {&first_documents_, &sources_, &first_records_}) spool->flush();
  const auto num_runs = first_documents_.num_bytes() / static_cast<int64_t>(sizeof(int64_t));
  const auto column = [&](const std::shared_ptr<arrow::DataType>& type, const Spool& spool) {
    return arrow::ArrayData::Make(type, num_runs, {nullptr, std::make_shared<Mapped>(spool)}, 0);
  };
  const auto schema = sources_schema(num_documents_, num_bytes, made_from_);
  const auto sources = column(schema->field(1)->type(), sources_);
  sources->dictionary = names->data();
  const auto batch = arrow::RecordBatch::Make(schema, num_runs,
                                              std::vector<std::shared_ptr<arrow::ArrayData>>{
                                                  column(arrow::int64(), first_documents_), sources,
                                                  column(arrow::int64(), first_records_)});
  finished_.emplace(out_);
  write_arrow_stream(*finished_, *batch);
  finished_->sync();
}

}  // namespace skein
