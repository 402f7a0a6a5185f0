// The column of loss spans, as other writers make it and as damage leaves it.
#include "skein/data/corpus/loss_spans.h"

#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_nested.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <gmock/gmock.h>

#include <cstring>

#include "skein/base/error.h"
#include "skein/data/corpus/corpus.h"
#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

using Numbers = std::vector<std::optional<int64_t>>;
struct Row {
  std::string text;
  std::optional<Numbers> spans;
};

template <typename Builder>
std::shared_ptr<arrow::RecordBatch> batch_of(const std::vector<Row>& rows) {
  auto numbers = std::make_shared<arrow::Int64Builder>();
  Builder lists(arrow::default_memory_pool(), numbers);
  arrow::LargeStringBuilder texts;
  for (const Row& row : rows) {
    EXPECT_TRUE(texts.Append(row.text).ok());
    EXPECT_TRUE((row.spans ? lists.Append() : lists.AppendNull()).ok());
    for (const auto& number : row.spans.value_or(Numbers())) {
      EXPECT_TRUE((number ? numbers->Append(*number) : numbers->AppendNull()).ok());
    }
  }
  const auto text = *texts.Finish(), spans = *lists.Finish();
  const auto schema =
      arrow::schema({arrow::field("text", text->type()), arrow::field(kLossSpans, spans->type())});
  return arrow::RecordBatch::Make(schema, text->length(), {text, spans});
}

template <typename Builder = arrow::LargeListBuilder>
std::string bytes_of(const std::vector<std::vector<Row>>& batches, bool is_stream = true) {
  const auto out = *arrow::io::BufferOutputStream::Create();
  std::shared_ptr<arrow::ipc::RecordBatchWriter> writer;
  for (const auto& rows : batches) {
    const auto batch = batch_of<Builder>(rows);
    if (!writer) {
      writer = is_stream ? *arrow::ipc::MakeStreamWriter(out.get(), batch->schema())
                         : *arrow::ipc::MakeFileWriter(out.get(), batch->schema());
    }
    EXPECT_TRUE(writer->WriteRecordBatch(*batch).ok());
  }
  EXPECT_TRUE(writer->Close().ok());
  return (*out->Finish())->ToString();
}

// The parts that count, with | behind each.
std::vector<std::string> parts_of(const std::string& bytes) {
  const Corpus corpus = Corpus::from_bytes(std::as_bytes(std::span(bytes)), "spans");
  std::vector<std::string> all;
  for (int64_t i = 0; i < corpus.num_documents(); ++i) {
    std::string parts;
    for (const ByteRange& span : corpus.loss_spans(i)) {
      parts += corpus.part(i, span.begin, span.size()).str() + "|";
    }
    all.push_back(parts);
  }
  return all;
}

TEST(LossSpans, AsOtherWritersHaveThem) {
  const std::vector<std::vector<Row>> batches = {
      {{"hello you", Numbers{0, 5, 6, 9}}, {"none", Numbers{}}},
      {},
      {{"null", std::nullopt}, {"", Numbers{0, 0}}, {"é漢", Numbers{1, 1, 2, 5}}}};
  const auto expected = ElementsAre("hello|you|", "", "", "|", "|漢|");
  for (const bool is_stream : {true, false}) {
    EXPECT_THAT(parts_of(bytes_of(batches, is_stream)), expected);
    EXPECT_THAT(parts_of(bytes_of<arrow::ListBuilder>(batches, is_stream)), expected);
  }
}

TEST(LossSpans, WhatCannotBeIsRefused) {
  const auto error = [](Numbers spans) {
    return error_of([&] { parts_of(bytes_of({{{"ab", {}}, {"abcd", std::move(spans)}}})); });
  };
  EXPECT_THAT(error({0, 5}),
              HasSubstr("row 1 has a span of bytes 0 to 5: expected some of 0 to 4"));
  EXPECT_THAT(error({2, 1}), HasSubstr("bytes 2 to 1"));
  EXPECT_THAT(error({-1, 1}), HasSubstr("bytes -1 to 1"));
  EXPECT_THAT(error({0, 3, 2, 4}), HasSubstr("bytes 2 to 4: expected some of 3 to 4, in order"));
  EXPECT_THAT(error({0, 1, 2}), HasSubstr("expected pairs"));
  EXPECT_THAT(error({0, std::nullopt}), HasSubstr("a null in a list"));
}

// A length for which a buffer would have 2^64 bytes, which an int64 takes for none.
TEST(LossSpans, LengthsThatNoBufferHasAreRefused) {
  std::string bytes = bytes_of({{{"abcdefghijk", Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}}});
  const int64_t node[] = {10, 0};  // the child's numbers and its nulls
  const std::string_view found(reinterpret_cast<const char*>(node), sizeof(node));
  const size_t at = bytes.find(found);
  ASSERT_NE(at, std::string::npos);
  for (const int64_t length : {int64_t{1} << 61, int64_t{1} << 57, int64_t{11}}) {
    std::memcpy(bytes.data() + at, &length, sizeof(length));
    EXPECT_THAT(error_of([&] { parts_of(bytes); }), HasSubstr("spans: column `loss_spans`"))
        << length;
  }
}

}  // namespace
}  // namespace skein
