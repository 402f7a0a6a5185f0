// testdata/requests/cases.txt is made by scripts/goldens/evaluation_requests.py.
#include "skein/evaluate/requests/requests.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>

#include "skein/base/error.h"
#include "skein/base/text/json.h"
#include "skein/evaluate/requests/document_functions.h"
#include "skein/evaluate/tasks/read_task.h"
#include "skein/evaluate/yaml/yaml_value.h"
#include "skein/jinja/values/json_value.h"
#include "skein/jinja/values/printed.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

// {"!function": NAME, "folder": FOLDER} as what YAML's !function gives.
Value with_functions(const Value& value) {
  if (value.is(Kind::kSequence)) {
    std::vector<Value> items;
    for (const Value& item : value.as_sequence().items) items.push_back(with_functions(item));
    return Value::list(std::move(items));
  }
  if (!value.is(Kind::kDict)) return value;
  if (const Value* const name = value.as_dict().find("!function")) {
    auto function = std::make_shared<YamlFunction>();
    function->name = name->text();
    // Of the harness's own tasks, the folder is a whole path.
    const std::filesystem::path folder = value.as_dict().find("folder")->text();
    function->file = ("/no/such/folder" / folder / "task.yaml").string();
    return Value::of(Kind::kCallable, std::move(function));
  }
  auto made = std::make_shared<jinja::Dict>();
  for (const auto& [key, item] : value.as_dict().entries) made->set(key, with_functions(item));
  return Value::of(Kind::kDict, std::move(made));
}

std::string python_text(const Value& value) {
  jinja::Budget budget{jinja::Limits{}};
  return represented(value, budget);
}

std::string chat(const std::vector<ChatMessage>& messages, bool add_generation_prompt) {
  std::string text;
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto& [role, content] = messages[i];
    text += "<" + role + ">" + content;
    if (add_generation_prompt || i + 1 < messages.size()) text += "</" + role + ">\n";
  }
  return add_generation_prompt ? text + "<assistant>" : text;
}

RequestOptions options_of(const jinja::Dict& written) {
  RequestOptions options;
  if (const Value* const shots = written.find("num_fewshot"))
    options.num_fewshot = shots->as_integer();
  if (const Value* const limit = written.find("limit")) options.limit = limit->as_float();
  if (const Value* const seed = written.find("seed"))
    options.seed = static_cast<uint64_t>(seed->as_integer());
  if (const Value* const system = written.find("system"))
    options.system_instruction = system->text();
  if (written.find("chat") != nullptr) options.chat_template = chat;
  if (const Value* const multiturn = written.find("multiturn"))
    options.fewshot_as_multiturn = multiturn->as_bool();
  return options;
}

std::vector<Value> rows_of(const jinja::Dict& splits, const std::optional<std::string>& name) {
  const Value* const rows = name ? splits.find(*name) : nullptr;
  return rows != nullptr ? rows->as_sequence().items : std::vector<Value>{};
}

// What is made of a document, as the golden has it.
Value outcome(const DocumentRequests& made) {
  constexpr const char* kKinds[] = {"loglikelihood", "loglikelihood_rolling", "generate_until"};
  std::vector<Value> choices, requests;
  for (const std::string& choice : made.choices) choices.push_back(Value::string(choice));
  for (const EvaluationRequest& request : made.requests) {
    EXPECT_EQ(request.document, made.document);
    EXPECT_EQ(request.index, static_cast<int64_t>(requests.size()));
    std::vector<Value> parts = {Value::string(kKinds[static_cast<size_t>(request.kind)])};
    if (request.kind != EvaluationRequest::Kind::kRolling)
      parts.push_back(Value::string(request.context));
    if (request.kind != EvaluationRequest::Kind::kGenerateUntil)
      parts.push_back(Value::string(request.continuation));
    requests.push_back(Value::list(std::move(parts)));
  }
  auto dict = std::make_shared<jinja::Dict>();
  dict->set(Value::string("text"), Value::string(python_text(made.text)));
  dict->set(Value::string("target"), Value::string(python_text(made.target)));
  dict->set(Value::string("choices"), Value::list(std::move(choices)));
  dict->set(Value::string("requests"), Value::list(std::move(requests)));
  return Value::of(Kind::kDict, std::move(dict));
}

