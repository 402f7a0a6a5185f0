// Conversations become documents, and say which of their bytes the assistant wrote.
#include <gmock/gmock.h>

#include "skein/chat/chat_renderer.h"
#include "skein/data/corpus/loss_spans.h"
#include "tests/data/ingest_testing.h"
#include "tests/data/packed_testing.h"

namespace skein {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kPipes[] =
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ eos_token }}{% "
    "endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";

class IngestChat : public Ingest {
 protected:
  static IngestOptions with(ChatTemplateSource source, bool finds_spans = true) {
    ChatOptions chat;
    chat.source = std::move(source);
    chat.finds_spans = finds_spans;
    IngestOptions options;
    options.chat = std::make_shared<const ChatRenderer>(std::move(chat));
    return options;
  }
  static IngestOptions chat_ml() { return with(chat_template_source("default", {})); }
  static IngestOptions pipes() {
    return with({"pipes", kPipes, {{"bos_token", "<s>"}, {"eos_token", "</s>"}}});
  }

  // The parts of each document that count, with | between them.
  Documents completions() const {
    const Corpus corpus(out());
    EXPECT_TRUE(corpus.has_loss_spans());
    Documents all;
    for (int64_t i = 0; i < corpus.num_documents(); ++i) {
      std::string parts;
      for (const ByteRange& span : corpus.loss_spans(i)) {
        parts += corpus.document(i).str().substr(static_cast<size_t>(span.begin),
                                                 static_cast<size_t>(span.size())) +
                 "|";
      }
      all.push_back(parts);
    }
    return all;
  }
};

TEST_F(IngestChat, TheFormsOfConversations) {
  const std::string one =
      "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nhello<|im_end|>\n";
  const auto messages = write(
      "a.jsonl",
      R"({"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]})");
  const auto sharegpt = write(
      "b.json",
      R"([{"id": "1", "conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}]}])");
  const auto alpaca = write("c.json", R"([{"instruction": "add", "input": "1 1", "output": "2"}])");
  const auto prompt = write("d.jsonl",
                            "{\"prompt\": \"hi\", \"completion\": \"hello\"}\n"
                            "{\"prompt\": \"hi\", \"response\": \"hello\", \"id\": 3}\n");
  const auto lists = write(
      "e.jsonl",
      R"({"prompt": [{"role": "user", "content": "hi"}], "completion": [{"role": "assistant", "content": "hello"}]})");
  EXPECT_EQ(ingested({messages, sharegpt, alpaca, prompt, lists}, chat_ml()),
            (Documents{one, one,
                       "<|im_start|>user\nadd\n1 1<|im_end|>\n<|im_start|>assistant\n2<|im_end|>\n",
                       one, one, one}));
  EXPECT_THAT(completions(),
              ElementsAre("hello<|im_end|>|", "hello<|im_end|>|", "2<|im_end|>|",
                          "hello<|im_end|>|", "hello<|im_end|>|", "hello<|im_end|>|"));
}

// Without {% generation %}: from the end of the prompt to the end of the turn.
TEST_F(IngestChat, CompletionsAreFoundByRenderingBeginnings) {
  const auto file = write("a.jsonl", R"({"messages": [
      {"role": "system", "content": "be brief"}, {"role": "user", "content": "é?"},
      {"role": "assistant", "content": "漢"}, {"role": "user", "content": "b"},
      {"role": "assistant", "content": "c"}]})" +
                                         std::string());
  std::string line = read_file(file);
  std::erase(line, '\n');
  write("a.jsonl", line);
  EXPECT_EQ(ingested({file}, pipes()),
            (Documents{"<s><|system|>be brief</s><|user|>é?</s><|assistant|>漢</s><|user|>b</s>"
                       "<|assistant|>c</s>"}));
  EXPECT_THAT(completions(), ElementsAre("漢</s>|c</s>|"));
}

