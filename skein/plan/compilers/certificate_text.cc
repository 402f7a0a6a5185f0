#include <algorithm>

#include "skein/base/text/units.h"
#include "skein/plan/compilers/certificate.h"

namespace skein {
namespace {

constexpr std::string_view kRow = "{:<12}  {:>11} {:>11} {:>11} {:>11} {:>11} {:>9} {:>11}\n";

std::string row(std::string_view who, const std::vector<std::string>& cells) {
  return fmt::format(fmt::runtime(kRow), who, cells[0], cells[1], cells[2], cells[3], cells[4],
                     cells[5], cells[6]);
}

// Of what the compiler says from what the plan says, in percent.
double difference(double compiled, double planned) {
  return planned == 0 ? 0 : 100 * (compiled - planned) / planned;
}

std::string difference_text(double compiled, double planned) {
  if (planned == 0) return compiled == 0 ? "0.0 %" : "-";
  return fmt::format("{:+.1f} %", difference(compiled, planned));
}

OrderedJson exchanges_to_json(const std::vector<Exchanges>& exchanges) {
  OrderedJson list = OrderedJson::array();
  for (const Exchanges& one : exchanges) {
    list.push_back({{"kind", one.kind},
                    {"ranks", one.ranks},
                    {"count", one.count},
                    {"sent_bytes", one.sent_bytes}});
  }
  return list;
}

std::string operations(const std::optional<double>& flops) {
  return flops ? format_count(*flops) : "unknown";
}

std::string notes_of(const ProgramCertificate& program) {
  const AotProgram& compiled = program.compiled;
  std::string text = fmt::format(
      "{:<12}  {} of text in {}, compiled in {}", "", format_bytes(program.text_bytes),
      format_short_duration(program.text_seconds), format_short_duration(compiled.compile_seconds));
  if (compiled.memory.code_bytes > 0) {
    text += fmt::format(", {} of code", format_bytes(compiled.memory.code_bytes));
  }
  if (compiled.bytes_accessed) {
    text += fmt::format(", {} read and written",
                        format_bytes(static_cast<int64_t>(*compiled.bytes_accessed)));
  }
  if (compiled.optimal_seconds) {
    text += fmt::format(", {} at best", format_short_duration(*compiled.optimal_seconds));
  }
  return text + "\n";
}

// Where a compiler lays arrays out wider than they are.
int64_t most_padding(const StageCertificate& stage) {
  int64_t most = 0;
  for (const ProgramCertificate& program : stage.programs) {
    most = std::max(most, program.compiled.memory.argument_bytes - program.planned.arguments());
  }
  return most;
}

OrderedJson number(const std::optional<double>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson planned_to_json(const PlannedProgram& planned) {
  OrderedJson arenas = OrderedJson::object();
  for (size_t i = 0; i < planned.argument_bytes.size(); ++i) {
    if (planned.argument_bytes[i] == 0) continue;
    arenas[std::string(arena_name(static_cast<Arena>(i)))] = planned.argument_bytes[i];
  }
  return {{"argument_bytes", planned.arguments()},
          {"result_bytes", planned.result_bytes},
          {"donated_bytes", planned.donated_bytes},
          {"temporary_bytes", planned.temporary_bytes},
          {"flops", planned.flops},
          {"exchanges", exchanges_to_json(planned.exchanges)},
          {"arguments_by_arena", std::move(arenas)}};
}

OrderedJson compiled_to_json(const AotProgram& compiled) {
  OrderedJson json = {{"argument_bytes", compiled.memory.argument_bytes},
                      {"result_bytes", compiled.memory.result_bytes},
                      {"donated_bytes", compiled.memory.donated_bytes},
                      {"temporary_bytes", compiled.memory.temporary_bytes},
                      {"code_bytes", compiled.memory.code_bytes},
                      {"flops", number(compiled.flops)},
                      {"bytes_accessed", number(compiled.bytes_accessed)},
                      {"optimal_seconds", number(compiled.optimal_seconds)},
                      {"exchanges", nullptr}};
  if (compiled.collectives) {
    json["exchanges"] = exchanges_to_json(exchanges_of(*compiled.collectives));
  }
  return json;
}

}  // namespace

std::string certificate_heading(const StageCertificate& stage) {
  const std::string of =
      stage.num_stages > 1 ? fmt::format("Stage {} of {}, ", stage.stage, stage.num_stages) : "";
  return fmt::format("\n{}{} a program\n\n", of,
                     stage.replicas == 1 ? "1 rank" : fmt::format("{} ranks", stage.replicas)) +
         row("",
             {"arguments", "results", "donated", "temporaries", "operations", "exchanges", "sent"});
}

std::string program_text(const ProgramCertificate& program) {
  const PlannedProgram& planned = program.planned;
  const AotProgram& compiled = program.compiled;
  const CompiledMemory& memory = compiled.memory;
  const auto percent = [](int64_t of_compiler, int64_t of_plan) {
    return difference_text(static_cast<double>(of_compiler), static_cast<double>(of_plan));
  };
  const bool tells = compiled.collectives.has_value();
  const Exchanges plans = total(planned.exchanges);
  const Exchanges has = tells ? total(exchanges_of(*compiled.collectives)) : Exchanges{};
  std::string text = program.name + "\n";
  text += row("  plan", {format_bytes(planned.arguments()), format_bytes(planned.result_bytes),
                         format_bytes(planned.donated_bytes), format_bytes(planned.temporary_bytes),
                         format_count(planned.flops), fmt::format("{}", plans.count),
                         format_bytes(plans.sent_bytes)});
  text += row("  compiler",
              {format_bytes(memory.argument_bytes), format_bytes(memory.result_bytes),
               format_bytes(memory.donated_bytes), format_bytes(memory.temporary_bytes),
               operations(compiled.flops), tells ? fmt::format("{}", has.count) : "unknown",
               tells ? format_bytes(has.sent_bytes) : "unknown"});
  text +=
      row("  difference", {percent(memory.argument_bytes, planned.arguments()),
                           percent(memory.result_bytes, planned.result_bytes),
                           percent(memory.donated_bytes, planned.donated_bytes),
                           percent(memory.temporary_bytes, planned.temporary_bytes),
                           compiled.flops ? difference_text(*compiled.flops, planned.flops) : "",
                           "", tells ? percent(has.sent_bytes, plans.sent_bytes) : ""});
  return text + notes_of(program);
}

std::string certificate_summary(const StageCertificate& stage) {
  const int64_t padding = most_padding(stage);
  const int64_t planned = stage.kept_bytes + stage.workspace_bytes;
  const int64_t compiled = stage.kept_bytes + padding + stage.most_temporaries();
  return fmt::format(
      "\nIn all, on each device: {} are kept{}, and\n"
      "  by the plan      {:>9} of workspace      {:>9} together\n"
      "  by the compiler  {:>9} of temporaries    {:>9} together, {}\n",
      format_bytes(stage.kept_bytes),
      padding > stage.kept_bytes / 1000
          ? fmt::format(" ({} more as the compiler lays them out)", format_bytes(padding))
          : "",
      format_bytes(stage.workspace_bytes), format_bytes(planned),
      format_bytes(stage.most_temporaries()), format_bytes(compiled),
      difference_text(static_cast<double>(compiled), static_cast<double>(planned)));
}

OrderedJson certificate_to_json(const StageCertificate& stage) {
  OrderedJson json = {{"stage", stage.stage},
                      {"stages", stage.num_stages},
                      {"replicas", stage.replicas},
                      {"kept_bytes", stage.kept_bytes},
                      {"workspace_bytes", stage.workspace_bytes},
                      {"most_temporary_bytes", stage.most_temporaries()},
                      {"programs", OrderedJson::array()}};
  for (const ProgramCertificate& program : stage.programs) {
    json["programs"].push_back({{"name", program.name},
                                {"text_bytes", program.text_bytes},
                                {"text_seconds", program.text_seconds},
                                {"compile_seconds", program.compiled.compile_seconds},
                                {"plan", planned_to_json(program.planned)},
                                {"compiler", compiled_to_json(program.compiled)}});
  }
  return json;
}

}  // namespace skein
