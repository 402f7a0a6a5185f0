// skein eval MODEL --tasks NAMES [--include-path DIR] [--data DIR] [--num-fewshot N] [--limit N]
//                  [--log-samples] [--execute] [--max-length N] [--precision f32|bf16] [--out DIR]
//                  [--device auto|cpu|cuda] [--tensor N] [--replicas N] [--cache-gb G]
//                  [--all-checkpoints] [--json]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "skein/base/files/paths.h"
#include "skein/base/machine/cores.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/checkpoint/find/checkpoint_folder.h"
#include "skein/checkpoint/find/lineage.h"
#include "skein/checkpoint/find/reader.h"
#include "skein/checkpoint/format/stored_file.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/evaluate/checkpoint_curve.h"
#include "skein/cli/inputs/device_arguments.h"
#include "skein/cli/shared/build_info.h"
#include "skein/cli/shared/print.h"
#include "skein/config/run/checkpoints.h"
#include "skein/evaluate/prepare/prepared_task.h"
#include "skein/evaluate/results/results_files.h"
#include "skein/evaluate/results/results_json.h"
#include "skein/evaluate/tasks/load_tasks.h"
#include "skein/infer/evaluate_model.h"
#include "skein/objects/url.h"
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
  double limit = 0, cache_gb = static_cast<double>(kUsualCacheBytes) * 1e-9;
  DeviceArguments device;
  bool all_checkpoints = false;
  bool json = false;
  CLI::Option *num_fewshot_option = nullptr, *limit_option = nullptr;
};

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// One line on a terminal, written over; else nothing.
void show(const EvaluateProgress& progress) {
  if (!log::on_terminal()) return;
  fmt::print(stderr, "\r\033[K{}/{} {}  {}/{} requests", progress.task_number, progress.num_tasks,
             visible_line(progress.task), progress.num_done, progress.num_requests);
}