// OpenAI's "weight", and "train".
TEST_F(IngestChat, MessagesOfWeightZeroAreNoCompletions) {
  const char* const object =
      R"({"messages": [{"role": "user", "content": "a"},
          {"role": "assistant", "content": "x", "weight": 0}, {"role": "user", "content": "b"},
          {"role": "assistant", "content": "y", "weight": 1},
          {"role": "assistant", "content": "z", "train": false}]})";
  std::string line = object;
  std::erase(line, '\n');
  const auto file = write("a.jsonl", line);
  ingested({file}, pipes());
  EXPECT_THAT(completions(), ElementsAre("y</s>|"));
  ingested({file}, chat_ml());
  EXPECT_THAT(completions(), ElementsAre("y<|im_end|>|"));
}

TEST_F(IngestChat, WhatTheTemplateForgetsOfABeginningIsAnError) {
  // Only the last turn keeps its thoughts, as with Qwen 3.
  const char* const source =
      "{% for m in messages %}<{{ m.role }}>{% if loop.last %}{{ m.content }}{% else %}"
      "{{ m.content.split('/')[-1] }}{% endif %}{% endfor %}";
  const auto file = write(
      "a.jsonl",
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "x/b"}, {"role": "user", "content": "c"}]})");
  EXPECT_THAT(error_of({file}, with({"forgets", source, {}})),
              AllOf(HasSubstr("a.jsonl:1: the template renders the first 2 messages otherwise"),
                    HasSubstr("--no-completions")));
  EXPECT_EQ(ingested({file}, with({"forgets", source, {}}, false)),
            (Documents{"<user>a<assistant>b<user>c"}));
  EXPECT_FALSE(Corpus(out()).has_loss_spans());
}

TEST_F(IngestChat, ErrorsNameLineKeyAndWhatWasExpected) {
  const auto error = [&](const std::string& object) {
    return error_of({write("a.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}\n" + object)},
                    chat_ml());
  };
  EXPECT_THAT(error(R"({"messages": [{"role": "user", "content": 3}]})"),
              HasSubstr("a.jsonl:2: `messages[0].content` is a number: expected a string"));
  EXPECT_THAT(error(R"({"messages": [{"content": "a"}]})"),
              HasSubstr("a.jsonl:2: `messages[0].role` is missing: expected a string"));
  EXPECT_THAT(
      error(R"({"conversations": [{"from": "narrator", "value": "a"}]})"),
      HasSubstr("`conversations[0].from` is \"narrator\": expected human, gpt, system or tool"));
  EXPECT_THAT(error(R"({"instruction": "a", "output": null})"),
              HasSubstr("a.jsonl:2: is no conversation (its keys: `instruction`, `output`)"));
  EXPECT_THAT(error(R"({"messages": []})"),
              HasSubstr("a.jsonl:2: a conversation without messages"));
  EXPECT_THAT(error("{\"messages\": ["), HasSubstr("a.jsonl:2: not valid JSON"));
  const auto skips = [&] {
    IngestOptions options = chat_ml();
    options.skip_invalid_lines = true;
    return options;
  };
  EXPECT_EQ(ingested({folder_ / "a.jsonl"}, skips()).size(), 1u);
  EXPECT_EQ(report_.num_invalid_lines, 1);
}

// Each conversation has the completion of its own, wherever its file lies.
TEST_F(IngestChat, InArchivesAndBesideOtherFiles) {
  const auto object = [](const std::string& answer) {
    return R"({"prompt": "hi", "completion": ")" + answer + "\"}\n";
  };
  write("in/a.tar", tar({{"a.jsonl", object("one") + object("second")},
                         {"notes.txt", "no conversation"},
                         {"b.csv", "text\nno conversation\n"},
                         {"c.json", "[" + object("3") + "]"}}));
  write("in/b.txt", "no conversation");
  write("in/c.csv", "text\nno conversation\n");
  write("in/d.jsonl", object("last"));
  EXPECT_EQ(ingested({folder_ / "in"}, chat_ml()).size(), 4u);
  EXPECT_THAT(completions(), ElementsAre("one<|im_end|>|", "second<|im_end|>|", "3<|im_end|>|",
                                         "last<|im_end|>|"));
  EXPECT_EQ(report_.num_skipped_files, 4);
}

