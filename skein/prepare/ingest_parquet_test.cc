// What ingestion takes of Parquet and Arrow, and what it refuses.
#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_dict.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/util/compression.h>
#include <gmock/gmock.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include "tests/data/ingest_testing.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::shared_ptr<arrow::Array> strings(const std::vector<std::optional<std::string>>& texts) {
  arrow::StringBuilder builder;
  for (const auto& text : texts) {
    EXPECT_TRUE((text ? builder.Append(*text) : builder.AppendNull()).ok());
  }
  return builder.Finish().ValueOrDie();
}

class IngestParquet : public Ingest {
 protected:
  using Columns = std::vector<std::pair<std::string, std::shared_ptr<arrow::Array>>>;

  fs::path write_table(const Columns& columns,
                       const std::shared_ptr<parquet::WriterProperties>& properties =
                           parquet::default_writer_properties(),
                       int64_t rows_of_group = 1024) {
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    for (const auto& [name, array] : columns) {
      fields.push_back(arrow::field(name, array->type()));
      arrays.push_back(array);
    }
    const fs::path path = folder_ / "table.parquet";
    const auto file = arrow::io::FileOutputStream::Open(path.string()).ValueOrDie();
    const auto table = arrow::Table::Make(arrow::schema(fields), arrays);
    EXPECT_TRUE(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), file,
                                           rows_of_group, properties)
                    .ok());
    return path;
  }
};

TEST_F(IngestParquet, EveryEncodingGivesTheDocuments) {
  std::vector<std::optional<std::string>> texts;
  Documents wanted;
  for (int i = 0; i < 5000; ++i) {
    if (i % 7 == 0) {
      texts.emplace_back();
      continue;
    }
    texts.emplace_back(fmt::format("document {} {}", i % 100, std::string(i % 500, 'x')));
    wanted.push_back(*texts.back());
  }
  const auto encoded = [](parquet::Encoding::type encoding) {
    parquet::WriterProperties::Builder properties;
    properties.disable_dictionary()->encoding(encoding)->data_pagesize(4096);
    return properties.build();
  };
  using Encoding = parquet::Encoding;
  EXPECT_EQ(ingested({write_table({{"text", strings(texts)}})}), wanted);
  for (const auto encoding :
       {Encoding::PLAIN, Encoding::DELTA_BYTE_ARRAY, Encoding::DELTA_LENGTH_BYTE_ARRAY}) {
    EXPECT_EQ(ingested({write_table({{"text", strings(texts)}}, encoded(encoding), 700)}), wanted);
  }
}

TEST_F(IngestParquet, AColumnIsOneColumn) {
  const auto text = strings({"a"}), other = strings({"b"});
  EXPECT_THAT(error_of({write_table({{"text", text}, {"text", other}})}),
              HasSubstr("has 2 columns named `text` (its columns: text, text): expected one"));
  arrow::Int64Builder numbers;
  ASSERT_TRUE(numbers.Append(1).ok());
  EXPECT_THAT(error_of({write_table({{"text", numbers.Finish().ValueOrDie()}})}),
              HasSubstr("column `text` is of type INT64"));
}

TEST_F(IngestParquet, DocumentsHaveALimit) {
  const fs::path table = write_table({{"text", strings({"short", std::string(5000, 'x')})}});
  EXPECT_THAT(error_of({table}, {.max_document_bytes = 1000}),
              HasSubstr("table.parquet:2: a document of 5000 bytes: expected at most 1000"));
}

// A value of the dictionary is named by a few bits, and is as long as it likes.
TEST_F(IngestParquet, ADictionaryMayBeABomb) {
  arrow::StringDictionary32Builder builder;
  const std::string text(1 << 20, 'x');
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(builder.Append(text).ok());
  parquet::WriterProperties::Builder properties;
  properties.compression(parquet::Compression::ZSTD);
  const fs::path bomb = write_table({{"text", builder.Finish().ValueOrDie()}}, properties.build());
  ASSERT_LT(fs::file_size(bomb), 10'000u);
  EXPECT_THAT(error_of({bomb}), AllOf(HasSubstr("table.parquet: its first "),
                                      HasSubstr("--max-expansion 0 reads it nevertheless")));
  int64_t num_bytes = 0;
  ReadOptions any;
  any.bytes.max_expansion = 0;
  read_documents(bomb, any, [&](std::string_view document, int64_t) {
    num_bytes += static_cast<int64_t>(document.size());
  });
  EXPECT_EQ(num_bytes, int64_t{2000} << 20);
}

// Before anything is decoded: the size that a compressed buffer says it has.
TEST_F(IngestParquet, CompressedArrowMayBeABomb) {
  constexpr int64_t kTextBytes = (int64_t{1} << 20) + 17;
  const auto text = strings({std::string(kTextBytes, 'x')});
  const auto schema = arrow::schema({arrow::field("text", arrow::utf8())});
  auto options = arrow::ipc::IpcWriteOptions::Defaults();
  options.codec = arrow::util::Codec::Create(arrow::Compression::ZSTD).ValueOrDie();
  const fs::path path = folder_ / "bomb.arrow";
  const auto file = arrow::io::FileOutputStream::Open(path.string()).ValueOrDie();
  const auto writer = arrow::ipc::MakeStreamWriter(file, schema, options).ValueOrDie();
  ASSERT_TRUE(writer->WriteRecordBatch(*arrow::RecordBatch::Make(schema, 1, {text})).ok());
  ASSERT_TRUE(writer->Close().ok());
  ASSERT_TRUE(file->Close().ok());
  EXPECT_EQ(ingested({path}), Documents{std::string(kTextBytes, 'x')});

  std::string bytes = read_file(path);
  const auto as_bytes = [](int64_t number) {
    return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  const size_t at = bytes.rfind(as_bytes(kTextBytes));
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, sizeof(int64_t), as_bytes(int64_t{2'000'000'000}));
  EXPECT_THAT(error_of({write("bomb.arrow", bytes)}),
              AllOf(HasSubstr("bomb.arrow: one batch takes more than 1073741824"),
                    HasSubstr("--max-expansion 0")));
}

TEST_F(IngestParquet, TellsHowFarItIs) {
  std::vector<std::optional<std::string>> texts, others;
  for (int i = 0; i < 4000; ++i) {
    texts.emplace_back(
        fmt::format("{} {}", i * 7919, std::string(2000, static_cast<char>('a' + i % 26))));
    others.emplace_back(fmt::format("{}", i * 104729));
  }
  parquet::WriterProperties::Builder properties;
  properties.compression(parquet::Compression::UNCOMPRESSED)->disable_dictionary();
  const fs::path table =
      write_table({{"text", strings(texts)}, {"other", strings(others)}}, properties.build(), 500);
  int64_t num_told = 0, num_documents = 0, num_told_at_half = 0;
  ReadOptions read;
  read.bytes.on_read = [&](int64_t num_bytes) { num_told += num_bytes; };
  read_documents(table, read, [&](std::string_view, int64_t) {
    if (++num_documents == 2000) num_told_at_half = num_told;
  });
  const auto size = static_cast<int64_t>(fs::file_size(table));
  EXPECT_GT(num_told_at_half, size * 4 / 10);
  EXPECT_LT(num_told_at_half, size * 7 / 10);
  EXPECT_GT(num_told, size * 9 / 10);
  EXPECT_LE(num_told, size);
}

}  // namespace
}  // namespace skein
