#include <fmt/format.h>

#include <algorithm>

#include "skein/base/text/units.h"
#include "skein/plan/search/layout_search.h"

namespace skein {

std::string layout_text(const Config& config) {
  const ParallelConfig& p = config.parallel;
  return fmt::format("tensor {} pipeline {}{} context {} micro {}{} zero {} recompute {}", p.tensor,
                     p.pipeline, p.virtual_stages > 1 ? fmt::format("x{}", p.virtual_stages) : "",
                     p.context, config.batch.micro_sequences, p.pairs ? " in pairs" : "", p.zero,
                     config.memory.recompute);
}

namespace {

using LayoutSetting = std::pair<std::string, std::string>;

std::vector<LayoutSetting> all_settings(const Config& config, int64_t data) {
  const ParallelConfig& p = config.parallel;
  const auto number = [](int64_t value) { return fmt::format("{}", value); };
  const auto flag = [](bool value) { return std::string(value ? "true" : "false"); };
  return {{"parallel.data", number(data)},
          {"parallel.tensor", number(p.tensor)},
          {"parallel.pipeline", number(p.pipeline)},
          {"parallel.virtual_stages", number(p.virtual_stages)},
          {"parallel.context", number(p.context)},
          {"parallel.sequence", flag(p.sequence)},
          {"parallel.kv_replication", number(p.kv_replication)},
          {"parallel.zero", number(p.zero)},
          {"parallel.pairs", flag(p.pairs)},
          {"batch.micro_sequences", number(config.batch.micro_sequences)},
          {"memory.recompute", config.memory.recompute}};
}

std::vector<std::string> words(const std::vector<LayoutSetting>& settings,
                               const std::vector<LayoutSetting>& without = {}) {
  std::vector<std::string> words;
  for (const LayoutSetting& setting : settings) {
    if (std::find(without.begin(), without.end(), setting) != without.end()) continue;
    words.push_back(setting.first + "=" + setting.second);
  }
  return words;
}

}  // namespace

std::vector<std::string> layout_settings(const SearchResult::FoundLayout& found) {
  return words(all_settings(found.config, found.plan.layout.data_degree()));
}

std::vector<std::string> layout_settings(const SearchResult::FoundLayout& found,
                                         const Config& than) {
  return words(all_settings(found.config, found.plan.layout.data_degree()),
               all_settings(than, than.parallel.data));
}

OrderedJson search_to_json(const SearchResult& result) {
  OrderedJson list = OrderedJson::array();
  for (const SearchResult::FoundLayout& found : result.best) {
    OrderedJson json = plan_to_json(found.plan);
    json["set"] = layout_settings(found);
    list.push_back(std::move(json));
  }
  return list;
}

std::string search_summary(const SearchResult& result) {
  std::string text =
      fmt::format("{} planned in full, {} sketched, {} can only be slower, in {:.1f} s",
                  result.num_planned, result.num_sketched, result.num_slower, result.seconds);
  if (!result.is_complete()) {
    text += fmt::format("; stopped before it was complete: {} more may be faster", result.num_left);
  }
  return text;
}

namespace {

// "The configuration as it is: 1.31 s a step, 25.0 k tokens/s; row 1 is 1.08 times as fast"
std::string own_text(const SearchResult& result, int64_t ranks) {
  if (!result.own) {
    return fmt::format("The configuration as it is cannot be planned on {} ranks: {}\n", ranks,
                       result.why_no_own);
  }
  const Plan& own = *result.own;
  std::string text = fmt::format("The configuration as it is: {:.3g} s a step, {} tokens/s",
                                 own.step.step_seconds, format_count(own.tokens_per_second));
  if (!all_fit(own.memory)) return text + ", and it does not fit\n";
  if (result.best.empty()) return text + "\n";
  const double factor = result.best[0].plan.tokens_per_second / own.tokens_per_second;
  if (factor < 1) return text + "; none of these is as fast\n";
  if (factor < 1.005) return text + "; row 1 is no faster\n";
  return text + fmt::format("; row 1 is {:.3g} times as fast\n", factor);
}

}  // namespace

std::string search_to_text(const SearchResult& result, const PlanRequest& request) {
  std::string text = fmt::format("{} layouts of {} ranks on {}: {}\n\n", result.num_layouts,
                                 request.ranks, request.hardware.name, search_summary(result));
  if (request.memory_margin > 0) {
    text.insert(text.size() - 1,
                fmt::format("A layout fits if it leaves {:.3g} % of the memory free "
                            "(--memory-margin)\n",
                            100 * request.memory_margin));
  }
  text += fmt::format(
      "{:>2} {:>6} {:>8} {:>5} {:>4} {:>7} {:>5} {:>5} {:>4} {:>9}  {:>9} {:>8} {:>10} {:>5} "
      "{:>6}\n",
      "", "tensor", "pipeline", "data", "ctx", "virtual", "micro", "pairs", "zero", "recompute",
      "a device", "a step", "tokens/s", "MFU", "idle");
  int row = 0;
  for (const auto& [config, plan, order] : result.best) {
    const ParallelConfig& p = config.parallel;
    text += fmt::format(
        "{:>2} {:>6} {:>8} {:>5} {:>4} {:>7} {:>5} {:>5} {:>4} {:>9}  {:>9} {:>8} {:>10} "
        "{:>4.0f}% {:>5.1f}%\n",
        ++row, p.tensor, p.pipeline, plan.layout.data_degree(), p.context, p.virtual_stages,
        config.batch.micro_sequences, p.pairs ? "yes" : "", p.zero, config.memory.recompute,
        format_bytes(plan.fullest().device_bytes()),
        fmt::format("{:.3g} s", plan.step.step_seconds), format_count(plan.tokens_per_second),
        100 * plan.peak_utilization, 100 * plan.step.timeline.idle_share());
  }
  if (result.best.empty()) {
    text += result.is_complete() ? "  none fits\n" : "  none was planned in full so far\n";
  }
  text += "\n" + own_text(result, request.ranks);
  if (!result.best.empty()) {
    text += "\nTo plan or train one of them, add what differs from the configuration:\n";
  }
  row = 0;
  for (const SearchResult::FoundLayout& found : result.best) {
    const std::vector<std::string> settings = layout_settings(found, request.config);
    text += fmt::format("{:>2} ", ++row);
    for (const std::string& setting : settings) text += " --set " + setting;
    text += settings.empty() ? " nothing: the configuration has it\n" : "\n";
  }
  if (!result.refused.empty()) text += "\nNot among them\n";
  for (const auto& [reason, refused] : result.refused) {
    text += fmt::format("  {:>6}  {}; for example {}\n", refused.count, reason, refused.example);
  }
  return text;
}

}  // namespace skein
