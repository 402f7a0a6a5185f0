#include "skein/evaluate/tasks/read_task.h"

#include <array>
#include <charconv>
#include <memory>
#include <utility>

#include "skein/evaluate/tasks/read_parts.h"
#include "skein/evaluate/tasks/task_fields.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

constexpr std::array<std::string_view, 37> kKeys = {"task",
                                                    "task_alias",
                                                    "tag",
                                                    "group",
                                                    "task_list",
                                                    "class",
                                                    "custom_dataset",
                                                    "dataset_path",
                                                    "dataset_name",
                                                    "dataset_kwargs",
                                                    "training_split",
                                                    "validation_split",
                                                    "test_split",
                                                    "fewshot_split",
                                                    "process_docs",
                                                    "doc_to_text",
                                                    "doc_to_target",
                                                    "doc_to_image",
                                                    "doc_to_audio",
                                                    "unsafe_code",
                                                    "doc_to_choice",
                                                    "process_results",
                                                    "use_prompt",
                                                    "description",
                                                    "target_delimiter",
                                                    "fewshot_delimiter",
                                                    "fewshot_config",
                                                    "num_fewshot",
                                                    "metric_list",
                                                    "output_type",
                                                    "generation_kwargs",
                                                    "repeats",
                                                    "filter_list",
                                                    "should_decontaminate",
                                                    "doc_to_decontamination_query",
                                                    "gen_prefix",
                                                    "metadata"};

void refuse_unsupported(const Fields& fields) {
  constexpr std::array<std::pair<const char*, const char*>, 5> kInstead = {{
      {"class",
       "a class of Python, which is not run; expected a task that its file describes alone"},
      {"use_prompt",
       "prompts of promptsource are not supported; write doc_to_text and doc_to_target"},
      {"custom_dataset",
       "a function of Python, which is not run; write its documents to a JSON Lines file, and set "
       "dataset_path: json and dataset_kwargs: {data_files: FILE}"},
      {"doc_to_image", "images are not supported; expected a task of text alone"},
      {"doc_to_audio", "audio is not supported; expected a task of text alone"},
  }};
  for (const auto& [key, instead] : kInstead) {
    if (!fields.value(key).is_undefined()) fields.refuse(key, instead, ErrorCode::kUnsupported);
  }
}

OutputType output_type(const Fields& fields) {
  const std::string name = fields.text_or("output_type", "generate_until");
  if (name == "multiple_choice") return OutputType::kMultipleChoice;
  if (name == "loglikelihood") return OutputType::kLoglikelihood;
  if (name == "loglikelihood_rolling") return OutputType::kRolling;
  if (name != "generate_until")
    fields.refuse("output_type", name +
                                     "; expected multiple_choice, loglikelihood, "
                                     "loglikelihood_rolling or generate_until");
  return OutputType::kGenerateUntil;
}

double temperature_of(const Fields& fields, const Value& value) {
  if (value.is_number()) return value.as_float();
  double number = 0;
  if (value.is_string()) {
    const std::string& text = value.text();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && end == text.data() + text.size()) return number;
  }
  fields.refuse_kind("generation_kwargs.temperature", value, "a number");
}

Value generation_kwargs(const Fields& fields, const TaskConfig& config) {
  const Value written = read_dict(fields, "generation_kwargs");
  const Value until = Value::list({Value::string(config.fewshot_delimiter)});
  auto kwargs = std::make_shared<jinja::Dict>();
  if (written.is_undefined()) {
    if (config.output_type != OutputType::kGenerateUntil) return {};
    constexpr int64_t kMaxTokens = 256;
    kwargs->set(Value::string("temperature"), Value::number(0));
    kwargs->set(Value::string("do_sample"), Value::boolean(false));
    kwargs->set(Value::string("max_gen_toks"), Value::integer(kMaxTokens));
    kwargs->set(Value::string("until"), until);
    return Value::of(Kind::kDict, std::move(kwargs));
  }
  *kwargs = written.as_dict();
  if (const Value* const temperature = kwargs->find("temperature"))
    kwargs->set(Value::string("temperature"), Value::number(temperature_of(fields, *temperature)));
  if (kwargs->find("until") == nullptr) kwargs->set(Value::string("until"), until);
  return Value::of(Kind::kDict, std::move(kwargs));
}

void read_dataset(const Fields& fields, TaskConfig& config) {
  config.dataset_path = fields.text("dataset_path").value_or("");
  config.dataset_name = fields.text("dataset_name").value_or("");
  config.dataset_kwargs = read_dict(fields, "dataset_kwargs");
  config.training_split = fields.text("training_split");
  config.validation_split = fields.text("validation_split");
  config.test_split = fields.text("test_split");
}

void read_templates(const Fields& fields, TaskConfig& config) {
  config.process_docs = fields.value("process_docs");
  config.doc_to_text = fields.value("doc_to_text");
  config.doc_to_target = fields.value("doc_to_target");
  config.doc_to_choice = fields.value("doc_to_choice");
  config.gen_prefix = fields.value("gen_prefix");
  config.process_results = fields.value("process_results");
  config.doc_to_decontamination_query = fields.value("doc_to_decontamination_query");
  config.description = fields.value("description");
  if (fields.dict().find("description") == nullptr) config.description = Value::string("");
  config.target_delimiter = fields.text_or("target_delimiter", " ");
  config.fewshot_delimiter = fields.text_or("fewshot_delimiter", "\n\n");
}

}  // namespace

TaskConfig read_task(const Value& written, const std::filesystem::path& file,
                     const std::string& source) {
  const std::string name = Fields(written, file.string()).text_or("task", "");
  const Fields fields(written, file.string() + ": task " + name);
  if (name.empty()) fields.refuse("task", "no name; expected `task: name`");
  refuse_unsupported(fields);
  fields.allow(kKeys);
  TaskConfig config;
  config.file = file;
  config.task = name;
  config.alias = fields.text("task_alias").value_or("");
  config.tags = read_names(fields, "tag");
  config.output_type = output_type(fields);
  read_dataset(fields, config);
  read_templates(fields, config);
  config.num_fewshot = fields.integer("num_fewshot");
  if (fields.dict().find("repeats") != nullptr) {
    const auto repeats = fields.integer("repeats");
    if (!repeats || *repeats < 1) fields.refuse("repeats", "expected a whole number above 0");
    config.repeats = *repeats;
  }
  config.unsafe_code = fields.boolean("unsafe_code").value_or(false);
  config.should_decontaminate = fields.boolean("should_decontaminate").value_or(false);
  config.generation_kwargs = generation_kwargs(fields, config);
  config.metadata = read_metadata(fields, source);
  config.metrics = read_metrics(fields);
  config.filters = read_filters(fields);
  config.fewshot = read_fewshot(fields, config);
  config.written = written;
  return config;
}

}  // namespace skein
