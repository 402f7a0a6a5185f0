#include <fmt/format.h>
#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/properties.h>
#include <parquet/schema.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "skein/chat/conversation.h"
#include "skein/data/corpus/text_column.h"
#include "skein/data/corpus/text_field.h"
#include "skein/objects/url.h"
#include "skein/prepare/read/bytes/arrow_input.h"
#include "skein/prepare/read/chat_table.h"
#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

constexpr int64_t kReadBufferBytes = int64_t{1} << 20;
constexpr int64_t kObjectBufferBytes = int64_t{8} << 20;  // each is a request

bool is_string(const parquet::ColumnDescriptor& column) {
  const auto& type = *column.logical_type();
  return column.physical_type() == parquet::Type::BYTE_ARRAY &&
         (type.is_none() || type.is_string() || type.is_enum() || type.is_JSON());
}

// Of a structure, so that each row has one value at most.
bool is_nested(const parquet::ColumnDescriptor& column) {
  return column.path()->ToDotVector().size() > 1 && column.max_repetition_level() == 0;
}

// The columns of a schema by their names; of one that is in a structure "data.text".
struct Leaves {
  explicit Leaves(const parquet::SchemaDescriptor& schema) {
    for (int leaf = 0; leaf < schema.num_columns(); ++leaf) {
      const parquet::ColumnDescriptor& column = *schema.Column(leaf);
      const std::string name = column.path()->ToDotString();
      if (names.size() < 200) names += (names.empty() ? "" : ", ") + name;
      outermost += "`" + schema.GetColumnRoot(leaf)->name() + "`";
      by_name.emplace(name, leaf);
      if (is_nested(column) && is_string(column) && is_text_name(column.name())) {
        inside.push_back(name);
      }
    }
  }
  static bool is_text_name(const std::string& name) {
    return std::find(std::begin(kTextColumns), std::end(kTextColumns), name) !=
           std::end(kTextColumns);
  }
  std::string names;      // the first ones
  std::string outermost;  // "`messages``id`"
  std::multimap<std::string, int> by_name;
  std::vector<std::string> inside;  // texts that are in structures
};

// The leaf column that holds the documents.
int text_leaf(const parquet::SchemaDescriptor& schema, const fs::path& path,
              const ReadOptions& options) {
  const Leaves leaves(schema);
  const std::string wanted = first_of(text_columns(options), [&](const std::string& name) {
    return leaves.by_name.contains(name);
  });
  const auto [begin, end] = leaves.by_name.equal_range(wanted);
  std::vector<int> found, plain;  // a column whose own name has the dots goes before one inside
  for (auto leaf = begin; leaf != end; ++leaf) {
    found.push_back(leaf->second);
    const bool is_plain = schema.Column(leaf->second)->path()->ToDotVector().size() == 1;
    if (is_plain) plain.push_back(leaf->second);
  }
  if (!plain.empty()) found = plain;
  if (found.size() != 1) {
    fail(ErrorCode::kInvalid,
         "{}: has {} columns named `{}` (its columns: {}): expected one, a string (--text-column "
         "names another){}{}",
         path.string(), found.size(), wanted, leaves.names.empty() ? "none" : leaves.names,
         looks_like_conversation(leaves.outermost) ? kChatAdvice : "",
         advice_of_places(leaves.inside));
  }
  const parquet::ColumnDescriptor& column = *schema.Column(found[0]);
  if (!is_string(column) || column.max_repetition_level() != 0) {
    fail(ErrorCode::kInvalid, "{}: column `{}` is {}of type {} ({}): expected a string",
         path.string(), wanted, column.path()->ToDotVector().size() == 1 ? "" : "nested, ",
         parquet::TypeToString(column.physical_type()), column.logical_type()->ToString());
  }
  tell_text_column(wanted, options);
  return found[0];
}

// Tells how far a file is by the bytes of its column, which are a part of it.
class ColumnProgress {
 public:
  ColumnProgress(const ArrowInput& file, const parquet::FileMetaData& metadata, int leaf,
                 const ReadOptions& options)
      : file_(file), on_read_(options.bytes.on_read), begin_(file.num_read()) {
    for (int i = 0; i < metadata.num_row_groups(); ++i) {
      num_column_bytes_ +=
          static_cast<double>(metadata.RowGroup(i)->ColumnChunk(leaf)->total_compressed_size());
    }
  }
  void tell() {
    if (!on_read_ || file_.num_read() == num_seen_) return;
    num_seen_ = file_.num_read();
    const double share = static_cast<double>(num_seen_ - begin_) / std::max(1.0, num_column_bytes_);
    const auto done =
        static_cast<int64_t>(std::min(1.0, share) * static_cast<double>(file_.num_bytes()));
    on_read_(done - std::exchange(num_told_, done));
  }

