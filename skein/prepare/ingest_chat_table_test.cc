// Conversations in tables: their documents are those of the same rows as JSON lines.
#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/table.h>
#include <gmock/gmock.h>
#include <parquet/arrow/writer.h>

#include "skein/chat/chat_renderer.h"
#include "tests/data/ingest_testing.h"
#include "tests/data/packed_testing.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Message = std::pair<std::string, std::optional<std::string>>;  // role, content
using Messages = std::vector<Message>;
using Columns = std::vector<std::pair<std::string, std::shared_ptr<arrow::Array>>>;

template <typename Builder = arrow::StringBuilder>
std::shared_ptr<arrow::Array> strings(const std::vector<std::optional<std::string>>& texts) {
  Builder builder;
  for (const auto& text : texts) {
    EXPECT_TRUE((text ? builder.Append(*text) : builder.AppendNull()).ok());
  }
  return builder.Finish().ValueOrDie();
}

// list<struct<role, content, tool_calls: list<null>>>, with a null for a row without messages.
std::shared_ptr<arrow::Array> lists(const std::vector<std::optional<Messages>>& rows) {
  auto roles = std::make_shared<arrow::StringBuilder>();
  auto contents = std::make_shared<arrow::LargeStringBuilder>();
  auto scores = std::make_shared<arrow::DoubleBuilder>();
  const auto type = arrow::struct_({arrow::field("role", arrow::utf8()),
                                    arrow::field("content", arrow::large_utf8()),
                                    arrow::field("score", arrow::float64())});
  auto structs = std::make_shared<arrow::StructBuilder>(
      type, arrow::default_memory_pool(),
      std::vector<std::shared_ptr<arrow::ArrayBuilder>>{roles, contents, scores});
  arrow::ListBuilder builder(arrow::default_memory_pool(), structs);
  for (const auto& row : rows) {
    EXPECT_TRUE((row ? builder.Append() : builder.AppendNull()).ok());
    if (!row) continue;
    for (const auto& [role, content] : *row) {
      EXPECT_TRUE(structs->Append().ok() && roles->Append(role).ok() && scores->AppendNull().ok());
      EXPECT_TRUE((content ? contents->Append(*content) : contents->AppendNull()).ok());
    }
  }
  return builder.Finish().ValueOrDie();
}

class IngestChatTable : public Ingest {
 protected:
  static IngestOptions chat(const std::string& source = "", bool skips = false) {
    ChatOptions chat;
    chat.source = chat_template_source("default", {});
    if (!source.empty()) chat.source.source = source;
    IngestOptions options;
    options.chat = std::make_shared<const ChatRenderer>(std::move(chat));
    options.skip_invalid_lines = skips;
    options.max_invalid_lines = 1;
    return options;
  }

  std::shared_ptr<arrow::Table> table_of(const Columns& columns) {
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    for (const auto& [name, array] : columns) {
      fields.push_back(arrow::field(name, array->type()));
      arrays.push_back(array);
    }
    return arrow::Table::Make(arrow::schema(fields), arrays);
  }
  fs::path parquet(const std::string& name, const Columns& columns) {
    const auto file = arrow::io::FileOutputStream::Open((folder_ / name).string()).ValueOrDie();
    constexpr int64_t kRowsOfGroup = 100;
    EXPECT_TRUE(parquet::arrow::WriteTable(*table_of(columns), arrow::default_memory_pool(), file,
                                           kRowsOfGroup)
                    .ok());
    return folder_ / name;
  }
  fs::path arrow_file(const std::string& name, const Columns& columns, bool is_stream) {
    const auto table = table_of(columns);
    const auto file = arrow::io::FileOutputStream::Open((folder_ / name).string()).ValueOrDie();
    const auto writer = (is_stream ? arrow::ipc::MakeStreamWriter(file, table->schema())
                                   : arrow::ipc::MakeFileWriter(file, table->schema()))
                            .ValueOrDie();
    EXPECT_TRUE(writer->WriteTable(*table, 70).ok() && writer->Close().ok());
    return folder_ / name;
  }
};

