#include <fmt/format.h>

#include "skein/base/units.h"
#include "skein/plan/plan_search.h"

namespace skein {

std::string layout_text(const Config& config) {
  const ParallelConfig& p = config.parallel;
  return fmt::format("tensor {} pipeline {}{} context {} micro {}{} zero {} recompute {}", p.tensor,
                     p.pipeline, p.virtual_stages > 1 ? fmt::format("x{}", p.virtual_stages) : "",
                     p.context, config.batch.micro_sequences, p.pairs ? " in pairs" : "", p.zero,
                     config.memory.recompute);
}

OrderedJson search_to_json(const SearchResult& result) {
  OrderedJson list = OrderedJson::array();
  for (const auto& [config, plan] : result.best) {
    OrderedJson json = plan_to_json(plan);
    json["set"] = {{"parallel.data", plan.layout.data_degree()},
                   {"parallel.tensor", config.parallel.tensor},
                   {"parallel.pipeline", config.parallel.pipeline},
                   {"parallel.virtual_stages", config.parallel.virtual_stages},
                   {"parallel.context", config.parallel.context},
                   {"parallel.sequence", config.parallel.sequence},
                   {"parallel.kv_replication", config.parallel.kv_replication},
                   {"parallel.zero", config.parallel.zero},
                   {"parallel.pairs", config.parallel.pairs},
                   {"batch.micro_sequences", config.batch.micro_sequences},
                   {"memory.recompute", config.memory.recompute}};
    list.push_back(std::move(json));
  }
  return list;
}

std::string search_to_text(const SearchResult& result, const PlanRequest& request) {
  std::string text =
      fmt::format("{} layouts of {} ranks on {}: {} planned in {:.1f} s, {} can only be slower\n\n",
                  result.num_layouts, request.ranks, request.hardware.name, result.num_planned,
                  result.seconds, result.num_slower);
  if (request.memory_margin > 0) {
    text.insert(text.size() - 1,
                fmt::format("What fits leaves {:.3g} % of the memory free (--memory-margin)\n",
                            100 * request.memory_margin));
  }
  text += fmt::format(
      "{:>6} {:>8} {:>5} {:>4} {:>7} {:>5} {:>5} {:>4} {:>9}  {:>9} {:>8} {:>10} {:>5} {:>6}\n",
      "tensor", "pipeline", "data", "ctx", "virtual", "micro", "pairs", "zero", "recompute",
      "a device", "a step", "tokens/s", "MFU", "idle");
  for (const auto& [config, plan] : result.best) {
    const ParallelConfig& p = config.parallel;
    text += fmt::format(
        "{:>6} {:>8} {:>5} {:>4} {:>7} {:>5} {:>5} {:>4} {:>9}  {:>9} {:>8} {:>10} {:>4.0f}% "
        "{:>5.1f}%\n",
        p.tensor, p.pipeline, plan.layout.data_degree(), p.context, p.virtual_stages,
        config.batch.micro_sequences, p.pairs ? "yes" : "", p.zero, config.memory.recompute,
        format_bytes(plan.fullest().device_bytes()),
        fmt::format("{:.3g} s", plan.step.step_seconds), format_count(plan.tokens_per_second),
        100 * plan.peak_utilization, 100 * plan.step.timeline.idle_share());
  }
  if (result.best.empty()) text += "  none fits\n";
  if (!result.refused.empty()) text += "\nNot among them\n";
  for (const auto& [reason, refused] : result.refused) {
    text += fmt::format("  {:>6}  {}; for example {}\n", refused.count, reason, refused.example);
  }
  return text;
}

}  // namespace skein