 private:
  const ArrowInput& file_;
  const std::function<void(int64_t)>& on_read_;
  double num_column_bytes_ = 0;
  int64_t begin_, num_seen_ = 0, num_told_ = 0;
};

std::unique_ptr<parquet::ParquetFileReader> open_reader(const fs::path& path,
                                                        std::shared_ptr<ArrowInput> file,
                                                        arrow::MemoryPool* pool) {
  // Reads page by page, not a whole column chunk at once.
  parquet::ReaderProperties properties(pool);
  properties.enable_buffered_stream();
  properties.set_buffer_size(is_object_url(path) ? kObjectBufferBytes : kReadBufferBytes);
  return parquet::ParquetFileReader::Open(std::move(file), properties);
}

void read_rows(const fs::path& path, const std::shared_ptr<ArrowInput>& file,
               arrow::MemoryPool* pool, const ReadOptions& options, const DocumentVisitor& visit) {
  const auto reader = open_reader(path, file, pool);
  const parquet::FileMetaData& metadata = *reader->metadata();
  const int leaf = text_leaf(*metadata.schema(), path, options);
  const int16_t defined = metadata.schema()->Column(leaf)->max_definition_level();
  ColumnProgress progress(*file, metadata, leaf, options);
  int64_t row = 0;
  GivenRows given(path.string(), options.bytes);
  std::string repaired;
  const auto where = [&] { return fmt::format("{}:{}", path.string(), row); };
  for (int group = 0; group < metadata.num_row_groups(); ++group) {
    const auto column =
        std::static_pointer_cast<parquet::ByteArrayReader>(reader->RowGroup(group)->Column(leaf));
    const int64_t begin = row, num_rows = metadata.RowGroup(group)->num_rows();
    while (column->HasNext()) {
      // One at a time: it lies in its page or in the dictionary, and only there, however often the
      // dictionary's are repeated.
      parquet::ByteArray value;
      int16_t level = 0;
      int64_t num_values = 0;
      if (column->ReadBatch(1, &level, nullptr, &value, &num_values) == 0) break;
      ++row;
      const bool is_null = num_values == 0 || (defined > 0 && level < defined);
      std::string_view text;
      if (!is_null) text = {reinterpret_cast<const char*>(value.ptr), value.len};
      if (static_cast<int64_t>(text.size()) > options.max_document_bytes) {
        fail(ErrorCode::kUnsupported, "{}: a document of {} bytes: expected at most {}; split it",
             where(), text.size(), options.max_document_bytes);
      }
      given.add(static_cast<int64_t>(text.size()), file->num_read());
      progress.tell();
      if (accept_utf8(text, repaired, options.utf8, where)) visit(text, row);
    }
    if (row - begin != num_rows) {
      fail(ErrorCode::kCorrupt, "{}: row group {} has {} rows, but says {}: damaged?",
           path.string(), group, row - begin, num_rows);
    }
  }
}

std::string head_of(ArrowInput& file) {
  std::string head(kForeignHeadBytes, '\0');
  const auto count = file.ReadAt(0, static_cast<int64_t>(head.size()), head.data());
  return head.substr(0, count.ok() ? static_cast<size_t>(*count) : 0);
}

}  // namespace

void read_parquet(const fs::path& path, const ReadOptions& options, const DocumentVisitor& visit,
                  std::unique_ptr<RangeReader> spooled) {
  const auto file = spooled ? std::make_shared<ArrowInput>(std::move(spooled))
                            : std::make_shared<ArrowInput>(path);
  DecodingMemory memory(file->num_bytes(), options.bytes.max_expansion);
  try {
    options.chat != nullptr ? read_chat_parquet(path, file, &memory, options, visit)
                            : read_rows(path, file, &memory, options, visit);
  } catch (const parquet::ParquetException& error) {
    file->rethrow();  // what disk or store said, rather than what Parquet made of it
    memory.check(path.string());
    refuse_other_table(head_of(*file), path, InputFormat::kParquet);
    fail(ErrorCode::kCorrupt,
         "{}: not a readable Parquet file ({}): damaged, or of another format?", path.string(),
         error.what());
  }
}

}  // namespace skein