Value outcome(const jinja::Dict& golden) {
  const TaskConfig config = read_task(with_functions(*golden.find("config")), "made.yaml", "");
  const jinja::Dict& splits = golden.find("splits")->as_dict();
  TaskRequests requests(config, rows_of(splits, tested_split(config)),
                        rows_of(splits, few_shot_split(config)),
                        options_of(golden.find("options")->as_dict()));
  std::vector<Value> documents;
  while (const auto made = requests.next()) documents.push_back(outcome(*made));
  EXPECT_EQ(static_cast<int64_t>(documents.size()), requests.num_documents());
  return Value::list(std::move(documents));
}

// The harness takes these, and Skein refuses them: no score can come of them.
const std::map<std::string, std::string> kRefused = {
    {"choices_text", "doc_to_choice"},
};

struct Counts {
  int64_t cases = 0, requests = 0, refused = 0, errors = 0;
};

void expect_golden(const Value& root, bool is_own, Counts& counts) {
  const jinja::Dict& golden = root.as_dict();
  const std::string& name = golden.find("name")->text();
  const Value* const expected = golden.find("expected");
  ++counts.cases;
  try {
    const std::string made = python_text(outcome(golden));
    ASSERT_NE(expected, nullptr) << name << ": the harness stops with "
                                 << python_text(*golden.find("error")) << "; made " << made;
    ASSERT_EQ(made, python_text(*expected)) << name;
    for (const Value& document : expected->as_sequence().items)
      counts.requests += length_of(*document.as_dict().find("requests"));
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).rfind("task " + name + ": ", 0), 0U) << error.what();
    counts.errors += expected == nullptr ? 1 : 0;
    counts.refused += expected == nullptr ? 0 : 1;
    if (expected == nullptr) return;
    if (is_own) {
      EXPECT_TRUE(kRefused.count(name) > 0) << error.what();
    } else {
      fmt::print("refused, though the harness takes it: {}\n", error.what());
    }
  }
}

Counts expect_goldens(const std::filesystem::path& path, bool is_own) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  Counts counts;
  for (std::string line; std::getline(file, line);)
    expect_golden(jinja::json_value(line, path.string()), is_own, counts);
  return counts;
}

TEST(TaskRequests, AreThoseOfTheHarness) {
  const auto folder = std::filesystem::path(__FILE__).parent_path().parent_path();
  const Counts counts = expect_goldens(folder / "testdata/requests/cases.txt", true);
  EXPECT_GT(counts.cases, 200);
  EXPECT_GT(counts.requests, 1000);
  EXPECT_GT(counts.errors, 20);
  EXPECT_EQ(counts.refused, static_cast<int64_t>(kRefused.size()));
}

// scripts/goldens/evaluation_requests.py --wheel DIR makes such a file.
TEST(TaskRequests, OfTheHarnessesOwnTasks) {
  const char* const named = std::getenv("SKEIN_EVALUATION_REQUESTS");
  if (named == nullptr) GTEST_SKIP() << "SKEIN_EVALUATION_REQUESTS names no file";
  const Counts counts = expect_goldens(named, false);
  fmt::print("{} tasks, {} requests; {} tasks refused, {} errors of the harness too\n",
             counts.cases, counts.requests, counts.refused, counts.errors);
}

