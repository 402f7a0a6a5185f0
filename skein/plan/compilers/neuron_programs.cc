#include "skein/plan/compilers/neuron_programs.h"

#include <fmt/format.h>

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/shell_words.h"
#include "skein/base/text/units.h"
#include "skein/plan/planned_run.h"
#include "skein/plan/stage_modules.h"
#include "skein/stablehlo/neuron_check.h"

namespace skein {
namespace {

constexpr size_t kMostLacks = 12;  // in one message

void check_programs(const std::vector<StageModule>& programs, const NeuronTarget& target) {
  size_t count = 0;
  std::string list;
  for (const StageModule& program : programs) {
    for (const stablehlo::NeuronLack& lack : stablehlo::what_neuron_lacks(program.module.text)) {
      if (++count > kMostLacks) continue;
      list += fmt::format("{} {}: {}", list.empty() ? "" : ";", program.name,
                          stablehlo::to_string(lack));
    }
  }
  if (count == 0) return;
  if (count > kMostLacks) list += fmt::format("; and {} more", count - kMostLacks);
  fail(ErrorCode::kUnsupported,
       "--for {}: the programs have {} that Trainium or its compiler lacks; docs/trainium.md says "
       "where each is known from, and what helps:{}",
       target.name, counted(static_cast<int64_t>(count), "operation"), list);
}

// What XLA wrote is the program that was asked for.
void check_module(const StageModule& program, const stablehlo::HloModule& hlo) {
  const stablehlo::Module& module = program.module;
  if (hlo.num_parameters == std::ssize(module.arguments) &&
      hlo.num_results == std::ssize(module.results) && hlo.donated == module.donated) {
    return;
  }
  fail(ErrorCode::kInternal,
       "{}: the HLO has {} parameters and {} results, expected {} and {} with the same donations",
       program.name, hlo.num_parameters, hlo.num_results, module.arguments.size(),
       module.results.size());
}

OrderedJson arrays(const std::vector<stablehlo::Cell>& cells) {
  OrderedJson list = OrderedJson::array();
  for (const stablehlo::Cell& cell : cells) {
    list.push_back({{"arena", arena_name(cell.arena)},
                    {"offset_bytes", cell.offset_bytes},
                    {"slot_bytes", cell.slot_bytes},
                    {"ahead", cell.ahead},
                    {"row_stride", cell.row_stride},
                    {"element", stablehlo::element_name(cell.type.element)},
                    {"dims", cell.type.dims}});
  }
  return list;
}

OrderedJson description(const StageModule& program, int64_t num_replicas,
                        const stablehlo::HloModule& hlo) {
  return {{"program", program.name},
          {"hlo", program.name + ".hlo.pb"},
          {"neff", program.name + ".neff"},
          {"replicas", num_replicas},
          {"instructions", hlo.num_instructions},
          {"arguments", arrays(program.module.arguments)},
          {"results", arrays(program.module.results)},
          {"donated", program.module.donated}};
}

std::string command(const std::string& program, const std::string& options) {
  const std::vector<std::string> names = {program + ".hlo.pb", program + ".neff", program + ".log"};
  return fmt::format("neuronx-cc compile {} {} --output {} --logfile {} ${{NEURON_CC_EXTRA:-}}\n",
                     shell_word(names[0]), options, shell_word(names[1]), shell_word(names[2]));
}

}  // namespace

std::string neuronx_cc_options(const NeuronTarget& target) {
  std::string options = fmt::format(
      "--framework XLA --target {} --model-type transformer --distribution-strategy llm-training "
      "--auto-cast none --optlevel {}",
      target.name, target.optimization_level);
  // Masks hold -inf, and transposes on the matrix unit of trn1 make NaN of it.
  if (target.name != "trn2") options += " --enable-saturate-infinity";
  return options;
}

std::string write_neuron_programs(const PlanRequest& request, int64_t rank,
                                  const NeuronTarget& target, const std::string& folder) {
  const std::string& plugin = request.config.device.pjrt_plugin;
  if (plugin.empty()) {
    fail(ErrorCode::kUsage,
         "--write-hlo: device.pjrt_plugin is empty: expected the path of a plugin of XLA for CPUs, "
         "which turns StableHLO into HLO, such as pjrt_c_api_cpu_plugin.so of the package "
         "lammps-jax-pjrt-cpu");
  }
  const Backend& backend = find_backend("pjrt");
  const PlannedRun run(request.config, request.model, request.ranks);
  const StageModules stage(run.spec_of_rank(rank), "", /*is_narrow=*/true);
  const int64_t num_replicas = std::ssize(stage.ranks());
  std::vector<StageModule> programs;
  stage.for_each("--write-hlo", [&](const StageModule& one) { programs.push_back(one); });
  check_programs(programs, target);
  const fs::path to = folder;
  fs::create_directories(to);
  std::string script =
      "#!/bin/sh\n"
      "# Compiles every program of this folder. neuronx-cc needs no Trainium. More options:\n"
      "# NEURON_CC_EXTRA.\n"
      "set -eu\ncd \"$(dirname \"$0\")\"\n";
  std::string lines;
  OrderedJson list = OrderedJson::array();
  for (const StageModule& program : programs) {
    const stablehlo::HloModule hlo = backend.hlo_module(plugin, program.module.text, num_replicas);
    check_module(program, hlo);
    write_file_atomic(to / (program.name + ".mlir"), program.module.text);
    write_file_atomic(to / (program.name + ".hlo.pb"), hlo.bytes);
    script += command(program.name, neuronx_cc_options(target));
    list.push_back(description(program, num_replicas, hlo));
    lines += fmt::format("{}  {} of HLO, {}, {} arguments, {} results\n",
                         (to / (program.name + ".hlo.pb")).string(),
                         counted(hlo.num_instructions, "instruction"),
                         format_bytes(std::ssize(hlo.bytes)), hlo.num_parameters, hlo.num_results);
  }
  write_file_atomic(to / "programs.json", exact_json(list, "programs.json", 2) + "\n");
  write_file_atomic(to / "compile.sh", script);
  return lines + fmt::format("sh {} compiles them for {}, where neuronx-cc is\n",
                             shell_word((to / "compile.sh").string()), target.name);
}

}  // namespace skein