TEST_F(IngestChatTable, RowsAreConversationsAsLinesAre) {
  std::vector<std::optional<Messages>> rows;
  std::vector<std::optional<std::string>> ids;
  std::string lines;
  for (int i = 0; i < 250; ++i) {  // of several row groups and batches
    const std::string question = fmt::format("naïve \"{}\"\n\\ 漢 😀", i);
    const std::string answer = std::string(static_cast<size_t>(i % 5), 'a');
    rows.push_back(Messages{{"system", "s"}, {"user", question}, {"assistant", answer}});
    ids.emplace_back(std::to_string(i));
    lines += Json{{"messages",
                   {{{"role", "system"}, {"content", "s"}},
                    {{"role", "user"}, {"content", question}},
                    {{"role", "assistant"}, {"content", answer}}}}}
                 .dump() +
             "\n";
  }
  const Documents expected = ingested({write("a.jsonl", lines)}, chat());
  const std::string corpus = read_file(out());
  ASSERT_EQ(expected.size(), 250u);
  const Columns columns = {{"id", strings(ids)}, {"messages", lists(rows)}};
  const fs::path as_parquet = parquet("a.parquet", columns);
  EXPECT_EQ(ingested({as_parquet}, chat()), expected);
  EXPECT_EQ(read_file(out()), corpus);  // loss spans as well
  for (const bool is_stream : {true, false}) {
    ingested({arrow_file("a.arrow", columns, is_stream)}, chat());
    EXPECT_EQ(read_file(out()), corpus) << is_stream;
  }
  ingested({write("x.tar", tar({{"a.parquet", read_file(as_parquet)}}))}, chat());
  EXPECT_EQ(read_file(out()), corpus);
  ingested({write("no_name", read_file(as_parquet))}, chat());
  EXPECT_EQ(read_file(out()), corpus);
}

TEST_F(IngestChatTable, FormsAndVariablesOfATemplate) {
  const Columns sides = {{"prompt", strings({"hi"})}, {"completion", strings({"yes"})}};
  const Columns alpaca = {{"instruction", strings<arrow::LargeStringBuilder>({"hi"})},
                          {"input", strings({std::nullopt})},
                          {"output", strings({"yes"})}};
  const std::string one = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nyes<|im_end|>\n";
  EXPECT_EQ(ingested({parquet("a.parquet", sides), parquet("b.parquet", alpaca)}, chat()),
            (Documents{one, one}));
  // Columns that the template does not spell are not read, so that images may lie beside.
  arrow::Int64Builder numbers;
  ASSERT_TRUE(numbers.Append(7).ok());
  const Columns more = {
      {"messages", lists({Messages{{"user", "hi"}, {"assistant", std::nullopt}}})},
      {"level", numbers.Finish().ValueOrDie()},
      {"tools", strings({"[{\"name\": \"f\"}]"})},
      {"raw", strings<arrow::BinaryBuilder>({"\xff\xfe"})}};
  EXPECT_EQ(ingested({parquet("c.parquet", more)},
                     chat("{{ level }}{{ tools[0].name }}{{ raw }}{% for m in messages %}{{ "
                          "m.content is defined }}{{ m.score is defined }}{% endfor %}")),
            Documents{"7fNoneTrueFalseFalseFalse"});
}

TEST_F(IngestChatTable, ErrorsNameRowAndColumns) {
  const fs::path file =
      parquet("a.parquet",
              {{"messages", lists({Messages{{"user", "a"}}, std::nullopt, Messages{{"", "b"}}})}});
  EXPECT_THAT(error_of({file}, chat()), HasSubstr("a.parquet:2: is no conversation (its keys: "));
  EXPECT_EQ(ingested({file}, chat("", true)).size(), 1u);
  EXPECT_EQ(report_.num_invalid_lines, 2);
  const Columns texts = {{"id", strings({"1"})}, {"text", strings({"a"})}};
  EXPECT_THAT(error_of({parquet("b.parquet", texts)}, chat()),
              HasSubstr("b.parquet: has no column of conversations (its columns: `id`, `text`): "
                        "expected `messages`"));
  EXPECT_THAT(error_of({arrow_file("b.arrow", texts, true)}, chat()),
              HasSubstr("b.arrow: has no column of conversations"));
  const fs::path stream =
      arrow_file("c.arrow", {{"messages", lists({Messages{{"user", "a"}}})}}, true);
  const std::string whole = read_file(stream);
  EXPECT_THAT(error_of({write("c.arrow", whole.substr(0, whole.size() - 8))}, chat()),
              HasSubstr("truncated?"));
  EXPECT_THAT(error_of({write("d.parquet", read_file(file).substr(0, 300))}, chat()),
              HasSubstr("d.parquet: not a readable Parquet file"));
  // Without the option it is named.
  EXPECT_THAT(error_of({file}), HasSubstr("--chat-template renders conversations"));
  write("c.arrow", whole);
  EXPECT_THAT(error_of({stream}), HasSubstr("--chat-template renders conversations"));
  EXPECT_THAT(error_of({parquet("e.parquet", {{"id", strings({"1"})}})}),
              testing::Not(HasSubstr("--chat-template")));
}

}  // namespace
}  // namespace skein