TEST_F(IngestChat, WithoutTheOptionItIsNamed) {
  EXPECT_THAT(error_of({write("a.jsonl", R"({"messages": [{"role": "user", "content": "hi"}]})")}),
              HasSubstr("--chat-template renders conversations"));
  EXPECT_THAT(error_of({write("b.jsonl", R"({"prompt": "hi"})")}),
              testing::Not(HasSubstr("--chat-template")));
  EXPECT_THAT(error_of({write("c.csv", "messages\nhi\n")}, chat_ml()),
              AllOf(HasSubstr("c.csv: a table: --chat-template renders conversations"),
                    HasSubstr("`python3 -c ")));
}

// Its prompt leaves the last turn out, so that a completion would begin within the one before.
TEST_F(IngestChat, CompletionsThatOverlapAreAnError) {
  const char* const source =
      "{% for m in messages %}{% if not (add_generation_prompt and loop.last) %}<{{ m.content }}>"
      "{% endif %}{% endfor %}";
  const auto file = write(
      "a.jsonl",
      R"({"messages": [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]})");
  EXPECT_THAT(error_of({file}, with({"forgets", source, {}})),
              HasSubstr("a.jsonl:1: the template renders the first 2 messages otherwise"));
}

// As Python's json writes them.
TEST_F(IngestChat, LoneSurrogatesAndNumbersThatAreNone) {
  const auto file =
      write("a.jsonl", R"({"prompt": "a", "completion": "ok \ud83d\ude00 \\ud83d NaN", "x": NaN})"
                       "\n"
                       R"({"prompt": "b", "completion": "cut \ud83d", "x": [-Infinity, 1]})"
                       "\n");
  EXPECT_THAT(error_of({file}, chat_ml()),
              AllOf(HasSubstr("a.jsonl:2: half of a character stands alone"),
                    HasSubstr("--invalid-utf8 replace takes it for U+FFFD"),
                    testing::Not(HasSubstr("--skip-invalid-lines"))));
  IngestOptions options = chat_ml();
  options.invalid_utf8 = InvalidUtf8::kReplace;
  ingested({file}, options);
  EXPECT_THAT(completions(), ElementsAre("ok 😀 \\ud83d NaN<|im_end|>|", "cut \ufffd<|im_end|>|"));
  EXPECT_EQ(report_.num_invalid_utf8, 1);
  options.invalid_utf8 = InvalidUtf8::kSkip;
  EXPECT_EQ(ingested({file}, options).size(), 1u);
}

// Rendering each beginning of very many turns would take for ever.
TEST_F(IngestChat, VeryManyTurnsNeedATemplateThatMarksThem) {
  std::string line = "{\"messages\": [";
  for (int i = 0; i < 20'000; ++i) {
    line += fmt::format("{}{{\"role\": \"assistant\", \"content\": \"\"}}", i > 0 ? "," : "");
  }
  const auto file = write("a.jsonl", line + "]}");
  EXPECT_THAT(error_of({file}, with({"none", "{% set x = 1 %}", {}})),
              AllOf(HasSubstr("a.jsonl:1: 20000 messages"), HasSubstr("--no-completions")));
  EXPECT_EQ(ingested({file}, chat_ml()).size(), 1u);
}

