#include "skein/plan/compilers/certificate.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>

#include "skein/comm/communicator.h"
#include "skein/compile/wire_use.h"
#include "skein/plan/planned_run.h"
#include "skein/plan/stage_modules.h"

namespace skein {
namespace {

constexpr auto kWorkspaceIndex = static_cast<size_t>(Arena::kWorkspace);

int64_t extent(const Operand& operand) {
  if (!operand.present() || operand.arena != Arena::kWorkspace) return 0;
  return operand.offset_bytes + stablehlo::Cell::of(operand, 0).extent_bytes();
}

// The share of the workspace that the instructions use.
int64_t workspace_of(std::span<const Instruction> instructions) {
  int64_t bytes = 0;
  for (const Instruction& instruction : instructions) {
    for (const auto* operands : {&instruction.inputs, &instruction.outputs}) {
      for (const Operand& operand : *operands) bytes = std::max(bytes, extent(operand));
    }
  }
  return bytes;
}

// By kind and size of group.
using ExchangeMap = std::map<std::pair<std::string, int64_t>, Exchanges>;

void add(ExchangeMap& map, std::string_view kind, int64_t ranks, int64_t count, int64_t bytes) {
  Exchanges& sum = map[{std::string(kind), ranks}];
  sum.kind = kind;
  sum.ranks = ranks;
  sum.count += count;
  sum.sent_bytes += bytes;
}

std::vector<Exchanges> listed(const ExchangeMap& map) {
  std::vector<Exchanges> list;
  for (const auto& [key, exchanges] : map) list.push_back(exchanges);
  return list;
}

void add_planned(ExchangeMap& map, const Instruction& instruction, const WireMessage& message) {
  const KernelCall call = bind_views(instruction, made_up_bases());
  const auto values = std::ssize(instruction.op->collective(call).parts);
  const bool is_both = message.kind == CollectiveKind::kAllReduce;
  add(map, collective_name(message.kind), message.ranks, is_both ? 2 * values : values,
      message.sent_bytes);
}

PlannedProgram planned_program(const StageModule& one, const ProgramSet& programs) {
  PlannedProgram planned;
  ExchangeMap exchanges;
  const stablehlo::Module& module = one.module;
  for (size_t i = 0; i < module.arguments.size(); ++i) {
    const stablehlo::Cell& cell = module.arguments[i];
    planned.argument_bytes[static_cast<size_t>(cell.arena)] += cell.type.num_bytes();
    if (module.donated[i] >= 0) planned.donated_bytes += cell.type.num_bytes();
  }
  for (const stablehlo::Cell& cell : module.results) planned.result_bytes += cell.type.num_bytes();
  planned.temporary_bytes = workspace_of(one.instructions);
  for (const Instruction& instruction : one.instructions) {
    planned.flops += instruction.cost.flops;
    const auto message = message_of(instruction, programs.mesh, programs.rank);
    if (message) add_planned(exchanges, instruction, *message);
  }
  planned.exchanges = listed(exchanges);
  return planned;
}

}  // namespace

Exchanges total(const std::vector<Exchanges>& exchanges) {
  Exchanges sum;
  for (const Exchanges& one : exchanges) {
    sum.count += one.count;
    sum.sent_bytes += one.sent_bytes;
  }
  return sum;
}

std::vector<Exchanges> exchanges_of(const std::vector<CompiledCollective>& collectives) {
  ExchangeMap map;
  for (const CompiledCollective& one : collectives) {
    add(map, one.kind, one.ranks, 1, one.sent_bytes());
  }
  return listed(map);
}

int64_t PlannedProgram::arguments() const {
  return std::accumulate(argument_bytes.begin(), argument_bytes.end(), int64_t{0});
}

int64_t StageCertificate::most_temporaries() const {
  int64_t most = 0;
  for (const ProgramCertificate& program : programs) {
    most = std::max(most, program.compiled.memory.temporary_bytes);
  }
  return most;
}

StageCertificate compile_stage(const PlanRequest& request, int64_t rank, const std::string& wanted,
                               AotCompiler& compiler, const CertificateProgress& progress) {
  const PlannedRun run(request.config, request.model, request.ranks);
  const StepSpec spec = run.spec_of_rank(rank);
  const StageModules stage(spec, wanted);
  StageCertificate certificate;
  certificate.stage = spec.layout.stage();
  certificate.num_stages = spec.layout.mesh.size("pp");
  certificate.replicas = std::ssize(stage.ranks());
  const ProgramSet& programs = stage.programs();
  for (size_t i = 0; i < programs.arena_bytes.size(); ++i) {
    if (programs.on_host[i]) continue;
    (i == kWorkspaceIndex ? certificate.workspace_bytes : certificate.kept_bytes) +=
        programs.arena_bytes[i];
  }
  auto begin = std::chrono::steady_clock::now();
  stage.for_each("--program", [&](const StageModule& one) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    ProgramCertificate program;
    program.name = one.name;
    program.text_bytes = std::ssize(one.module.text);
    program.text_seconds = took.count();
    program.planned = planned_program(one, programs);
    program.compiled = compiler.compile(one.name, one.module.text, certificate.replicas);
    certificate.programs.push_back(std::move(program));
    if (progress) progress(certificate);
    begin = std::chrono::steady_clock::now();
  });
  return certificate;
}

}  // namespace skein