// What a task of these keys and documents, each a line of JSON, is refused with.
std::string refusal(const std::string& keys, const std::vector<std::string>& documents,
                    RequestOptions options = {}) {
  const std::string start = R"({"task": "made", "test_split": "test", "doc_to_target": "a")";
  try {
    const TaskConfig config =
        read_task(with_functions(jinja::json_value(start + keys + "}", "task")), "made.yaml", "");
    std::vector<Value> rows;
    for (const std::string& line : documents) rows.push_back(jinja::json_value(line, "line"));
    TaskRequests requests(config, rows, rows, options);
    while (requests.next()) {
    }
    return "taken";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(TaskRequests, NameTaskDocumentAndField) {
  const std::vector<std::string> rows = {R"({"q": "x", "a": "y"})", R"({"a": "y"})"};
  EXPECT_EQ(
      refusal(R"(, "doc_to_text": "{{q}} {{b}}")", rows),
      "task made: document 0: doc_to_text:1:9: 'b' is undefined; the document has the columns "
      "q, a");
  EXPECT_EQ(
      refusal(R"(, "doc_to_text": "{{q}}")", rows),
      "task made: document 1: doc_to_text:1:3: 'q' is undefined; the document has the columns "
      "a");
  EXPECT_EQ(refusal(R"(, "doc_to_text": "q")", rows),
            "task made: document 1: the document has no column 'q'");
  EXPECT_EQ(refusal(R"(, "doc_to_text": "{{q")", rows).rfind("task made: doc_to_text:1:", 0), 0U);
  EXPECT_EQ(refusal(R"(, "doc_to_text": ["q"])", rows),
            "task made: doc_to_text is a list; expected the name of a column, a template, a number "
            "or a function");
  EXPECT_EQ(refusal(R"(, "doc_to_text": "q")", {}), "task made: the split test has no documents");
  EXPECT_EQ(refusal(R"(, "doc_to_text": "q")", {"[1]"}),
            "task made: document 0 is no dict with columns");
  EXPECT_EQ(refusal(R"(, "doc_to_text": "q", "num_fewshot": 2)", {rows[0], rows[0], rows[1]}),
            "task made: document 1: few-shot document 2: the document has no column 'q'");
  EXPECT_EQ(refusal(R"(, "doc_to_text": "q", "num_fewshot": 3)", {rows[0], rows[0]}),
            "task made: document 0: 3 few-shot examples are to be drawn (one more if the "
            "tested document may be among them), and there are 2 documents to draw from; lower "
            "num_fewshot");
  RequestOptions options;
  options.limit = 0;
  EXPECT_EQ(refusal(R"(, "doc_to_text": "q")", rows, options),
            "limit is 0; expected a number above 0");
  EXPECT_EQ(refusal(R"(, "doc_to_text": "q", "doc_to_choice": ["x", 1])", rows),
            "task made: document 0: choice 1 of doc_to_choice is 1 (int); expected text (in YAML, "
            "in quotes)");
}

TEST(TaskRequests, RefuseFunctionsByName) {
  const std::vector<std::string> rows = {R"({"q": "x", "a": "y"})"};
  const auto text = [&](const std::string& folder, const std::string& name) {
    return refusal(
        R"(, "doc_to_text": {"!function": ")" + name + R"(", "folder": ")" + folder + "\"}", rows);
  };
  EXPECT_EQ(text("coqa", "utils.doc_to_text")
                .rfind("task made: doc_to_text: !function utils.doc_to_text of the folder coqa is "
                       "Python, which Skein does not run. Built in are functions of these "
                       "folders: copa, hellaswag, ",
                       0),
            0U);
  EXPECT_EQ(text("race", "preprocess_race.doc_to_text"),
            "task made: document 0: doc_to_text: the document has no column 'article'");
}

// testdata/code.json is made by scripts/goldens/evaluation_code.py.
TEST(TaskRequests, MbppHasTheExamplesOfItsFile) {
  const auto folder = std::filesystem::path(__FILE__).parent_path().parent_path();
  const Json recorded = read_json((folder / "testdata/code.json").string()).at("mbpp_samples");
  const std::vector<Value> samples = mbpp_samples();
  ASSERT_EQ(samples.size(), 3U);
  for (size_t i = 0; i < samples.size(); ++i) {
    EXPECT_TRUE(equal(samples[i], jinja::json_value(recorded.at(i).dump(), "a sample")))
        << python_text(samples[i]);
  }
}

// The file beside the YAML file decides, not its name.
TEST(TaskRequests, RefuseAFileOfFunctionsThatIsChanged) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "requests" / "race";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "preprocess_race.py") << "def doc_to_text(doc):\n    return ''\n";
  const std::string file = (folder / "preprocess_race.py").string();
  EXPECT_EQ(refusal(R"(, "doc_to_text": {"!function": "preprocess_race.doc_to_text", "folder": ")" +
                        folder.string() + "\"}",
                    {R"({"q": "x", "a": "y"})"}),
            "task made: doc_to_text: " + file +
                " is another file than the one of that name whose functions are built in "
                "(tasks/**/race of lm-evaluation-harness 0.4.13), and Skein does not run Python");
}

TEST(TaskRequests, WikitextCountsThePageAsItIs) {
  const TaskConfig config = read_task(
      with_functions(jinja::json_value(
          R"({"task": "made", "test_split": "test", "output_type": "loglikelihood_rolling",
              "doc_to_text": "", "doc_to_target":
              {"!function": "preprocess_wikitext.wikitext_detokenizer", "folder": "wikitext"},
              "process_results":
              {"!function": "preprocess_wikitext.process_results", "folder": "wikitext"}})",
          "task")),
      "made.yaml", "");
  TaskRequests requests(config, {jinja::json_value(R"({"page": "a , b"})", "row")}, {}, {});
  const auto made = requests.next();
  ASSERT_TRUE(made);
  EXPECT_EQ(made->requests.at(0).continuation, "a, b");
  EXPECT_EQ(made->counted_text, "a , b");
  EXPECT_EQ(requests.form().results, ResultsFunction::kPageCounts);
  EXPECT_FALSE(requests.next());
}

}  // namespace
}  // namespace skein
