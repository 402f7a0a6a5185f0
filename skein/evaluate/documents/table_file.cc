#include "skein/evaluate/documents/table_file.h"

#include <arrow/csv/api.h>
#include <arrow/io/api.h>
#include <arrow/ipc/reader.h>
#include <arrow/json/api.h>
#include <arrow/table.h>
#include <arrow/util/compression.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>

#include <cctype>
#include <memory>
#include <string>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/text/json_text.h"
#include "skein/evaluate/documents/table_values.h"

namespace skein {
namespace {

namespace fs = std::filesystem;
using TablePtr = std::shared_ptr<arrow::Table>;

constexpr int64_t kMostBytes = int64_t{2} << 30;
constexpr int32_t kJsonBlockBytes = 10 << 20;  // as `datasets` reads it: types follow from a block

template <class T>
T valid(arrow::Result<T> result, const fs::path& path) {
  if (!result.ok()) {
    fail(ErrorCode::kInvalid, "{}: cannot be read: {}", path.string(), result.status().message());
  }
  return std::move(result).ValueUnsafe();
}

}  // namespace

std::string decompressed_file(const fs::path& path) {
  std::string text = read_file(path.string());
  if (path.extension() != ".gz") return text;
  auto codec = valid(arrow::util::Codec::Create(arrow::Compression::GZIP), path);
  auto raw = std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(std::move(text)));
  auto stream = valid(arrow::io::CompressedInputStream::Make(codec.get(), raw), path);
  std::string all;
  for (;;) {
    const auto piece = valid(stream->Read(1 << 20), path);
    if (piece->size() == 0) break;
    all += std::string_view(*piece);
    if (static_cast<int64_t>(all.size()) > kMostBytes) {
      fail(ErrorCode::kUnsupported, "{}: has more than {} GiB when decompressed", path.string(),
           kMostBytes >> 30);
    }
  }
  return all;
}

namespace {

std::shared_ptr<arrow::Buffer> bytes_of(const fs::path& path) {
  return arrow::Buffer::FromString(decompressed_file(path));
}

TablePtr read_arrow_table(const fs::path& path) {
  auto input = std::make_shared<arrow::io::BufferReader>(bytes_of(path));
  // `datasets` writes streams; others write files, which begin with a mark.
  const std::string_view bytes(*input->buffer());
  if (bytes.starts_with("ARROW1")) {
    auto reader = valid(arrow::ipc::RecordBatchFileReader::Open(input), path);
    return valid(reader->ToTable(), path);
  }
  auto reader = valid(arrow::ipc::RecordBatchStreamReader::Open(input), path);
  return valid(reader->ToTable(), path);
}

TablePtr read_parquet_table(const fs::path& path) {
  try {
    auto input = std::make_shared<arrow::io::BufferReader>(bytes_of(path));
    auto reader = valid(parquet::arrow::OpenFile(input, arrow::default_memory_pool()), path);
    return valid(reader->ReadTable(), path);
  } catch (const parquet::ParquetException& error) {
    fail(ErrorCode::kInvalid, "{}: cannot be read: {}", path.string(), error.what());
  }
}

// A list of objects, as lines.
std::shared_ptr<arrow::Buffer> lines_of_list(std::string_view bytes, const fs::path& path) {
  const auto list = OrderedJson::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) {
    fail(ErrorCode::kInvalid, "{}: not JSON: expected objects, one a line, or a list of objects",
         path.string());
  }
  std::string lines;
  for (const OrderedJson& item : list) lines += json_text(item) + "\n";
  return arrow::Buffer::FromString(std::move(lines));
}

bool is_list(std::string_view bytes) {
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  return first != bytes.npos && bytes[first] == '[';
}

TablePtr read_json_table(const fs::path& path) {
  auto read = arrow::json::ReadOptions::Defaults();
  read.use_threads = false;
  read.block_size = kJsonBlockBytes;
  auto parse = arrow::json::ParseOptions::Defaults();
  auto bytes = bytes_of(path);
  if (is_list(std::string_view(*bytes))) bytes = lines_of_list(std::string_view(*bytes), path);
  auto input = std::make_shared<arrow::io::BufferReader>(bytes);
  auto reader =
      valid(arrow::json::TableReader::Make(arrow::default_memory_pool(), input, read, parse), path);
  return valid(reader->Read(), path);
}

TablePtr read_csv_table(const fs::path& path) {
  auto read = arrow::csv::ReadOptions::Defaults();
  read.use_threads = false;
  auto parse = arrow::csv::ParseOptions::Defaults();
  parse.newlines_in_values = true;
  auto convert = arrow::csv::ConvertOptions::Defaults();
  convert.strings_can_be_null = true;
  auto input = std::make_shared<arrow::io::BufferReader>(bytes_of(path));
  auto reader = valid(
      arrow::csv::TableReader::Make(arrow::io::default_io_context(), input, read, parse, convert),
      path);
  return valid(reader->Read(), path);
}

// ".jsonl" of "x.jsonl.gz".
std::string ending_of(const fs::path& path) {
  std::string ending = (path.extension() == ".gz" ? path.stem() : path).extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending;
}

TablePtr read_table(const fs::path& path) {
  const std::string ending = ending_of(path);
  if (ending == ".arrow") return read_arrow_table(path);
  if (ending == ".parquet") return read_parquet_table(path);
  if (ending == ".jsonl" || ending == ".json") return read_json_table(path);
  if (ending == ".csv") return read_csv_table(path);
  fail(ErrorCode::kUnsupported, "{}: expected a file .arrow, .parquet, .jsonl, .json or .csv",
       path.string());
}

}  // namespace

bool is_table_file(const fs::path& file) {
  const std::string ending = ending_of(file);
  return ending == ".arrow" || ending == ".parquet" || ending == ".jsonl" || ending == ".json" ||
         ending == ".csv";
}

Documents read_table_files(const std::vector<fs::path>& files) {
  Documents all;
  for (const fs::path& file : files) {
    Documents one = documents_of(*read_table(file), file.string());
    if (all.rows.empty()) {
      all.features = std::move(one.features);
    } else if (one.features != all.features) {
      fail(ErrorCode::kInvalid, "{}: has the columns {}: expected {}, as in {}", file.string(),
           fmt::join(one.features, ", "), fmt::join(all.features, ", "), files.front().string());
    }
    for (auto& row : one.rows) all.rows.push_back(std::move(row));
  }
  return all;
}

}  // namespace skein
