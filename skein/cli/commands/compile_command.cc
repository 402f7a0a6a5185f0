// skein compile CONFIG.toml [--set section.key=value]... [--ranks N] [--jobs N]
//
// Compiles every program that `skein train CONFIG.toml` of this machine would, several at a time,
// into device.compile_cache: training finds them there.
#include <algorithm>
#include <memory>

#include "skein/backends/backend.h"
#include "skein/base/machine/clock.h"
#include "skein/base/machine/cores.h"
#include "skein/base/text/units.h"
#include "skein/checkpoint/find/lineage.h"
#include "skein/checkpoint/find/reader.h"
#include "skein/cli/commands/commands.h"
#include "skein/cli/shared/print.h"
#include "skein/compile/configured_compiler.h"
#include "skein/compile/step_programs.h"
#include "skein/compile/whole_step.h"
#include "skein/config/length.h"
#include "skein/config/node_range.h"
#include "skein/config/run/checkpoints.h"
#include "skein/launch/place/rank_threads.h"
#include "skein/plan/plan.h"
#include "skein/runtime/device_buffer.h"
#include "skein/train/start/device_ceiling.h"
#include "skein/weights/init_source.h"

namespace skein {
namespace {

struct CompileOptions {
  ConfigOptions config;
  int64_t ranks = 0;  // 0: those of the configuration
  int jobs = 0;       // 0: one for two cores
};

void check_can_compile(const Config& config, int64_t ranks) {
  const Backend& backend = training_backend(config);
  if (!backend.compiles) {
    fail(
        ErrorCode::kUsage,
        "device.kind is \"{}\", whose kernels are part of skein: expected \"pjrt\", which compiles "
        "programs",
        backend.kind);
  }
  if (config.device.compile_cache == "off") {
    fail(ErrorCode::kUsage,
         "device.compile_cache is \"off\": expected a folder or a bucket, in which training finds "
         "what is compiled");
  }
  const int64_t of_process = workers_per_process(config);
  if (ranks % of_process != 0) {
    fail(ErrorCode::kUsage,
         "{} ranks, and {} share a process (launch.workers_per_process): expected a multiple "
         "of that number",
         ranks, of_process);
  }
}

// Of the checkpoint that training would resume from; 0: there is none. Gradients are summed in its
// order.
int64_t stored_reduction_width(const Config& config) {
  if (config.run.resume == "never") return 0;
  const Lineage lineage = lineage_of(checkpoint_dir(config));
  if (lineage.checkpoints.empty()) return 0;
  return CheckpointReader(lineage.checkpoints.front().path).state().reduction_width;
}

// All pieces of all programs, as the executor of that rank has them.
void compile_programs(Device& device, const ProgramSet& programs) {
  std::vector<std::unique_ptr<DeviceBuffer>> arenas;
  std::array<void*, kNumArenas> begins{};
  for (size_t i = 0; i < begins.size(); ++i) {
    arenas.push_back(
        std::make_unique<DeviceBuffer>(device, programs.arena_bytes[i], "an arena to compile for"));
    begins[i] = arenas.back()->data();
  }
  for (const Program& program : programs.programs) {
    const auto pieces =
        stablehlo::compiled_pieces(program, programs.mesh, programs.rank, device.ranks_together());
    device.compile({programs, program, pieces, begins});
  }
}

// What the ranks of one process need, whose number among all `ranks` is `process`.
void compile_of_process(const Config& config, const DecoderConfig& model, int64_t ranks,
                        int64_t process, const CompilerSettings& settings) {
  const int64_t together = workers_per_process(config);
  const int64_t stored_width = stored_reduction_width(config);
  RankInfo info;
  info.rank = static_cast<int>(process);
  info.size = static_cast<int>(ranks / together);
  run_ranks(ranks_of_process(info, together), [&](const RankInfo& rank) {
    const StepSpec spec = step_spec(
        config, model, parallel_layout(config, model, rank.size, rank.rank, stored_width));
    const auto device = training_device(config, rank.local_rank, together, settings);
    ProgramSet programs = plan_training(training_graphs(spec), spec, device->kernels());
    join_step(programs, spec);
    compile_programs(*device, programs);
    measure_device_ceiling_flops(*device, compute_dtype(spec.update.precision));
    const std::string compiled = device->compiled();
    if (rank.rank % together == 0) print_line(stdout, "{}", compiled);
    return kExitDone;
  });
}

int run_compile(const CompileOptions& options) {
  Config config = load_config(options.config.path, options.config.overrides);
  if (const std::string note = take_source_tokenizer(config); !note.empty()) {
    print_line(stderr, "{}", note);
  }
  count_epochs(config, ConfigUse::kTrain);
  const int64_t configured = config.launch.workers * parse_node_range(config.launch.nodes)->most;
  const int64_t ranks = options.ranks > 0 ? options.ranks : configured;
  check_can_compile(config, ranks);
  CompilerSettings settings = compiler_settings(config);
  settings.num_jobs = options.jobs > 0 ? options.jobs : std::max(1, num_cores() / 2);
  const auto start = Clock::now();
  settings.on_begin = [](const std::string& what) { print_line(stderr, "compiling {}", what); };
  settings.on_made = [](const CompiledProgram& program) {
    print_line(stderr, "{}: {} {}", program.name,
               program.is_from_cache ? "found in the cache in" : "compiled in",
               format_duration(program.seconds));
  };
  const DecoderConfig model = planned_model(config);
  for (int64_t process = 0; process < ranks / workers_per_process(config); ++process) {
    compile_of_process(config, model, ranks, process, settings);
  }
  print_line(stdout, "all in {}, up to {} at a time", format_duration(seconds_since(start)),
             counted(settings.num_jobs, "program"));
  return kExitDone;
}

}  // namespace

void add_compile_command(CLI::App& app, CommandContext& context) {
  const auto options = std::make_shared<CompileOptions>();
  CLI::App* command = app.add_subcommand(
      "compile", "Compile a run's programs ahead of time, where its device compiles them");
  options->config.add_to(*command, context);
  command->add_option("--ranks", options->ranks, "of the run; default: launch.workers")
      ->check(whole_number_from(1, int64_t{1} << 24));
  command
      ->add_option("--jobs", options->jobs,
                   "programs that are compiled at a time; default: one for two cores")
      ->check(whole_number_from(1, 4096));
  command->callback([&context, options] {
    context.computes = true;
    context.run = [options] { return run_compile(*options); };
  });
}

}  // namespace skein
