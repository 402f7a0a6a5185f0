// skein plan CONFIG.toml [--set section.key=value]... [--ranks N] [--hardware FILE.toml] [--json]
//                        [--rank R] [--timeline FILE.json]
// skein plan CONFIG.toml --search [--search-seconds S] [--ranks N] [--hardware FILE.toml] [--json]
// skein plan CONFIG.toml --calibrate FILE.toml [--workers K]
// skein plan CONFIG.toml --goodput [--ranks N] [--hardware FILE.toml] [--days D] [--failures N |
//                        --mtbf-hours H] [--spares N] [--seed S] [--json]
// skein plan --goodput --preset NAME [--days D] ... [--json]
// skein plan CONFIG.toml --passes | --print-after PASS [--ranks N] [--rank R]
// skein plan CONFIG.toml --print-stablehlo [PROGRAM] [--for TARGET] [--ranks N] [--rank R]
// skein plan CONFIG.toml --write-hlo FOLDER --for TARGET [--optlevel N] [--ranks N] [--rank R]
// skein plan CONFIG.toml --compile TARGET [--plugin PATH] [--program NAME] [--ranks N] [--rank R]
//                        [--json]
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "skein/base/files/file.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/plan/calibrate.h"
#include "skein/cli/plan/run_certificate.h"
#include "skein/cli/plan/run_goodput.h"
#include "skein/cli/plan/run_search.h"
#include "skein/cli/shared/print.h"
#include "skein/config/data_feed.h"
#include "skein/config/length.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "skein/plan/compilers/neuron_programs.h"
#include "skein/plan/goodput/scenario.h"
#include "skein/plan/memory_advice.h"
#include "skein/plan/pair_advice.h"
#include "skein/plan/passes.h"
#include "skein/plan/plan.h"
#include "skein/schedule/timeline_trace.h"
#include "skein/train/start/disk_check.h"
#include "skein/weights/init_source.h"

namespace skein {
namespace {

struct PlanOptions {
  ConfigOptions config;
  std::string hardware;
  std::string timeline;
  std::string calibrate;
  std::string print_after;
  std::string print_stablehlo;
  const CLI::Option* stablehlo = nullptr;  // given without a program, it has no text

  std::string write_hlo;
  NeuronTarget neuron;

