// skein eval MODEL --tasks NAMES [--include-path DIR] [--data DIR] [--num-fewshot N] [--limit N]
//                  [--log-samples] [--execute] [--max-length N] [--precision f32|bf16] [--out DIR]
//                  [--json]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <sstream>

#include "skein/backends/backend.h"
#include "skein/base/machine/cores.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/shared/print.h"
#include "skein/evaluate/results/results_json.h"
#include "skein/evaluate/tasks/load_tasks.h"
#include "skein/evaluate/tasks/task_folders.h"
#include "skein/infer/evaluate_model.h"
#include "skein/weights/source_tokenizer.h"

namespace skein {
namespace {

struct EvalArguments {
  std::string model;
  std::string tasks;
  std::vector<std::string> include_paths, data;
  std::string out;
  std::string precision = "f32";
  EvaluateOptions evaluate;
  int64_t num_fewshot = 0;
  double limit = 0;
  int threads = 0;
  bool json = false;
  CLI::Option *num_fewshot_option = nullptr, *limit_option = nullptr;
};

std::vector<std::string> names_of(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');) {
    if (!name.empty()) names.push_back(name);
  }
  if (names.empty()) {
    fail(ErrorCode::kUsage, "--tasks is empty: expected names of tasks, with commas between");
  }
  return names;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The name of a model as part of a file's name, as lm-evaluation-harness has it.
std::string folder_name(const std::string& model) {
  std::string name;
  for (const char c : model) {
    const bool is_kept = std::string_view("\"<>:/|\\?*[]").find(c) == std::string_view::npos;
    if (is_kept) {
      name += c;
    } else if (!name.ends_with("__")) {
      name += "__";
    }
  }
  return name;
}

// One line on a terminal, written over; else nothing.
void show(const EvaluateProgress& progress) {
  if (!log::on_terminal()) return;
  fmt::print(stderr, "\r\033[K{}/{} {}  {}/{} requests", progress.task_number, progress.num_tasks,
             visible_line(progress.task), progress.num_done, progress.num_requests);
}

void write_results(const fs::path& folder, const Evaluation& evaluation, const OrderedJson& json,
                   double date) {
  make_folders(folder);
  const std::string stamp = results_date(date);
  const fs::path results = folder / ("results_" + stamp + ".json");
  write_file_atomic(results, exact_json(json, results.string(), 2));
  print_line(stderr, "results: {}", results.string());
  for (const TaskScores& task : evaluation.tasks) {
    if (task.samples.empty()) continue;
    const fs::path samples = folder / fmt::format("samples_{}_{}.jsonl", task.task->task, stamp);
    write_file_atomic(samples, fmt::format("{}\n", fmt::join(task.samples, "\n")));
    print_line(stderr, "samples: {}", samples.string());
  }
}

std::vector<fs::path> paths_of(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

int evaluate(EvalArguments& arguments) {
  const double begun = now();
  if (arguments.evaluate.scoring.log_samples && arguments.out.empty()) {
    fail(ErrorCode::kUsage, "--log-samples: nothing is written without --out DIR");
  }
  const ModelSource source(arguments.model);
  const auto tokenizer = tokenizer_of(source);
  const std::vector<std::string> names = names_of(arguments.tasks);
  const bool are_all_files = std::all_of(
      names.begin(), names.end(), [](const std::string& name) { return name.ends_with(".yaml"); });
  const TaskIndex index(task_folders(paths_of(arguments.include_paths), are_all_files));
  const std::vector<TaskNode> asked = TaskLoader(index).load(names);
  check_tasks_are_apart(asked);
  if (!index.notes().empty()) {
    log::warn("{} task files are passed over; the first: {}", index.notes().size(),
              index.notes().front());
  }

  EvaluateOptions& options = arguments.evaluate;
  options.data_folders = paths_of(arguments.data);
  options.dtype = arguments.precision == "bf16" ? DType::kBF16 : DType::kF32;
  if (arguments.num_fewshot_option->count() > 0) {
    options.requests.num_fewshot = arguments.num_fewshot;
  }
  if (arguments.limit_option->count() > 0) options.requests.limit = arguments.limit;
  const auto device = make_device({.kind = "cpu", .threads = arguments.threads});
  options.scoring.num_threads = arguments.threads > 0 ? arguments.threads : num_cores();
  const Evaluation evaluation =
      evaluate_model(source, *tokenizer, *device, asked, options, show,
                     [](const std::string& note) { log::warn("{}", note); });
  if (log::on_terminal()) fmt::print(stderr, "\r\033[K");

  EvaluationRecord record;
  record.model = arguments.model;
  record.precision = arguments.precision;
  record.device = "cpu";
  record.max_length =
      options.max_length > 0 ? options.max_length : text_limit(source.config()).tokens;
  record.num_parameters = num_parameters(source.config());
  if (options.requests.limit) record.limit = *options.requests.limit;
  record.fewshot_seed = options.requests.seed;
  record.date = begun;
  record.seconds = now() - begun;
  const OrderedJson json = results_json(evaluation, record);
  if (!arguments.out.empty()) {
    write_results(fs::path(arguments.out) / folder_name(arguments.model), evaluation, json, begun);
  }
  if (arguments.json) {
    print_json(json);
  } else {
    print_text(stdout, results_table(evaluation));
  }
  return kExitDone;
}

}  // namespace

void add_eval_command(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<EvalArguments>();
  CLI::App* command =
      app.add_subcommand("eval", "Evaluate a model on tasks of lm-evaluation-harness");
  as_path(
      command->add_option("MODEL", options->model, "a Hugging Face folder, a checkpoint or a run"))
      ->required();
  command
      ->add_option("--tasks", options->tasks,
                   "names of tasks, groups and tags, patterns (mmlu_*) or files .yaml, with commas "
                   "between")
      ->required();
  as_path_of_a_disk(command->add_option(
      "--include-path,--include_path", options->include_paths,
      "a folder with task files; goes before SKEIN_TASKS and those of an installed lm-eval"));
  as_path_of_a_disk(command->add_option(
      "--data", options->data,
      "a folder with data sets: DIR/cais/mmlu/anatomy/test.parquet and the like"));
  options->num_fewshot_option =
      command
          ->add_option("--num-fewshot,--num_fewshot", options->num_fewshot,
                       "examples in each context; default: the task's, else 0")
          ->check(whole_number_from(0));
  options->limit_option =
      command
          ->add_option("--limit", options->limit,
                       "documents of each task, the first ones; below 1: that share of them")
          ->check(number_from(0));
  command->add_flag("--log-samples,--log_samples", options->evaluate.scoring.log_samples,
                    "write what was asked and answered, a file a task");
  command->add_flag("--execute,--confirm_run_unsafe_code,--confirm-run-unsafe-code",
                    options->evaluate.execute,
                    "run the programs that the model writes (humaneval, mbpp), isolated: needs "
                    "python3 and user namespaces");
  command
      ->add_option("--max-length,--max_length", options->evaluate.max_length,
                   "tokens that the model is given at most; default: all that it is meant for")
      ->check(whole_number_from(1));
  command->add_option("--precision", options->precision, "of the computation: f32 or bf16; f32")
      ->check(CLI::IsMember({"f32", "bf16"}).description(""));
  command->add_option("--fewshot-seed,--fewshot_seed", options->evaluate.requests.seed,
                      "of the draw of examples, 1234");
  command->add_flag("--apply-chat-template,--apply_chat_template",
                    options->evaluate.apply_chat_template,
                    "ask as the chat template of the model's tokenizer writes it");
  command
      ->add_option("--fewshot-as-multiturn,--fewshot_as_multiturn",
                   options->evaluate.requests.fewshot_as_multiturn,
                   "with a chat template: examples are turns of their own; true")
      ->default_val(true);
  command->add_option("--system-instruction,--system_instruction",
                      options->evaluate.requests.system_instruction,
                      "a text at the beginning of each context");
  as_path_of_a_disk(command->add_option("--out,--output_path", options->out,
                                        "a folder for results_DATE.json and the samples"));
  command->add_flag("--json", options->json, "print the results as one JSON document");
  command->add_option("--threads", options->threads, "0: all cores")->check(whole_number_from(0));
  command->callback([&context, options] {
    context.computes = true;
    context.run = [options] { return evaluate(*options); };
  });
}

}  // namespace skein