TEST_F(IngestChat, ToolsReasoningAndOtherKeysReachTheTemplate) {
  const char* const source =
      "{{ tools|tojson }}{{ level }}{% for m in messages %}[{{ m.thinking }}{{ "
      "m.reasoning_content }}{{ m.content is defined }}{{ m.tool_calls[0].name }}]{% endfor %}{{ "
      "documents }}";
  const auto file = write(
      "a.jsonl",
      R"({"tools": "[{\"b\": 1, \"a\": 2.0}]", "level": 3, "messages": [{"role": "assistant", "content": null, "reasoning": "r", "tool_calls": [{"name": "f"}]}]})");
  EXPECT_EQ(ingested({file}, with({"t", source, {}}, false)),
            (Documents{"[{\"b\": 1, \"a\": 2.0}]3[rrFalsef]None"}));
}

TEST_F(IngestChat, TheTemplateOfATokenizersFolder) {
  write(
      "tok/tokenizer_config.json",
      R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": [{"name": "rag", "template": "x"}, {"name": "default", "template": "{{ bos_token }}!"}]})");
  ChatTemplateSource found = chat_template_source((folder_ / "tok").string(), {});
  EXPECT_EQ(found.source, "{{ bos_token }}!");
  EXPECT_EQ(found.tokens,
            (std::map<std::string, std::string>{{"bos_token", "<s>"}, {"eos_token", "</s>"}}));
  write("tok/chat_template.jinja", "own");
  EXPECT_EQ(chat_template_source("", folder_ / "tok").source, "own");
  EXPECT_EQ(chat_template_source((folder_ / "tok/chat_template.jinja").string(), {})
                .tokens.at("eos_token"),
            "</s>");
  EXPECT_THAT(test::error_of([&] { chat_template_source((folder_ / "none").string(), {}); }),
              HasSubstr("there is no such file or folder"));
  write("bare/tokenizer_config.json", "{}");
  EXPECT_THAT(test::error_of([&] { chat_template_source((folder_ / "bare").string(), {}); }),
              HasSubstr("has neither chat_template.jinja nor"));
}

TEST_F(IngestChat, TheCorpusIsRefusedWhereItsSpansWouldBeLost) {
  ingested({write("a.jsonl", R"({"prompt": "hi", "completion": "yes"})")}, chat_ml());
  fs::copy(out(), folder_ / "chat.arrow");
  EXPECT_THAT(error_of({folder_ / "chat.arrow"}),
              AllOf(HasSubstr("chat.arrow: says which bytes are completions"),
                    HasSubstr("render them last")));
}

TEST_F(IngestChat, AHoldOutAndShardsKeepTheirSpans) {
  std::string lines;
  for (int i = 0; i < 200; ++i) {
    lines += fmt::format("{{\"prompt\": \"p{}\", \"completion\": \"c{}\"}}\n", i, i);
  }
  const std::string big(3 << 19, 'x');  // cut for the hold-out
  lines += fmt::format("{{\"prompt\": \"p\", \"completion\": \"{}\"}}\n", big);
  IngestOptions options = chat_ml();
  options.validation_out = folder_ / "held.arrow";
  options.validation_fraction = 0.1;
  ingested({write("a.jsonl", lines)}, options);
  int64_t bytes = 0;
  for (const char* name : {"out.arrow", "held.arrow"}) {
    const Corpus corpus(folder_ / name);
    ASSERT_TRUE(corpus.has_loss_spans());
    for (int64_t i = 0; i < corpus.num_documents(); ++i) {
      for (const ByteRange& span : corpus.loss_spans(i)) bytes += span.size();
    }
  }
  const int64_t marks = 201 * static_cast<int64_t>(std::string("<|im_end|>").size());
  EXPECT_EQ(bytes, static_cast<int64_t>(big.size()) + marks + 10 * 2 + 90 * 3 + 100 * 4);
}

TEST_F(IngestChat, ACorpusWithoutTheOptionIsAsItWas) {
  ingested({write("a.jsonl", R"({"text": "hi"})")});
  EXPECT_EQ(read_file(out()).find("loss_spans"), std::string::npos);
  EXPECT_FALSE(Corpus(out()).has_loss_spans());
}

}  // namespace
}  // namespace skein