  bool shows_passes() const {
    return passes || !print_after.empty() || prints_stablehlo() || !write_hlo.empty();
  }
  bool compiles() const { return !certificate.target.name.empty(); }
  bool prints_stablehlo() const { return stablehlo->count() > 0; }
  double memory_margin = 2;  // percent
  int64_t workers = 0;
  int64_t ranks = 0;
  int64_t rank = -1;
  CertificateOptions certificate;
  GoodputRequest simulated;
  double search_seconds = 60;
  bool goodput = false;
  bool search = false;
  bool passes = false;
  bool json = false;
};

void add_goodput_options(CLI::App& command, PlanOptions& options) {
  GoodputRequest& simulated = options.simulated;
  CLI::Option* goodput =
      command.add_flag("--goodput", options.goodput,
                       "simulate the run under failures: what share of its time it would train");
  for (const char* other : {"--search", "--calibrate", "--timeline", "--passes", "--print-after",
                            "--print-stablehlo", "--write-hlo", "--compile", "--rank"}) {
    goodput->excludes(command.get_option(other));
  }
  command
      .add_option("--preset", simulated.preset,
                  fmt::format("of --goodput, instead of a configuration, a published run: {}",
                              fmt::join(goodput_presets(), ", ")))
      ->type_name("NAME")
      ->needs(goodput)
      ->excludes(command.get_option("--ranks"))
      ->excludes(command.get_option("--hardware"))
      ->check(CLI::IsMember(goodput_presets()).description(""));
  command.add_option("--days", simulated.days, "of --goodput; default: 54")
      ->needs(goodput)
      ->check(number_between(0.01, 10'000));
  CLI::Option* failures =
      command
          .add_option("--failures", simulated.failures,
                      "of --goodput, in all; default: as often a rank as Llama 3's run had them")
          ->needs(goodput)
          ->check(whole_number_from(1, 1'000'000));
  command
      .add_option("--mtbf-hours", simulated.mtbf_hours,
                  "of --goodput: hours between two failures of one rank")
      ->needs(goodput)
      ->excludes(failures)
      ->check(number_from(0.001));
  command
      .add_option(
          "--spares", simulated.spares,
          "of --goodput: machines that wait to replace others; default: one for 64, at least 2")
      ->needs(goodput)
      ->check(whole_number_from(0, 100'000));
  command.add_option("--seed", simulated.seed, "of --goodput: of the times of failures")
      ->needs(goodput)
      ->check(whole_number_from(0));
}

void add_neuron_options(CLI::App& command, PlanOptions& options) {
  CLI::Option* target =
      command
          .add_option(
              "--for", options.neuron.name,
              "of --write-hlo and --print-stablehlo: for this kind of AWS Trainium, without "
              "64-bit numbers")
          ->type_name("trn1|trn1n|trn2")
          ->check(CLI::IsMember({"trn1", "trn1n", "trn2"}).description(""));
  CLI::Option* write = as_path_of_a_disk(command.add_option(
      "--write-hlo", options.write_hlo,
      "write each program as HLO for neuronx-cc into this folder, with the commands that compile "
      "them; device.pjrt_plugin must be a plugin of XLA for CPUs"));
  write->needs(target)->excludes(command.get_option("--print-stablehlo"));
  command
      .add_option("--optlevel", options.neuron.optimization_level,
                  "of --write-hlo: neuronx-cc's; default: 2")
      ->needs(write)
      ->check(whole_number_from(1, 3));
}

void add_options(CLI::App& command, CommandContext& context, PlanOptions& options) {
  options.config.add_to(command, context)->required(false);
  command
      .add_option("--ranks", options.ranks,
                  "plan for this many ranks; parallel.data = 0 takes what is left; default: "
                  "plan.ranks")
      ->check(whole_number_from(1, int64_t{1} << 24));
  as_path_of_a_disk(command.add_option(
      "--hardware", options.hardware,
      "a description of the machines (configs/hardware/*.toml); default: plan.hardware, without "
      "which this machine is measured"));
  command
      .add_option(
          "--rank", options.rank,
          "with --json: list what this rank holds and sends; with --print-after: of its stage")
      ->check(whole_number_from(0));
  as_path_of_a_disk(command.add_option("--timeline", options.timeline,
                                       "write the predicted schedule here, for ui.perfetto.dev"));
  CLI::Option* search = command.add_flag("--search", options.search,
                                         "rank the layouts that fit by predicted tokens a second");
  command
      .add_option("--search-seconds", options.search_seconds,
                  "of --search: how long at most; the best so far is printed then, as at Ctrl-C; "
                  "default: 60")
      ->needs(search)
      ->check(number_between(0.1, 1e6));
  CLI::Option* calibrate = as_path_of_a_disk(command.add_option(
      "--calibrate", options.calibrate,
      "measure this machine with the configuration's model and write its description here"));
  command.add_option("--workers", options.workers, "of --calibrate; default: launch.workers")
      ->needs(calibrate)
      ->check(whole_number_from(1, int64_t{1} << 10));
  command
      .add_option("--memory-margin", options.memory_margin,
                  "percent of each memory that what fits leaves free; default: 2. Training has no "
                  "margin: it refuses what does not fit")
      ->type_name("PERCENT")
      ->check(number_between(0, 90));
  command.add_flag("--passes", options.passes, "list what is done to the model's graph, in order");
  command.add_option("--print-after", options.print_after,
                     "print the graph after this pass; after plan_memory, the programs");
  options.stablehlo =
      command
          .add_option("--print-stablehlo", options.print_stablehlo,
                      "print this program as the StableHLO that device.kind = \"pjrt\" compiles; "
                      "without a name, every program")
          ->type_name("[PROGRAM]")
          ->expected(0, 1);
  AotTarget& target = options.certificate.target;
  CLI::Option* compile =
      command
          .add_option("--compile", target.name,
                      "compile the step's programs with a vendor's compiler, without a device, and "
                      "print its bytes beside the plan's: h200x8, v5p:4x4x4, cpu")
          ->type_name("TARGET")
          ->excludes(search);
  as_path_of_a_disk(command.add_option("--plugin", target.plugin,
                                       "of --compile: the compiler, a PJRT plugin; default: "
                                       "device.pjrt_plugin"))
      ->needs(compile);
  command
      .add_option("--program", options.certificate.program,
                  "of --compile: this program alone; default: all")
      ->type_name("NAME")
      ->needs(compile);
  add_neuron_options(command, options);
  command.add_flag("--json", options.json, "print one JSON document");
  add_goodput_options(command, options);
}

int run_calibrate(const PlanOptions& options, const Config& config) {
  check_replaces_its_own("--calibrate", options.calibrate, "name = ");
  const int64_t workers = options.workers > 0 ? options.workers : config.launch.workers;
  const std::string text = hardware_text(calibrate(config, planned_model(config), workers));
  write_file_atomic(options.calibrate, text);
  fmt::print("{}", text);
  return kExitDone;
}

int run_compile(const PlanOptions& options, const Config& config) {
  CertificateOptions certificate = options.certificate;
  if (certificate.target.plugin.empty()) certificate.target.plugin = config.device.pjrt_plugin;
  certificate.target.level = config.device.optimization_level;
  certificate.rank = options.rank;
  certificate.json = options.json;
  run_certificate(passes_request(config, options.ranks), certificate);
  return kExitDone;
}

int run_preset(const PlanOptions& options) {
  if (!options.config.path.empty() || !options.config.overrides.empty()) {
    fail(ErrorCode::kUsage,
         "--preset {} is a run of its own: give it, or a configuration without --preset",
         options.simulated.preset);
  }
  run_goodput(preset_scenario(options.simulated), options.json);
  return kExitDone;
}

// One that there is, and asked of what tells of one.
void check_rank(const PlanOptions& options, const Config& config) {
  if (options.rank < 0) return;
  const int64_t ranks = ranks_to_plan(config, options.ranks);
  if (options.rank >= ranks) {
    fail(ErrorCode::kUsage, "--rank is {}, and there {}: expected {}", options.rank,
         ranks == 1 ? "is 1 rank" : fmt::format("are {} ranks", ranks),
         ranks == 1 ? "0" : fmt::format("0 to {}", ranks - 1));
  }
  const bool tells = options.shows_passes() || options.json || options.compiles();
  if (!tells || options.search) {
    fail(ErrorCode::kUsage,
         "--rank is {}: --json (without --search) prints one rank, --print-after and --passes "
         "print its stage, --compile compiles it: add one of them, or leave --rank out",
         options.rank);
  }
}

int run_plan(const PlanOptions& options) {
  if (!options.simulated.preset.empty()) return run_preset(options);
  if (options.config.path.empty()) {
    fail(ErrorCode::kUsage, "CONFIG.toml is required: skein plan CONFIG.toml");
  }
  Config config = load_config(options.config.path, options.config.overrides, ConfigUse::kPlan);
  if (config.run.epochs > 0 || !config.evaluate.empty()) {  // else a plan needs no tokenizer
    if (const std::string told = take_source_tokenizer(config); !told.empty()) {
      print_line(stderr, "{}", told);
    }
  }
  count_epochs(config, ConfigUse::kPlan);
  const std::string note_of_tokenizer = leave_out_missing_tokenizer(config);
  if (!note_of_tokenizer.empty()) print_line(stderr, "{}", note_of_tokenizer);
  for (const NamedCorpus& corpus : missing_corpora(config)) {
    print_line(stderr, "{} is '{}', which does not exist: a plan does without it", corpus.key,
               corpus.path);
  }
  for (const std::string& note : run_length_notes(config)) print_line(stderr, "{}", note);
  for (const std::string& note : schedule_warnings(config)) print_line(stderr, "{}", note);
  check_replaces_its_own("--timeline", options.timeline, "{\"displayTimeUnit\":");
  if (!options.calibrate.empty()) return run_calibrate(options, config);
  check_rank(options, config);
  if (!options.neuron.name.empty() && options.write_hlo.empty() && !options.prints_stablehlo()) {
    fail(ErrorCode::kUsage,
         "--for is {}: it says for which hardware programs are written; add --write-hlo FOLDER or "
         "--print-stablehlo, or leave it out",
         options.neuron.name);
  }
  const std::optional<Hardware> hardware = planned_hardware(config, options.hardware);
  if (hardware) {
    const std::string note = take_device_kind(config, *hardware);
    if (!note.empty()) print_line(stderr, "{}", note);
  }
  if (options.compiles()) return run_compile(options, config);
  if (options.shows_passes()) {
    const PlanRequest request = passes_request(config, options.ranks);
    const int64_t rank = std::max<int64_t>(0, options.rank);
    fmt::print("{}", options.passes ? passes_text(request, rank)
                     : !options.write_hlo.empty()
                         ? write_neuron_programs(request, rank, options.neuron, options.write_hlo)
                     : options.prints_stablehlo()
                         ? stablehlo_text(request, rank, options.print_stablehlo,
                                          /*is_narrow=*/!options.neuron.name.empty())
                         : text_after(request, rank, options.print_after));
    return kExitDone;
  }
  if (!config.data.tokenizer.empty()) {
    const auto tokenizer = load_tokenizer(config.data.tokenizer, "data.tokenizer");
    for (const std::string& note : notes_of(*tokenizer)) print_line(stderr, "{}", note);
  }
  PlanRequest request = plan_request(config, options.ranks, hardware);
  request.memory_margin = options.memory_margin / 100;
  if (options.search) return run_search(request, options.search_seconds, options.json);
  Plan plan = make_plan(request);
  plan.evaluations = plan_evaluations(config, plan.step.step_seconds);
  const bool is_here = !hardware && plan.ranks() == config.launch.workers;
  if (is_here && !options.goodput) {
    if (const std::string lack = lack_of_disk(config, plan.run.checkpoint_bytes); !lack.empty()) {
      print_line(stderr, "{}", lack);
    }
  }
  if (options.goodput) {
    run_goodput(planned_scenario(options.simulated, config, plan), options.json);
    return kExitDone;
  }
  const bool fits = all_fit(plan.memory);
  const MemoryAdvice advice = fits ? MemoryAdvice{} : advise(request, plan);
  const std::optional<PairAdvice> pairs = fits ? advise_pairs(request, plan) : std::nullopt;
  if (!options.timeline.empty()) write_timeline(plan.step.timeline, options.timeline);
  if (options.json) {
    std::optional<StagePlan> of_rank;
    if (options.rank >= 0) of_rank = plan_of_rank(request, options.rank);
    OrderedJson json = plan_to_json(plan, of_rank);
    json["advice"] = advice_to_json(advice);
    if (!plan.idle_pairs.empty()) json["idle_pairs"] = plan.idle_pairs;
    if (!plan.idle_zero.empty()) json["idle_zero"] = plan.idle_zero;
    if (!plan.notes.empty()) json["notes"] = plan.notes;
    if (pairs) {
      json["with_pairs"] = {{"step_seconds", pairs->step_seconds},
                            {"device_bytes", pairs->device_bytes}};
    }
    print_json(json);
  } else {
    print_text(stdout, plan_to_text(plan) + (fits ? "" : "\n" + advice_text(advice, plan)) +
                           (pairs ? pair_advice_text(*pairs, plan) : ""));
  }
  return kExitDone;
}

}  // namespace

void add_plan_command(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* command =
      app.add_subcommand("plan", "Tell the bytes and the time that training would take");
  add_options(*command, context, *options);
  command->callback([&context, options] {
    context.computes = !options->calibrate.empty();
    context.run = [options] { return run_plan(*options); };
  });
}

}  // namespace skein