std::vector<fs::path> paths_of(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

// What the results depend on beside the weights, and what is written of them. `digests`: of the
// tasks, by name.
OrderedJson asked_of(const EvalArguments& arguments, OrderedJson digests) {
  const RequestOptions& requests = arguments.evaluate.requests;
  return {
      {"tasks", arguments.tasks},
      {"digests", std::move(digests)},
      {"num_fewshot", requests.num_fewshot ? OrderedJson(*requests.num_fewshot) : OrderedJson()},
      {"limit", requests.limit ? OrderedJson(*requests.limit) : OrderedJson()},
      {"fewshot_seed", requests.seed},
      {"max_length", arguments.evaluate.engine.max_positions},
      {"precision", arguments.precision},
      {"apply_chat_template", arguments.evaluate.apply_chat_template},
      {"fewshot_as_multiturn", requests.fewshot_as_multiturn},
      {"system_instruction", requests.system_instruction},
      {"execute", arguments.evaluate.execute},
      {"device", arguments.device.options().kind},
      {"tensor", arguments.device.tensor}};
}

// Of all that it consists of: in the first line of its manifest, {"manifest_xxh3_128": "…",
std::string checksum_of(const fs::path& checkpoint) {
  const std::string text = StoredFile(checkpoint / "manifest.json").text(200);
  const std::string line = text.substr(0, text.find('\n'));
  const size_t end = line.rfind('"'), begin = line.rfind('"', end - 1);
  if (end == line.npos || begin == line.npos) {
    fail(ErrorCode::kCorrupt, "{}: expected its checksum in the first line of manifest.json",
         checkpoint.string());
  }
  return line.substr(begin + 1, end - begin - 1);
}

// Of a checkpoint; null: a Hugging Face folder is none.
OrderedJson run_of(const ModelSource& source) {
  if (source.is_hugging_face()) return nullptr;
  const TrainingState state = CheckpointReader(source.path()).state();
  return {{"step", state.step},
          {"tokens", state.tokens_seen},
          {"checkpoint", checksum_of(source.path())}};
}

void take_options(EvalArguments& arguments) {
  EvaluateOptions& options = arguments.evaluate;
  options.data_folders = paths_of(arguments.data);
  options.engine.compute_dtype = arguments.precision == "bf16" ? DType::kBF16 : DType::kF32;
  arguments.device.set_devices(options.engine);
  options.replicas = arguments.device.replicas;
  options.engine.cache_bytes = static_cast<int64_t>(arguments.cache_gb * 1e9);
  if (arguments.num_fewshot_option->count() > 0) {
    options.requests.num_fewshot = arguments.num_fewshot;
  }
  if (arguments.limit_option->count() > 0) options.requests.limit = arguments.limit;
  for (const fs::path& folder : options.data_folders) {
    if (!fs::is_directory(folder)) {
      fail(ErrorCode::kUsage, "--data {}: there is no such folder", folder.string());
    }
  }
  if (!arguments.out.empty()) require_writable_folder(arguments.out, "--out");
  options.scoring.num_threads =
      arguments.device.threads > 0 ? arguments.device.threads : num_cores();
}

// A model on the tasks, and its files of results where there is a folder for them.
class Evaluator {
 public:
  explicit Evaluator(const EvalArguments& arguments)
      : arguments_(arguments),
        asked_(load_tasks(arguments.tasks, "--tasks", paths_of(arguments.include_paths), warn)) {}

  struct Results {
    Evaluation evaluation;
    OrderedJson json;
    std::string header;  // of the table
    double begun = 0;
  };
  Results evaluate(const std::string& model) const {
    const double begun = now();
    const ModelSource source(model);
    const auto tokenizer = tokenizer_of(source);
    const EvaluateOptions& options = arguments_.evaluate;
    Results results{.evaluation = evaluate_model(source, *tokenizer, asked_, options, show, warn),
                    .begun = begun};
    if (log::on_terminal()) fmt::print(stderr, "\r\033[K");
    EvaluationRecord record;
    record.model = model;
    record.precision = arguments_.precision;
    record.device = arguments_.device.options().kind;
    record.max_length = options.engine.max_positions > 0 ? options.engine.max_positions
                                                         : text_limit(source.config()).tokens;
    record.num_parameters = num_parameters(source.config());
    if (options.requests.limit) record.limit = *options.requests.limit;
    record.fewshot_seed = options.requests.seed;
    record.date = begun;
    record.seconds = now() - begun;
    record.run = run_of(source);
    OrderedJson digests = OrderedJson::object();
    for (const TaskScores& task : results.evaluation.tasks) digests[task.task->task] = task.digest;
    record.asked = asked_of(arguments_, std::move(digests));
    const OrderedJson version = version_json();
    record.version = {{"version", version.at("version")}, {"commit", version.at("commit")}};
    results.json = results_json(results.evaluation, record);
    results.header = fmt::format("{} on {} in {}{}\n", visible_line(source.path().string()),
                                 record.device, record.precision, limit_text());
    return results;
  }

  void write(const Results& results, const std::string& out) const {
    for (const fs::path& file :
         write_results(out, arguments_.model, results.evaluation, results.json, results.begun)) {
      print_line(stderr, "written: {}", file.string());
    }
  }

  // Of the tasks as they are now, by name.
  OrderedJson digests() const {
    OrderedJson digests = OrderedJson::object();
    const EvaluateOptions& options = arguments_.evaluate;
    for (const PreparedTask& task : prepare_tasks(asked_, options.data_folders, options.requests)) {
      digests[task.config->task] = task.digest;
    }
    return digests;
  }

 private:
  std::string limit_text() const {
    const std::optional<double>& limit = arguments_.evaluate.requests.limit;
    if (!limit) return "";
    if (*limit < 1) return fmt::format(", the first {:g} % of each task's documents", 100 * *limit);
    return fmt::format(", at most {} of each task",
                       counted(static_cast<int64_t>(*limit), "document"));
  }
  static void warn(const std::string& note) { log::warn("{}", note); }

  const EvalArguments& arguments_;
  const std::vector<TaskNode> asked_;
};

int evaluate(const EvalArguments& arguments) {
  if (arguments.evaluate.scoring.log_samples && arguments.out.empty()) {
    fail(ErrorCode::kUsage, "--log-samples: nothing is written without --out DIR");
  }
  const Evaluator evaluator(arguments);
  const Evaluator::Results results = evaluator.evaluate(arguments.model);
  if (arguments.json) {
    print_json(results.json);
  } else {
    print_text(stdout, results.header + results_table(results.evaluation));
  }
  if (!arguments.out.empty()) evaluator.write(results, arguments.out);
  return kExitDone;
}

// Of the run's own timeline, from the first to the newest.
std::vector<CheckpointInfo> checkpoints_of(const std::string& model) {
  std::vector<CheckpointInfo> checkpoints =
      lineage_of(checkpoints_inside(find_checkpoint(model))).checkpoints;
  if (checkpoints.empty()) {
    fail(ErrorCode::kNotFound,
         "{} holds no checkpoint: expected a run, or a folder of checkpoints, for "
         "--all-checkpoints",
         model);
  }
  std::reverse(checkpoints.begin(), checkpoints.end());
  return checkpoints;
}

std::string folder_of_results(const EvalArguments& arguments) {
  if (!arguments.out.empty()) return arguments.out;
  if (is_object_url(arguments.model)) {
    fail(ErrorCode::kUsage, "--all-checkpoints of {}: expected --out DIR, a folder for the results",
         arguments.model);
  }
  return (fs::path(arguments.model) / "eval").string();
}

int64_t step_of(const Json& results) {
  return results.at("skein").at("run").at("step").get<int64_t>();
}

// Adds those that are left in `known`, of steps that no checkpoint has any more. Steps behind the
// newest checkpoint are of a timeline that the run left.
void add_of_removed_checkpoints(const std::map<std::string, Json>& known, std::vector<Json>& all) {
  std::set<int64_t> steps;
  for (const Json& results : all) steps.insert(step_of(results));
  for (const auto& [checksum, results] : known) {
    const int64_t step = step_of(results);
    if (!steps.empty() && step > *steps.rbegin()) {
      print_line(stderr, "step {}: evaluated before, and behind the newest checkpoint: left out",
                 step);
      continue;
    }
    if (!steps.insert(step).second) continue;
    print_line(stderr, "step {}: evaluated before; its checkpoint is gone", step);
    all.push_back(results);
  }
  std::ranges::sort(all, {}, step_of);
}

// Those that an earlier call has done are not done again, and a damaged one is passed over.
int evaluate_all_checkpoints(const EvalArguments& arguments) {
  const std::vector<CheckpointInfo> checkpoints = checkpoints_of(arguments.model);
  const std::string out = folder_of_results(arguments);
  require_writable_folder(out, arguments.out.empty() ? "the folder of results" : "--out");
  const Evaluator evaluator(arguments);
  std::map<std::string, Json> known =
      known_results(out, arguments.model, asked_of(arguments, evaluator.digests()));
  std::vector<Json> all;
  for (const CheckpointInfo& checkpoint : checkpoints) {
    auto checksum = try_run([&] { return checksum_of(checkpoint.path); });
    const auto found = checksum.ok() ? known.find(checksum.value()) : known.end();
    if (found != known.end()) {
      print_line(stderr, "step {}: evaluated before", checkpoint.step);
      all.push_back(std::move(found->second));
      known.erase(found);
      continue;
    }
    print_line(stderr, "step {}: {}", checkpoint.step, checkpoint.path.string());
    try {
      const Evaluator::Results results = evaluator.evaluate(checkpoint.path.string());
      evaluator.write(results, out);
      all.push_back(results.json);
    } catch (const Error& error) {
      const bool is_damaged =
          error.code() == ErrorCode::kCorrupt || !is_stored(checkpoint.path / "manifest.json");
      if (!is_damaged) throw;
      log::warn("passing over the checkpoint {}: {}", checkpoint.path.string(), error.what());
    }
  }
  add_of_removed_checkpoints(known, all);
  if (arguments.json) {
    print_json(OrderedJson{{"checkpoints", all}});
  } else {
    print_text(stdout, checkpoint_curve(all));
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
                   "between; list: prints all names")
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
          ->check(number_from(0))
          ->check(
              [](const std::string& text) {
                const double limit = std::stod(text);
                return limit > 0 && (limit < 1 || limit == std::floor(limit))
                           ? ""
                           : text +
                                 ": expected a whole number of documents from 1, or a share "
                                 "between 0 and 1";
              },
              "");
  command->add_flag("--log-samples,--log_samples", options->evaluate.scoring.log_samples,
                    "write what was asked and answered, a file a task");
  command->add_flag("--execute,--confirm_run_unsafe_code,--confirm-run-unsafe-code",
                    options->evaluate.execute,
                    "run the programs that the model writes (humaneval, mbpp), isolated: needs "
                    "python3 and user namespaces");
  command
      ->add_option("--max-length,--max_length", options->evaluate.engine.max_positions,
                   "tokens that the model is given at most; default: all that it is meant for")
      ->check(whole_number_from(1));
  add_precision_option(*command, options->precision);
  command
      ->add_option("--cache-gb", options->cache_gb,
                   "of keys and values on each device, 0.27; room for at least one text")
      ->check(number_between(0.001, 1e5));
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
  command->add_flag(
      "--all-checkpoints,--all_checkpoints", options->all_checkpoints,
      "evaluate each checkpoint of the run that has no results of the same question yet, "
      "and draw the scores over tokens; --out is MODEL/eval by default");
  command->add_flag("--json", options->json, "print the results as one JSON document");
  add_device_options(*command, options->device);
  add_rank_options(*command, options->device);
  command->callback([&context, options] {
    context.computes = true;
    context.run = [options] {
      if (options->tasks == "list") {
        print_text(stdout, task_list(paths_of(options->include_paths)));
        return kExitDone;
      }
      options->device.prepare();
      take_options(*options);
      return options->all_checkpoints ? evaluate_all_checkpoints(*options) : evaluate(*options);
    };
  });
}

}  // namespace skein
