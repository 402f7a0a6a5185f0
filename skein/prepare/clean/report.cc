#include <fmt/format.h>

#include "skein/base/text/units.h"
#include "skein/base/text/visible_text.h"
#include "skein/prepare/clean/clean.h"

namespace skein {
namespace {

constexpr int64_t kExcerptCharacters = 90;

double percent(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string row(const std::string& name, int64_t count, double share, int64_t num_bytes) {
  return fmt::format("{:<30} {:>12} {:>7.2f} %  {:>10}\n", name, count, share,
                     format_bytes(num_bytes));
}

std::string table_of_drops(const CleanReport& report) {
  std::string text =
      fmt::format("{:<30} {:>12} {:>9}  {:>10}\n", "", "documents", "share", "bytes");
  text += row("read", report.num_documents, 100, report.num_bytes);
  for (const RuleInfo& rule : cleaning_rules()) {
    const RuleCount& taken = report.taken.of(rule.rule);
    if (rule.kind != RuleKind::kDrops || taken.num_taken == 0) continue;
    text += row(rule.name, taken.num_taken, percent(taken.num_taken, report.num_documents),
                taken.num_bytes);
  }
  return text + row("kept", report.num_kept, percent(report.num_kept, report.num_documents),
                    report.num_kept_bytes);
}

// Of documents that were kept.
std::string table_of_lines(const CleanReport& report) {
  std::string text;
  for (const RuleInfo& rule : cleaning_rules()) {
    const RuleCount& taken = report.taken.of(rule.rule);
    if (rule.kind == RuleKind::kDrops || taken.num_taken == 0) continue;
    text += fmt::format("{:<30} {:>12} {:>20}\n", rule.name, taken.num_taken,
                        format_bytes(taken.num_bytes));
  }
  if (text.empty()) return text;
  return fmt::format("\nin documents that were kept {:>15} {:>20}\n", "lines", "bytes") + text;
}

std::string other_changes(const CleanReport& report) {
  std::string text;
  const auto tell = [&](const char* what, int64_t count) {
    if (count > 0) text += fmt::format("{:<30} {:>12}\n", what, count);
  };
  tell("documents repaired", report.num_repaired);
  tell("e-mail addresses replaced", report.replaced.num_emails);
  tell("IP addresses replaced", report.replaced.num_ips);
  tell("telephone numbers replaced", report.replaced.num_phones);
  return text.empty() ? text : "\n" + text;
}

}  // namespace

OrderedJson to_json(const CleanReport& report, const CleanRules& rules) {
  OrderedJson json{{"documents", report.num_documents},
                   {"bytes", report.num_bytes},
                   {"kept", {{"documents", report.num_kept}, {"bytes", report.num_kept_bytes}}},
                   {"repaired", report.num_repaired},
                   {"replaced",
                    {{"emails", report.replaced.num_emails},
                     {"ips", report.replaced.num_ips},
                     {"phones", report.replaced.num_phones}}},
                   {"rules", OrderedJson::array()}};
  for (const RuleInfo& rule : cleaning_rules()) {
    if (rule.kind == RuleKind::kMeasures) continue;
    const RuleCount& taken = report.taken.of(rule.rule);
    OrderedJson entry{{"name", rule.name},
                      {"filter", name_of(rule.filter)},
                      {"on", rules.is_on(rule.rule)},
                      {"threshold", rules.threshold(rule.rule)},
                      {rule.kind == RuleKind::kDrops ? "documents" : "lines", taken.num_taken},
                      {"bytes", taken.num_bytes},
                      {"examples", OrderedJson::array()}};
    const auto those = report.examples.find(rule.name);
    if (those != report.examples.end()) {
      for (const CleanExample& example : those->second) {
        entry["examples"].push_back(
            {{"source", example.source}, {"record", example.record}, {"excerpt", example.excerpt}});
      }
    }
    json["rules"].push_back(entry);
  }
  return json;
}

std::string to_text(const CleanReport& report, const CleanRules& rules, size_t num_examples) {
  std::string text = table_of_drops(report) + table_of_lines(report) + other_changes(report);
  if (num_examples == 0 || report.examples.empty()) return text;
  text += "\nexamples\n";
  for (const RuleInfo& rule : cleaning_rules()) {
    const auto those = report.examples.find(rule.name);
    if (those == report.examples.end()) continue;
    text += fmt::format("{} ({}): {}\n", rule.name, rules.value_text(rule.rule), rule.meaning);
    for (size_t i = 0; i < std::min(num_examples, those->second.size()); ++i) {
      const CleanExample& example = those->second[i];
      text += fmt::format("  {}:{}: {}\n", visible_text(example.source, kExcerptCharacters),
                          example.record, visible_text(example.excerpt, kExcerptCharacters));
    }
  }
  return text;
}

}  // namespace skein
